import type { ModelError } from "../errors/index.ts";
import { type JsonObject, type Message, type ModelRequest, textOf } from "../state/index.ts";

/** How a server is asked for an answer that fits a schema. All but the first have the schema in the instructions. */
export const structuredOutputs = ["jsonSchema", "jsonObject", "prompt"] as const;
export type StructuredOutput = (typeof structuredOutputs)[number];

type OutputPosition = "alone" | "besideTools";

/** Beside tools `json_object` is left out: several servers then write JSON in place of calls. */
const ladders: { readonly [Name in OutputPosition]: readonly StructuredOutput[] } = {
  alone: ["jsonSchema", "jsonObject", "prompt"],
  besideTools: ["jsonSchema", "prompt"],
};

/** What one server has been found to take for one model, in this process. */
export class KnownFormats {
  readonly #rungs = { alone: 0, besideTools: 0 };

  formatFor(request: ModelRequest): StructuredOutput {
    const place = outputPosition(request);
    return ladders[place][this.#rungs[place]] ?? "prompt";
  }

  /** Notes that the server has refused the format; another call may have found so before. */
  refused(request: ModelRequest, format: StructuredOutput): void {
    const place = outputPosition(request);
    this.#rungs[place] = Math.max(this.#rungs[place], ladders[place].indexOf(format) + 1);
  }
}

function outputPosition({ tools = [] }: ModelRequest): OutputPosition {
  return tools.length > 0 ? "besideTools" : "alone";
}

const known = new Map<string, KnownFormats>();
/** Beyond this many pairs of server and model the memory is cleared. */
const MOST_KNOWN = 1_000;

/** What is known of a model on a server: shared by all adapters of the process, so that each refusal is met once. */
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

/** The request as this format asks it; unchanged where it wants no schema. */
export function askedFor(request: ModelRequest, format: StructuredOutput): ModelRequest {
  const { responseFormat, ...rest } = request;
  if (responseFormat?.type !== "json_schema" || format === "jsonSchema") return request;
  const messages = withSchema(request.messages, responseFormat.schema);
  return format === "jsonObject" ? { ...rest, messages, responseFormat: { type: "json" } } : { ...rest, messages };
}

/** The schema as it stands in the instructions. */
export function schemaText(schema: JsonObject): string {
  return `Your final answer must be nothing but JSON that fits this JSON Schema:\n${JSON.stringify(schema)}`;
}

/** At the end of the instructions: many servers take one system message, at the beginning. */
function withSchema(messages: readonly Message[], schema: JsonObject): readonly Message[] {
  const text = schemaText(schema);
  const [first, ...rest] = messages;
  if (first?.role === "system") return [{ ...first, content: `${textOf(first.content)}\n\n${text}` }, ...rest];
  const own: Message = { id: "schema", role: "system", createdAt: 0, content: text, origin: "runtime" };
  return [own, ...messages];
}

const refusalStatuses: ReadonlySet<unknown> = new Set([400, 404, 415, 422, 500, 501]);
const refusalPattern =
  /response[\s_.-]*(?:format|mime)|json[\s_-]*(?:schema|object|mode)|structured[\s_-]*output|output[\s_-]*format|guided|grammar|400 status code \(no body\)/i;

/** Whether a server has refused a call for the format that it asks for, or for having it beside tools. */
export function refusesFormat(error: ModelError): boolean {
  if (error.partialOutputTokens !== undefined || error.details?.["kind"] === "context_length") return false;
  return refusalStatuses.has(error.status) && refusalPattern.test(error.message);
}
