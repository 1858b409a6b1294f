import {
  type Content,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  type ModelTool,
  notesOn,
  textOf,
} from "../state/index.ts";
import { sentArguments, toolImagesCaption } from "./openai-wire.ts";
import { schemaText } from "./structured-output.ts";
import { countedId, sentName } from "./wire-calls.ts";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";

/** Longest text given to the tokenizer at once: its time grows with the square of a run without spaces. */
const sliceLength = 1_024;
/** Characters that are counted before the event loop gets a turn: about 5 ms. */
const uninterruptedLength = 65_536;

/** A hard upper bound of the tokens in a text: a byte-level tokenizer never makes more tokens than UTF-8 bytes. */
export function byteBound(text: string): number {
  return Buffer.byteLength(text);
}

/** Words whose tokens the tokenizer keeps. With more, to make room for another one takes longer than to count it. */
const mostKeptWords = 10_000;

type CountText = (text: string) => number;
let countText: CountText | undefined;

/** The tokenizer, loaded on first use (80 MB). */
async function tokenizer(): Promise<CountText> {
  if (countText === undefined) {
    const { countTokens: count, setMergeCacheSize } = await import("gpt-tokenizer/encoding/o200k_base");
    setMergeCacheSize(mostKeptWords);
    const options = { disallowedSpecial: new Set<string>() };
    countText = (text) => count(text, options);
  }
  return countText;
}

/**
 * Tokens of a text in `o200k_base`. Special tokens in it count as plain text. Long runs without a space are counted in
 * parts, which gives slightly too many.
 */
export async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const count = await tokenizer();
  let tokens = 0;
  let rested = 0;
  for (const [start, end] of slicesOf(text)) {
    tokens += count(text.slice(start, end));
    if (end - rested < uninterruptedLength) continue;
    rested = end;
    await nextEventLoopTurn();
  }
  return tokens;
}

/** Of a longer text a part is counted: so many characters, in pieces of this length from all over it. */
const mostCounted = 262_144;
const sampleLength = 4_096;

/**
 * About as many tokens as a text has in `o200k_base`, in a time that does not grow with it: texts of up to 262,144 characters are
 * counted, of longer ones a sample. Never above `byteBound`.
 */
export async function estimateTokens(text: string): Promise<number> {
  if (text.length <= mostCounted) return await countTokens(text);
  const samples: string[] = [];
  const last = mostCounted / sampleLength - 1;
  for (let index = 0; index <= last; index += 1) {
    const start = Math.floor((index / last) * (text.length - sampleLength));
    samples.push(text.slice(start, start + sampleLength));
  }
  const tokens = await countTokens(samples.join(""));
  return Math.min(byteBound(text), Math.ceil((tokens * text.length) / mostCounted));
}

function* slicesOf(text: string): Generator<readonly [start: number, end: number]> {
  for (let start = 0; start < text.length; ) {
    const end = sliceEnd(text, start);
    yield [start, end];
    start = end;
  }
}

