import { type Content, type Message, type ModelRequest, type ModelTool, textOf } from "../state/index.ts";

/** `bytes` is a hard upper bound, counted at once; `tokenizer` is close for OpenAI's models and loads a table of 120 MB on first use. */
export type TokenCounting = "bytes" | "tokenizer";

/** Tokens an image is taken for. Covers high detail in current models, except `gpt-4o-mini`, which counts up to 48,169. */
export const imageTokenBound = 2_500;

/** What providers wrap around each message: role, separators. OpenAI's own is 4. */
const messageOverhead = 8;
/** Around a call in the history or a tool in the list: JSON punctuation and keys. */
const entryOverhead = 32;
/** The text that providers put before a list of tools; the longest published one is 346. */
const toolsOverhead = 400;
/** What opens the answer. */
const answerOverhead = 8;

/** Longest text given to the tokenizer at once: its time grows with the square of a run without spaces. */
const sliceLength = 1_024;

/** A hard upper bound of the tokens in a text: a byte-level tokenizer never makes more tokens than UTF-8 bytes. */
export function byteBound(text: string): number {
  return Buffer.byteLength(text);
}

/** Tokens of a text in `o200k_base`. Special tokens in it are plain text. Long runs without a space are counted in parts, a little too high. */
export async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const { countTokens: count } = await import("gpt-tokenizer/encoding/o200k_base");
  let tokens = 0;
  for (let start = 0; start < text.length; ) {
    const end = sliceEnd(text, start);
    tokens += count(text.slice(start, end), { disallowedSpecial: new Set<string>() });
    start = end;
  }
  return tokens;
}

function sliceEnd(text: string, start: number): number {
  const limit = start + sliceLength;
  if (limit >= text.length) return text.length;
  const space = text.lastIndexOf(" ", limit - 1);
  if (space > start) return space;
  const last = text.charCodeAt(limit - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return splitsPair ? limit - 1 : limit;
}

const messageBounds = new WeakMap<Message, number>();
const toolBounds = new WeakMap<ModelTool, number>();

/**
 * Upper bound of a prompt's tokens: texts, calls, reasoning that is sent back, tool schemas, and what providers wrap
 * around them. In `bytes` mode it answers at once, and what it counted of a message or tool it remembers.
 */
export function promptTokenBound(request: ModelRequest, mode: "bytes", imageTokens?: number): number;
export function promptTokenBound(
  request: ModelRequest,
  mode: TokenCounting,
  imageTokens?: number,
): number | Promise<number>;
export function promptTokenBound(
  request: ModelRequest,
  mode: TokenCounting,
  imageTokens = imageTokenBound,
): number | Promise<number> {
  const fixed = fixedTokens(request, imageTokens);
  if (mode === "tokenizer") return countTokens(promptText(request)).then((tokens) => tokens + fixed);
  let bytes = fixed;
  for (const message of request.messages) bytes += remembered(messageBounds, message, messageText);
  for (const tool of request.tools ?? []) bytes += remembered(toolBounds, tool, toolText);
  return bytes + byteBound(formatText(request));
}

function fixedTokens(request: ModelRequest, imageTokens: number): number {
  const tools = request.tools?.length ?? 0;
  let tokens = answerOverhead + (tools === 0 ? 0 : toolsOverhead + tools * entryOverhead);
  for (const message of request.messages) {
    tokens += messageOverhead + imageCount(message.content) * imageTokens;
    if (message.role === "assistant") tokens += (message.toolCalls?.length ?? 0) * entryOverhead;
  }
  return tokens;
}

function imageCount(content: Content): number {
  if (typeof content === "string") return 0;
  return content.reduce((count, part) => (part.type === "image" ? count + 1 : count), 0);
}

function remembered<Item extends object>(
  bounds: WeakMap<Item, number>,
  item: Item,
  textOfItem: (item: Item) => string,
): number {
  let bound = bounds.get(item);
  if (bound === undefined) {
    bound = byteBound(textOfItem(item));
    bounds.set(item, bound);
  }
  return bound;
}

function promptText(request: ModelRequest): string {
  const texts = [...request.messages.map(messageText), ...(request.tools ?? []).map(toolText)];
  return `${texts.join("\n")}${formatText(request)}`;
}

function messageText(message: Message): string {
  let text = textOf(message.content);
  if (message.role === "tool") return text + message.providerId;
  if (message.role !== "assistant") return text;
  for (const call of message.toolCalls ?? []) text += call.providerId + call.name + call.arguments;
  return message.reasoning === undefined ? text : text + JSON.stringify(message.reasoning);
}

function toolText(tool: ModelTool): string {
  return tool.name + tool.description + JSON.stringify(tool.parameters);
}

function formatText(request: ModelRequest): string {
  return request.responseFormat?.type === "json_schema" ? JSON.stringify(request.responseFormat) : "";
}
