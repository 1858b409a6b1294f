import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import { stableStringify } from "../../base/index.ts";
import {
  checkedFilePart,
  type Content,
  type ContentPart,
  fileMark,
  type JsonObject,
  jsonObjectSchema,
  textOf,
} from "../../state/index.ts";
import type { StartTurnOptions } from "../core/plain-message.ts";
import type { ServerError } from "../core/failures.ts";
import { MOST_ANSWERS } from "../core/limits.ts";
import { badRequest } from "./protocol-errors.ts";

const partSchema = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  refusal: z.string().optional(),
  image_url: z.looseObject({ url: z.string() }).optional(),
  file: z.looseObject({ file_data: z.string().optional(), filename: z.string().optional() }).optional(),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }).optional(),
});

const messageSchema = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: z.union([z.string(), z.array(partSchema)]).nullish(),
  tool_calls: z
    .array(z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }))
    .nullish(),
  tool_call_id: z.string().optional(),
});
type ChatMessage = z.output<typeof messageSchema>;

const toolSchema = z.looseObject({
  type: z.string(),
  function: z
    .looseObject({ name: z.string(), description: z.string().nullish(), parameters: jsonObjectSchema.nullish() })
    .optional(),
});

/** The body of a completion. Other fields are ignored. */
export const chatBodySchema = z
  .looseObject({
    model: z.string().meta({ description: "Name of a definition." }),
    messages: z.array(messageSchema).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    tools: z.array(toolSchema).max(128).nullish(),
    tool_choice: z.unknown().optional(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z
      .looseObject({ type: z.string(), json_schema: z.looseObject({ schema: jsonObjectSchema.optional() }).optional() })
      .nullish(),
    n: z.int().nullish(),
    stop: z.unknown().optional(),
    logprobs: z.boolean().nullish(),
    modalities: z.array(z.string()).nullish(),
  })
  .meta({ id: "ChatCompletionRequest" });
export type ChatBody = z.output<typeof chatBodySchema>;

/** A message of the client's conversation, without tool calls and results. */
export interface Block {
  readonly role: "user" | "assistant";
  readonly text: string;
}

/** A result of a client's tool. */
export interface ToolResult {
  readonly toolCallId: string;
  readonly text: string;
}

export interface ChatRequest {
  readonly definition: AgentDefinition;
  /** Messages up to the last answer, to compare with the stored ones. */
  readonly history: readonly Block[];
  /** The application's instructions and the messages up to the last answer, for a new agent. */
  readonly seeds: readonly { readonly role: "user" | "assistant"; readonly content: Content }[];
  /** The user's input after the last answer; `null` if only results of tools follow. */
  readonly said: Content | null;
  readonly results: readonly ToolResult[];
  readonly clientTools: NonNullable<StartTurnOptions["clientTools"]>;
}

/** Precedes the text of a client's system messages. */
export const PREFACE = "The application gave these instructions:\n";

/**
 * Reads a body. Throws `ServerError` (400) naming the parameter for what agents do not support. Parameters that only
 * tune the answer are ignored, because the definition sets them.
 */
export function readChat(
  body: ChatBody,
  { definition, takesSystem }: { readonly definition: AgentDefinition; readonly takesSystem: boolean },
): ChatRequest {
  assertSupported(body);
  const { response_format: format } = body;
  assertFormat(format && { type: format.type, schema: format.json_schema?.schema }, definition, "response_format");
  const { messages } = body;
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const [before, fresh] = [messages.slice(0, last + 1), messages.slice(last + 1)];
  const placed = fresh.map((message, index) => ({ message, index: last + 1 + index }));
  const said = placed.filter(({ message }) => message.role === "user");
  const results = placed.filter(({ message }) => message.role === "tool");
  if (said.length === 0 && results.length === 0) {
    throw badRequest("the last message must be a user message or the result of a tool", { param: "messages" });
  }
  if (said.length > 0 && results.length > 0) {
    const way = "send the results first, and the message after their answer";
    throw badRequest(`a request accepts results of tools or a new message, not both: ${way}`, { param: "messages" });
  }
  if (results.length > MOST_ANSWERS) {
    throw badRequest(`a request accepts at most ${MOST_ANSWERS} results of tools; it has ${results.length}`, {
      param: "messages",
    });
  }
  const contents = said.map(({ message, index }) => chatContent(message, index));
  return {
    definition,
    history: blocksOf(before),
    seeds: [...(takesSystem ? prefaceOf(messages) : []), ...seedsOf(before)],
    said: contents.length === 0 ? null : joined(contents),
    results: results.map(({ message, index }) => ({
      toolCallId: message.tool_call_id ?? "",
      text: textOf(chatContent(message, index)),
    })),
    clientTools: clientToolsOf(body, definition),
  };
}

/** The error for a parameter that would change the meaning of the answer. */
export function unsupported(param: string, why: string): ServerError {
  return badRequest(`${param}: ${why}`, { param, code: "unsupported_parameter" });
}

/** Refuses parameters that change the meaning of the answer; others are ignored. */
function assertSupported({ n, stop, logprobs, modalities, ...body }: ChatBody): void {
  if (n !== undefined && n !== null && n !== 1) throw unsupported("n", "an agent returns one answer");
  const stops = [stop ?? []].flat();
  if (stops.length > 0) throw unsupported("stop", "agents do not support stop sequences");
  if (logprobs === true) throw unsupported("logprobs", "agents return no log probabilities");
  if (modalities?.some((kind) => kind !== "text")) throw unsupported("modalities", "an agent answers with text");
  if (body["audio"] !== undefined && body["audio"] !== null) throw unsupported("audio", "an agent answers with text");
  for (const name of ["functions", "function_call"]) {
    if (body[name] !== undefined && body[name] !== null) throw unsupported(name, "send tools and tool_choice instead");
  }
  if (body["web_search_options"] !== undefined) throw unsupported("web_search_options", "an agent has its own tools");
  if (body.stream_options && body.stream !== true) throw unsupported("stream_options", "only with stream: true");
}

/** The response format that a client requests: `text`, `json_object`, or `json_schema` with a schema. */
export interface AskedFormat {
  readonly type: string;
  readonly schema?: unknown;
}

/** Throws `ServerError` (400) naming the parameter if the agent does not answer in this format. */
export function assertFormat(
  format: AskedFormat | null | undefined,
  { name, output, responseFormat }: AgentDefinition,
  param: string,
): void {
  if (!format || format.type === "text") return;
  const asked = JSON.stringify(format.type).slice(0, 64);
  const answersJson = output !== null || (responseFormat !== undefined && responseFormat.type !== "text");
  if (format.type === "json_object" && answersJson) return;
  if (format.type === "json_schema" && output !== null) {
    const { schema } = format;
    if (schema === undefined || shapeOf(schema) === shapeOf(output.jsonSchema)) return;
    throw unsupported(param, `"${name}" has its own output schema: ${JSON.stringify(output.jsonSchema)}`);
  }
  throw unsupported(param, `${asked} requires an agent whose definition has an \`output\`; "${name}" has none`);
}

const notesOfSchemas = new Set(["$schema", "title", "description", "additionalProperties"]);

/** A JSON schema without annotations and without the keywords that strict mode adds. */
function shapeOf(schema: unknown): string {
  const bare = (value: unknown, isNames: boolean): unknown => {
    if (Array.isArray(value)) return value.map((item) => bare(item, false));
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).filter(([name]) => isNames || !notesOfSchemas.has(name));
    return Object.fromEntries(
      entries.map(([name, item]) => [
        name,
        name === "required" && Array.isArray(item)
          ? item.map(String).toSorted((one, other) => (one < other ? -1 : 1))
          : bare(item, !isNames && name === "properties"),
      ]),
    );
  };
  return stableStringify(bare(schema, false));
}

