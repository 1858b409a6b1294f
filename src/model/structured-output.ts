import type { ModelError } from "../errors/index.ts";
import { type JsonObject, type Message, type ModelRequest, textOf } from "../state/index.ts";
import { outputToolName } from "./output-tool.ts";

/**
 * How an answer that fits a schema is requested: by the server's own format for schemas, by a tool whose parameters are the schema, by the
 * server's JSON mode, or by the instructions alone. The last two put the schema into the instructions.
 */
export const structuredOutputs = ["jsonSchema", "tool", "jsonObject", "prompt"] as const;
export type StructuredOutput = (typeof structuredOutputs)[number];

type OutputPosition = "alone" | "besideTools";

/** `json_object` is not used together with tools: several servers then write JSON instead of calls. */
const ladders: { readonly [Name in OutputPosition]: readonly StructuredOutput[] } = {
  alone: ["jsonSchema", "tool", "jsonObject", "prompt"],
  besideTools: ["jsonSchema", "tool", "prompt"],
};

/** The formats that one server accepts for one model, as found in this process. */
export class KnownFormats {
  readonly #rungs = { alone: 0, besideTools: 0 };
  /** Whether the server accepts a request in which a tool must be called. */
  forcesTools = true;

  formatFor(request: ModelRequest): StructuredOutput {
    const place = outputPosition(request);
    return ladders[place][this.#rungs[place]] ?? "prompt";
  }

  /** Records that the server refused or ignored the format; a concurrent call may have recorded it before. */
  refused(request: ModelRequest, format: StructuredOutput): void {
    const place = outputPosition(request);
    this.#rungs[place] = Math.max(this.#rungs[place], ladders[place].indexOf(format) + 1);
  }
}

function outputPosition({ tools = [] }: ModelRequest): OutputPosition {
  return tools.length > 0 ? "besideTools" : "alone";
}

const known = new Map<string, KnownFormats>();
/** The map is cleared at this many pairs of server and model. */
const MOST_KNOWN = 1_000;

/** Shared by all adapters of the process, so that each refusal happens once per server and model. */
export function knownFormatsOf(server: string, model: string): KnownFormats {
  const key = JSON.stringify([server, model]);
  let formats = known.get(key);
  if (formats === undefined) {
    if (known.size >= MOST_KNOWN) known.clear();
    formats = new KnownFormats();
    known.set(key, formats);
  }
  return formats;
}

/** The request in this format; unchanged if it has no schema. */
export function askedFor(request: ModelRequest, format: Exclude<StructuredOutput, "tool">): ModelRequest {
  const { responseFormat, ...rest } = request;
  if (responseFormat?.type !== "json_schema" || format === "jsonSchema") return request;
  const messages = withSchema(request.messages, responseFormat.schema);
  return format === "jsonObject" ? { ...rest, messages, responseFormat: { type: "json" } } : { ...rest, messages };
}

/** The text that puts the schema into the instructions. */
function schemaText(schema: JsonObject): string {
  return `Your final answer must be nothing but JSON that fits this JSON Schema:\n${JSON.stringify(schema)}`;
}

/** At the end of the instructions, because many servers accept only one system message, at the beginning. */
function withSchema(messages: readonly Message[], schema: JsonObject): readonly Message[] {
  const text = schemaText(schema);
  const [first, ...rest] = messages;
  if (first?.role === "system") return [{ ...first, content: `${textOf(first.content)}\n\n${text}` }, ...rest];
  const own: Message = { id: "schema", role: "system", createdAt: 0, content: text, origin: "runtime" };
  return [own, ...messages];
}

const refusalStatuses: ReadonlySet<unknown> = new Set([400, 404, 415, 422, 500, 501]);
const refusalPattern =
  /response[\s_.-]*(?:format|mime)|text\.format|json[\s_-]*(?:schema|object|mode)|structured[\s_-]*output|output[\s_-]*format|guided|grammar|400 status code \(no body\)/i;
/** Servers that take no tools, none for this model, or not this tool. Not: errors about calls and results in the history. */
const toolRefusalPattern = new RegExp(
  `\\btools\\b|support tool use|function[\\s_-]*calling|${choicePattern().source}|\\b${outputToolName}|400 status code \\(no body\\)`,
  "i",
);
/** Kinds of failures that other requests in the same format would not have. */
const otherKinds: ReadonlySet<unknown> = new Set(["context_length", "refusal", "tool_use_failed"]);

/** Whether a server refused a call because of its answer format, or because of the format together with tools. */
export function refusesFormat(error: ModelError, format: StructuredOutput): boolean {
  if (format === "prompt" || error.partialOutputTokens !== undefined) return false;
  if (otherKinds.has(error.details?.["kind"]) || !refusalStatuses.has(error.status)) return false;
  return (format === "tool" ? toolRefusalPattern : refusalPattern).test(error.message);
}

/** Whether a server refused a call because a tool must be called in it: models that think, or a server without that feature. */
export function refusesForcedTool(error: ModelError): boolean {
  return refusesFormat(error, "tool") && choicePattern().test(error.message);
}

function choicePattern(): RegExp {
  return /tool[\s_-]*choice|forces? tool use|forced tool/i;
}