function sliceEnd(text: string, start: number): number {
  const limit = start + sliceLength;
  if (limit >= text.length) return text.length;
  // In the slice alone: in a text without spaces the whole text before it would be searched, for each slice.
  const space = text.slice(start, limit).lastIndexOf(" ");
  if (space > 0) return start + space;
  const last = text.charCodeAt(limit - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return splitsPair ? limit - 1 : limit;
}

/** What a prompt's messages take: tokens of their texts, or an upper bound of those; their overhead, and their images. */
interface MessagesSize {
  readonly tokens: number;
  readonly overhead: number;
  readonly images: number;
  /** The role of the last message. */
  readonly last: Message["role"] | undefined;
}

const nothing: MessagesSize = { tokens: 0, overhead: 0, images: 0, last: undefined };
/** Of shorter prompts the sizes of all messages are added up. */
const FEWEST_KEPT = 16;
/** The sizes of prompts by bound and by count. */
const boundSizes = new KnownBeginnings<MessagesSize>(FEWEST_KEPT);
const countSizes = new KnownBeginnings<MessagesSize>(FEWEST_KEPT);

/** The messages that are new since a prompt that was measured. */
function newIn(sizes: KnownBeginnings<MessagesSize>, { messages }: ModelRequest) {
  const known = sizes.find(messages);
  return known
    ? { known, before: known.value, fresh: messages.slice(known.messages.length) }
    : { known, before: nothing, fresh: messages };
}

/** The size of a prompt that goes on from another with so many tokens of new messages. */
function goneOn(before: MessagesSize, fresh: readonly Message[], tokens: number): MessagesSize {
  let { overhead, images, last } = before;
  for (const message of fresh) {
    if (takesFiller(last, message.role)) overhead += fillerOverhead;
    last = message.role;
    const count = imageCount(message.content);
    images += count;
    overhead += messageOverhead;
    // Images of a tool's result are sent in a separate message.
    if (message.role === "tool" && count > 0) overhead += messageOverhead + fillerOverhead;
    if (message.role === "assistant") overhead += (message.toolCalls?.length ?? 0) * entryOverhead;
  }
  return { tokens: before.tokens + tokens, overhead, images, last };
}

/** Whether a short message is sent between messages of these roles. */
function takesFiller(last: Message["role"] | undefined, role: Message["role"]): boolean {
  if (role === "assistant") return last !== "user" && last !== "tool";
  return role !== "tool" && last === "tool";
}

/** The tokens of a prompt besides the texts of its tools and its format. */
function tokensOf(size: MessagesSize, { tools = [] }: ModelRequest, imageTokens: number): number {
  const around = answerOverhead + (tools.length === 0 ? 0 : toolsOverhead + tools.length * entryOverhead);
  const end = size.last === "assistant" || size.last === "system" ? fillerOverhead : 0;
  return around + end + size.overhead + size.images * imageTokens + size.tokens;
}

/**
 * Upper bound of a prompt's tokens by its bytes: texts, calls, reasoning that is sent back, tool schemas, and the
 * providers' overhead. Synchronous; results are cached per message and tool.
 */
export function promptByteBound(request: ModelRequest, imageTokens = imageTokenBound): number {
  const { known, before, fresh } = newIn(boundSizes, request);
  let bytes = 0;
  for (const message of fresh) bytes += boundOf(message, messageBytes);
  const size = goneOn(before, fresh, bytes);
  if (fresh.length > 0) boundSizes.keep(request.messages, size, known);
  let others = byteBound(formatText(request));
  for (const tool of request.tools ?? []) others += boundOf(tool, (one) => byteBound(toolText(one)));
  return tokensOf(size, request, imageTokens) + others;
}

function boundOf<Owner extends object>(owner: Owner, bytesOfOwner: (owner: Owner) => number): number {
  const notes = notesOn(owner);
  notes.bound ??= bytesOfOwner(owner);
  return notes.bound;
}

/**
 * A prompt's tokens as `o200k_base` counts them, with the providers' overhead; never above `promptByteBound`. Counts
 * are cached per message and tool, so that a conversation is counted once. Synchronous if little is new and the
 * tokenizer is loaded; long texts are counted in slices.
 */
export function countPromptTokens(request: ModelRequest, imageTokens = imageTokenBound): number | Promise<number> {
  const { known, before, fresh } = newIn(countSizes, request);
  const format = formatText(request);
  const texts: PromptText[] = format === "" ? [] : [{ owner: undefined, text: format }];
  let length = format.length;
  const note = <Owner extends object>(owner: Owner, textOfOwner: (owner: Owner) => string): void => {
    if (notesOn(owner).tokens !== undefined) return;
    const text = textOfOwner(owner);
    length += text.length;
    texts.push({ owner, text });
  };
  for (const message of fresh) note(message, messageText);
  for (const tool of request.tools ?? []) note(tool, toolText);
  const total = (formatTokens: number): number => {
    let tokens = 0;
    for (const message of fresh) tokens += notesOn(message).tokens ?? 0;
    const size = goneOn(before, fresh, tokens);
    if (fresh.length > 0) countSizes.keep(request.messages, size, known);
    let others = formatTokens;
    for (const tool of request.tools ?? []) others += notesOn(tool).tokens ?? 0;
    return tokensOf(size, request, imageTokens) + others;
  };
  if (texts.length === 0) return total(0);
  if (countText === undefined || length >= uninterruptedLength) return countBitByBit(texts).then(total);
  let formatTokens = 0;
  for (const { owner, text } of texts) {
    let tokens = 0;
    for (const [start, end] of slicesOf(text)) tokens += countText(text.slice(start, end));
    if (owner) notesOn(owner).tokens = tokens;
    else formatTokens += tokens;
  }
  return total(formatTokens);
}

interface PromptText {
  /** The object under which the count is cached. */
  readonly owner: object | undefined;
  readonly text: string;
}

/** Returns the tokens of the text that has no owner. */
async function countBitByBit(texts: readonly PromptText[]): Promise<number> {
  let tokens = 0;
  let rested = 0;
  for (const { owner, text } of texts) {
    const count = await countTokens(text);
    if (owner) notesOn(owner).tokens = count;
    else tokens += count;
    rested += text.length;
    if (rested < uninterruptedLength) continue;
    rested = 0;
    await nextEventLoopTurn();
  }
  return tokens;
}

/**
 * Tokens assumed for an image. Covers high detail in current models, except `gpt-4o-mini`, which counts up to 48,169.
 */
export const imageTokenBound = 2_500;

/** The overhead that providers add to each message: role, separators. OpenAI's is 4. */
const messageOverhead = 8;
/** A message that is sent where servers refuse the next one otherwise. */
const fillerOverhead = 41;
/** The overhead of a call in the history or a tool in the list: JSON punctuation and keys. */
const entryOverhead = 32;
/** The text that providers put before a list of tools; the longest published one is 346. */
const toolsOverhead = 400;
/** The tokens that open the answer. */
const answerOverhead = 8;

/** The schema that the answer has to fit, as text: in the instructions, or in a field of its own, which is shorter. */
function formatText({ responseFormat }: ModelRequest): string {
  return responseFormat?.type === "json_schema" ? schemaText(responseFormat.schema) : "";
}

function imageCount(content: Content): number {
  if (typeof content === "string") return 0;
  return content.reduce((count, part) => (part.type === "image" ? count + 1 : count), 0);
}

function messageText(message: Message): string {
  let text = textOf(message.content);
  if (message.role === "tool") {
    const id = countedId(message);
    return text + id + (imageCount(message.content) === 0 ? "" : toolImagesCaption(id));
  }
  if (message.role !== "assistant") return text;
  const texts = sentArguments(message);
  for (const [index, call] of (message.toolCalls ?? []).entries()) {
    text += countedId(call) + sentName(call.name) + (texts[index] ?? "");
  }
  return message.reasoning === undefined ? text : text + JSON.stringify(message.reasoning);
}

/** The bytes of `messageText`, at most. */
function messageBytes(message: Message): number {
  if (message.role === "tool" && imageCount(message.content) > 0) return byteBound(messageText(message));
  let bytes = byteBound(textOf(message.content));
  if (message.role === "tool") return bytes + byteBound(countedId(message));
  if (message.role !== "assistant") return bytes;
  const texts = sentArguments(message);
  for (const [index, call] of (message.toolCalls ?? []).entries()) {
    bytes += byteBound(countedId(call)) + sentName(call.name).length + byteBound(texts[index] ?? "");
  }
  return message.reasoning === undefined ? bytes : bytes + byteBound(JSON.stringify(message.reasoning));
}

function toolText(tool: ModelTool): string {
  return tool.name + tool.description + JSON.stringify(tool.parameters);
}

/** A prompt as it was measured here: by its bytes, or counted. */
export interface MeasuredPrompt {
  readonly request: ModelRequest;
  /** Its upper bound by bytes. */
  readonly bound: number;
  /** Its tokens as counted here; `undefined` if only its bytes were measured. */
  readonly counted?: number;
}

/**
 * Tokenizers differ by no more than this on any human text; a larger difference is a fixed addition of the provider.
 */
const mostTooLow = 2;

interface AnsweredPrompt extends MeasuredPrompt {
  /** Its tokens as the provider reported them. */
  readonly reported: number;
}

/**
 * The last answered prompt of a live agent. A conversation grows at its end, so most prompts begin with the one before, whose
 * tokens the provider has reported. It is not stored.
 */
export class PromptMemory {
  #asked: { readonly key: string; readonly prompt: MeasuredPrompt } | undefined;
  #answered: AnsweredPrompt | undefined;
  /** The provider's report divided by the count made here, for the last prompt that was counted: at least 1. */
  #tooLow = 1;

  /** A call with this key is about to be proposed with this prompt. */
  noteAsked(key: string, prompt: MeasuredPrompt): void {
    this.#asked = { key, prompt };
  }

  /** The provider has reported so many input tokens for the call with this key. */
  noteAnswered(key: string, reported: number): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked?.key !== key) return;
    const { counted } = asked.prompt;
    this.#answered = { ...asked.prompt, reported };
    if (counted !== undefined) this.#tooLow = Math.min(mostTooLow, Math.max(1, reported / Math.max(1, counted)));
  }

  /** The last answered prompt, if this one begins with it. */
  startOf(request: ModelRequest): AnsweredPrompt | undefined {
    const before = this.#answered;
    return before !== undefined && beginsWith(request, before.request) ? before : undefined;
  }

  /**
   * The best estimate of the prompt's tokens. If it begins with the last answered prompt (`start`): that one's tokens as reported,
   * and the rest as measured, raised by the error of the last count, at most its bytes. Otherwise as measured.
   */
  tokensOf({ request, bound, counted }: MeasuredPrompt, start = this.startOf(request)): number {
    if (start === undefined) return counted ?? bound;
    const restBound = Math.max(0, bound - start.bound);
    if (counted === undefined) return start.reported + restBound;
    // If the start was not counted, the rest is the whole less the start's report.
    const rest =
      start.counted === undefined
        ? counted * this.#tooLow - start.reported
        : Math.max(0, counted - start.counted) * this.#tooLow;
    return start.reported + Math.min(Math.max(0, Math.ceil(rest)), restBound);
  }
}

/** Whether the prompt has the same tools and format, and its first messages are those of the other. */
function beginsWith(request: ModelRequest, before: ModelRequest): boolean {
  if (request.messages.length < before.messages.length) return false;
  if (!isSame(request.tools ?? [], before.tools ?? [])) return false;
  if (!isSame(request.responseFormat, before.responseFormat)) return false;
  return before.messages.every((message, index) => isSameMessage(request.messages[index], message));
}

function isSameMessage(one: Message | undefined, other: Message): boolean {
  if (one === other) return true;
  if (one === undefined || one.role !== other.role) return false;
  // Instructions and edited messages are new objects for each call; ids and times are not sent.
  return isSame(sentParts(one), sentParts(other));
}

function sentParts(message: Message): readonly unknown[] {
  const { content } = message;
  if (message.role === "assistant") return [content, message.toolCalls ?? null, message.reasoning ?? null];
  return message.role === "tool" ? [content, message.providerId] : [content];
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}