function clientToolsOf(
  { tools, tool_choice: choice, parallel_tool_calls: parallel }: ChatBody,
  { name, clientTools }: AgentDefinition,
): ChatRequest["clientTools"] {
  if (!tools || tools.length === 0 || choice === "none") return [];
  if (!clientTools) {
    throw unsupported("tools", `"${name}" accepts no tools from its callers; its definition needs clientTools: true`);
  }
  if (choice !== undefined && choice !== null && choice !== "auto") {
    throw unsupported("tool_choice", 'an agent chooses its tools itself; send "auto" or "none"');
  }
  if (parallel === false) {
    throw unsupported("parallel_tool_calls", "an agent may call several tools at a time");
  }
  return tools.map(({ type, function: given }, index) => {
    if (type !== "function" || given === undefined) {
      throw badRequest(`tools[${index}]: only functions are accepted`, { param: `tools[${index}].type` });
    }
    const parameters: JsonObject = given.parameters ?? { type: "object", properties: {} };
    return { name: given.name, description: given.description ?? "", parameters };
  });
}

function prefaceOf(messages: readonly ChatMessage[]): ChatRequest["seeds"] {
  const texts = messages.flatMap((message, index) =>
    message.role === "system" || message.role === "developer" ? textOf(chatContent(message, index)) : [],
  );
  return texts.length === 0 ? [] : [{ role: "user", content: PREFACE + texts.join("\n\n") }];
}

/** A new agent gets calls and results as text, because another agent made the calls. */
function seedsOf(messages: readonly ChatMessage[]): ChatRequest["seeds"] {
  const results = new Map(
    messages.flatMap((message, index) =>
      message.role === "tool" ? [[message.tool_call_id ?? "", textOf(chatContent(message, index))] as const] : [],
    ),
  );
  return messages.flatMap((message, index): ChatRequest["seeds"] => {
    const { role, tool_calls: calls } = message;
    const content = chatContent(message, index);
    if (role === "user") return [{ role, content }];
    if (role !== "assistant") return [];
    const called = (calls ?? []).map(({ id, function: { name, arguments: args } }) => {
      return `(called ${name}(${args}), which gave: ${results.get(id) ?? "nothing"})`;
    });
    const text = [textOf(content), ...called].filter((part) => part !== "").join("\n");
    return text === "" ? [] : [{ role, content: text }];
  });
}

/** Joins consecutive messages of the same role. */
function blocksOf(messages: readonly ChatMessage[]): readonly Block[] {
  const blocks: Block[] = [];
  for (const [index, message] of messages.entries()) {
    const { role } = message;
    if (role === "user" || role === "assistant")
      addBlock(blocks, { role, text: shownText(chatContent(message, index)) });
  }
  return blocks;
}

/** Adds text to the last block if it has the same role, else as a new block. */
export function addBlock(blocks: Block[], { role, text }: Block): void {
  const last = blocks.at(-1);
  if (text.trim() === "") return;
  if (last?.role === role) blocks[blocks.length - 1] = { role, text: `${last.text} ${text}` };
  else blocks.push({ role, text });
}

/** Separator between joined texts. */
export const GAP = "\n\n";

/** The text of content, with its images and files as Markdown images. Two files of one name and size are different texts. */
export function shownText(content: Content): string {
  if (typeof content === "string") return content;
  const texts = content.map((part) => {
    if (part.type === "text") return part.text;
    return part.type === "file" && part.url === undefined ? fileMark(part) : `${IMAGE}${part.url})`;
  });
  return texts.join("");
}

/** Start of a Markdown image. */
const IMAGE = "![](";

/** The text of a block without its images. */
export function withoutImages(text: string): string {
  let words = "";
  let from = 0;
  // No regular expression: for each unterminated image it would search the whole remaining text.
  for (let start = text.indexOf(IMAGE); start >= 0; start = text.indexOf(IMAGE, from)) {
    const end = text.indexOf(")", start + IMAGE.length);
    if (end < 0) break;
    words += text.slice(from, start);
    from = end + 1;
  }
  return words + text.slice(from);
}

/** Whether two texts are equal except for white space: front ends trim and wrap. */
export function isSameText(one: string, other: string): boolean {
  // Compares by character: a text may have millions of words, so no normalized copy is made.
  let [at, otherAt] = [afterSpace(one, 0), afterSpace(other, 0)];
  for (;;) {
    const [next, otherNext] = [afterSpace(one, at), afterSpace(other, otherAt)];
    const [isOver, isOtherOver] = [next === one.length, otherNext === other.length];
    if (isOver || isOtherOver) return isOver && isOtherOver;
    if (next > at !== otherNext > otherAt || one.charCodeAt(next) !== other.charCodeAt(otherNext)) return false;
    [at, otherAt] = [next + 1, otherNext + 1];
  }
}

/** The index of the first character at or after `from` that is not white space. */
function afterSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

function isSpace(code: number): boolean {
  return code <= 0x20 ? code === 0x20 || (code >= 0x09 && code <= 0x0d) : code >= 0xa0 && otherSpaces.has(code);
}

/** Non-ASCII characters that `\s` matches. */
const otherSpaces: ReadonlySet<number> = new Set([
  0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029,
  0x202f, 0x205f, 0x3000, 0xfeff,
]);

function joined(contents: readonly Content[]): Content {
  const [first] = contents;
  if (first !== undefined && contents.length === 1) return first;
  if (contents.every((content) => typeof content === "string")) return contents.join(GAP);
  const gap: ContentPart = { type: "text", text: GAP };
  return contents.flatMap((content, index) => [
    ...(index === 0 ? [] : [gap]),
    ...(typeof content === "string" ? [{ type: "text", text: content } as const] : content),
  ]);
}

/**
 * A file of a user. Its type is in its `data:` URL; a file without one, or at an address, is a PDF, which is what the API takes. Throws a
 * `ServerError` that names `param`.
 */
export function fileOf(
  { url, name }: { readonly url: string | undefined; readonly name?: string | undefined },
  param: string,
): ContentPart {
  const isPlain = url !== undefined && !/^(?:data|https?):/i.test(url);
  const whole = isPlain ? `data:application/pdf;base64,${url}` : url;
  const mediaType = /^data:([^;,]+)/i.exec(whole ?? "")?.[1] ?? "application/pdf";
  const named = name === undefined || name === "" ? {} : { name };
  const checked = checkedFilePart({ type: "file", mediaType, url: whole, ...named });
  if (checked.ok) return checked.part;
  throw badRequest(`${param}: ${checked.problem}`, { param });
}

function chatContent({ role, content }: ChatMessage, index: number): Content {
  if (typeof content === "string") return content;
  const parts = (content ?? []).map((part, place): ContentPart => {
    const { type, text, refusal, image_url: image, file, input_audio: audio } = part;
    const param = `messages[${index}].content[${place}]`;
    if (type === "text" && text !== undefined) return { type, text };
    if (type === "refusal" && refusal !== undefined) return { type: "text", text: refusal };
    if (type === "image_url" && image !== undefined && role === "user") return { type: "image", url: image.url };
    if (type === "file" && file?.file_data !== undefined && role === "user") {
      return fileOf({ url: file.file_data, name: file.filename }, param);
    }
    if (type === "input_audio" && audio !== undefined && role === "user") {
      return fileOf({ url: `data:audio/${audio.format};base64,${audio.data}` }, param);
    }
    throw badRequest(`${param}: only texts, and images, files and audio of users, are accepted`, {
      param,
      code: "unsupported_value",
    });
  });
  return parts.every(({ type }) => type === "text") ? textOf(parts) : parts;
}
