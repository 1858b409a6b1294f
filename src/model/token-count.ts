import {
  type Content,
  KnownBeginnings,
  type Message,
  type ModelRequest,
  type ModelTool,
  notesOn,
  textOf,
} from "../state/index.ts";
import { fileTokensOf } from "./file-tokens.ts";
import { hasMedia, type MediaPart, sentArguments, toolImagesCaption } from "./prompt-form.ts";
import { outputToolText } from "./output-tool.ts";
import { reasoningSize } from "./reasoning-size.ts";
import { countedId, sentName } from "./wire-calls.ts";
import { setImmediate as nextEventLoopTurn } from "node:timers/promises";

/** Longest text passed to the tokenizer at once: its time grows with the square of a run without spaces. */
const sliceLength = 1_024;
/** Characters that are counted before yielding to the event loop: about 5 ms. */
const uninterruptedLength = 65_536;

/** A hard upper bound of the tokens in a text: a byte-level tokenizer never makes more tokens than UTF-8 bytes. */
export function byteBound(text: string): number {
  return Buffer.byteLength(text);
}

/** Size of the tokenizer's cache of words. With more, evicting a word takes longer than counting it. */
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
 * Tokens of a text in `o200k_base`. Special tokens in it count as plain text. Long runs without a space are split, which gives a slightly
 * higher count.
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

/** Of a longer text only a sample is counted: `mostCounted` characters, in pieces of `sampleLength` spread over the text. */
const mostCounted = 262_144;
const sampleLength = 4_096;

/**
 * Approximate tokens of a text in `o200k_base`, in bounded time: texts of up to 262,144 characters are counted, longer ones are sampled.
 * Never above `byteBound`.
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
  // Searches only the slice: `lastIndexOf` on the complete text would scan back to its start for each slice.
  const space = text.slice(start, limit).lastIndexOf(" ");
  if (space > 0) return start + space;
  const last = text.charCodeAt(limit - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return splitsPair ? limit - 1 : limit;
}

/** The size of a prompt's messages: tokens of their texts (or an upper bound), of overhead and of files, and numbers of images and files. */
interface MessagesSize {
  readonly tokens: number;
  readonly overhead: number;
  readonly images: number;
  readonly files: number;
  readonly fileTokens: number;
  /** The role of the last message. */
  readonly last: Message["role"] | undefined;
}

const nothing: MessagesSize = { tokens: 0, overhead: 0, images: 0, files: 0, fileTokens: 0, last: undefined };
/** For shorter prompts the sizes of all messages are added up each time. */
const FEWEST_KEPT = 16;
/** Known sizes of prompts, by byte bound and by token count. */
const boundSizes = new KnownBeginnings<MessagesSize>(FEWEST_KEPT);
const countSizes = new KnownBeginnings<MessagesSize>(FEWEST_KEPT);

/** The messages that were added since a measured prompt. */
function newIn(sizes: KnownBeginnings<MessagesSize>, { messages }: ModelRequest) {
  const known = sizes.find(messages);
  return known
    ? { known, before: known.value, fresh: messages.slice(known.messages.length) }
    : { known, before: nothing, fresh: messages };
}

/** The size of a prompt that extends another one by messages with this many tokens. */
function goneOn(before: MessagesSize, fresh: readonly Message[], tokens: number): MessagesSize {
  let { overhead, images, files, fileTokens, last } = before;
  for (const message of fresh) {
    if (takesFiller(last, message.role)) overhead += fillerOverhead;
    last = message.role;
    overhead += messageOverhead;
    for (const part of mediaOf(message.content)) {
      if (part.type === "image") images += 1;
      else {
        files += 1;
        fileTokens += fileTokensOf(part);
      }
    }
    // Images and files of a tool result are sent in a separate message.
    if (message.role === "tool" && hasMedia(message.content)) overhead += messageOverhead + fillerOverhead;
    if (message.role === "assistant") overhead += (message.toolCalls?.length ?? 0) * entryOverhead;
  }
  return { tokens: before.tokens + tokens, overhead, images, files, fileTokens, last };
}

/** Whether a filler message is sent between messages of these roles. */
function takesFiller(last: Message["role"] | undefined, role: Message["role"]): boolean {
  if (role === "assistant") return last !== "user" && last !== "tool";
  return role !== "tool" && last === "tool";
}

/** Tokens to reserve for images and files. */
export interface MediaTokens {
  /** For each image. Default 2,500. */
  readonly imageTokens?: number | undefined;
  /** For each file. Default: by its pages, its length or its size. */
  readonly fileTokens?: number | undefined;
}

/** The tokens of a prompt without the texts of its tools and its format. */
function tokensOf(size: MessagesSize, request: ModelRequest, media: MediaTokens): number {
  const { imageTokens = imageTokenBound, fileTokens } = media;
  const { tools = [], responseFormat } = request;
  // The schema of the answer may be sent as one more tool.
  const count = tools.length + (responseFormat?.type === "json_schema" ? 1 : 0);
  const around = answerOverhead + (count === 0 ? 0 : toolsOverhead + count * entryOverhead);
  const end = size.last === "assistant" || size.last === "system" ? fillerOverhead : 0;
  const files = fileTokens === undefined ? size.fileTokens : size.files * fileTokens;
  return around + end + size.overhead + size.images * imageTokens + files + size.tokens;
}

/**
 * Upper bound of a prompt's tokens by its bytes: texts, calls, reasoning that is sent back, tool schemas, and the providers' overhead.
 * Synchronous; results are cached per message and tool.
 */
export function promptByteBound(request: ModelRequest, media: MediaTokens = {}): number {
  const { known, before, fresh } = newIn(boundSizes, request);
  let bytes = 0;
  for (const message of fresh) bytes += boundOf(message, messageBytes);
  const size = goneOn(before, fresh, bytes);
  if (fresh.length > 0) boundSizes.keep(request.messages, size, known);
  let others = byteBound(formatText(request));
  for (const tool of request.tools ?? []) others += boundOf(tool, (one) => byteBound(toolText(one)));
  return tokensOf(size, request, media) + others;
}

function boundOf<Owner extends object>(owner: Owner, bytesOfOwner: (owner: Owner) => number): number {
  const notes = notesOn(owner);
  notes.bound ??= bytesOfOwner(owner);
  return notes.bound;
}

/**
 * A prompt's tokens in `o200k_base`, with the providers' overhead; never above `promptByteBound`. Counts are cached per message and tool,
 * so that a conversation is counted once. Synchronous if little is new and the tokenizer is loaded; long texts are counted in slices.
 */
export function countPromptTokens(request: ModelRequest, media: MediaTokens = {}): number | Promise<number> {
  const { known, before, fresh } = newIn(countSizes, request);
  const format = formatText(request);
  const texts: PromptText[] = format === "" ? [] : [{ owner: undefined, text: format, opaqueTokens: 0 }];
  let length = format.length;
  const note = (owner: object, { text, opaqueTokens }: MessageText): void => {
    length += text.length;
    texts.push({ owner, text, opaqueTokens });
  };
  for (const message of fresh) if (notesOn(message).tokens === undefined) note(message, messageText(message));
  for (const tool of request.tools ?? []) {
    if (notesOn(tool).tokens === undefined) note(tool, { text: toolText(tool), opaqueTokens: 0 });
  }
  const total = (formatTokens: number): number => {
    let tokens = 0;
    for (const message of fresh) tokens += notesOn(message).tokens ?? 0;
    const size = goneOn(before, fresh, tokens);
    if (fresh.length > 0) countSizes.keep(request.messages, size, known);
    let others = formatTokens;
    for (const tool of request.tools ?? []) others += notesOn(tool).tokens ?? 0;
    return tokensOf(size, request, media) + others;
  };
  if (texts.length === 0) return total(0);
  if (countText === undefined || length >= uninterruptedLength) return countBitByBit(texts).then(total);
  let formatTokens = 0;
  for (const { owner, text, opaqueTokens } of texts) {
    let tokens = opaqueTokens;
    for (const [start, end] of slicesOf(text)) tokens += countText(text.slice(start, end));
    if (owner) notesOn(owner).tokens = tokens;
    else formatTokens += tokens;
  }
  return total(formatTokens);
}

interface PromptText {
  /** The object by which the count is cached. */
  readonly owner: object | undefined;
  readonly text: string;
  /** Tokens of the fields that the text leaves out. */
  readonly opaqueTokens: number;
}

type MessageText = Omit<PromptText, "owner">;

/** Caches the counts; returns the tokens of texts without an owner. */
async function countBitByBit(texts: readonly PromptText[]): Promise<number> {
  let tokens = 0;
  let rested = 0;
  for (const { owner, text, opaqueTokens } of texts) {
    const count = opaqueTokens + (await countTokens(text));
    if (owner) notesOn(owner).tokens = count;
    else tokens += count;
    rested += text.length;
    if (rested < uninterruptedLength) continue;
    rested = 0;
    await nextEventLoopTurn();
  }
  return tokens;
}

/** Tokens assumed for an image. Covers high detail in current models, except `gpt-4o-mini`, which counts up to 48,169. */
export const imageTokenBound = 2_500;

/** The overhead that providers add to each message: role and separators. OpenAI's is 4. */
const messageOverhead = 8;
/** Tokens of a filler message. */
const fillerOverhead = 41;
/** The overhead of a call in the history or a tool in the list: JSON punctuation and keys. */
const entryOverhead = 32;
/** The text that providers put before a list of tools; the longest published one is 346. */
const toolsOverhead = 400;
/** The tokens that open the answer. */
const answerOverhead = 8;

/** The schema of the answer as sent by a tool; in the instructions, or in its own field, it is shorter. */
function formatText({ responseFormat }: ModelRequest): string {
  return responseFormat?.type === "json_schema" ? outputToolText(responseFormat.schema) : "";
}

const noMedia: readonly never[] = [];

function mediaOf(content: Content): readonly MediaPart[] {
  return typeof content === "string" ? noMedia : content.filter((part) => part.type !== "text");
}

function messageText(message: Message): MessageText {
  let text = textOf(message.content);
  if (message.role === "tool") {
    const id = countedId(message);
    const caption = hasMedia(message.content) ? toolImagesCaption(id) : "";
    return { text: text + id + caption, opaqueTokens: 0 };
  }
  if (message.role !== "assistant") return { text, opaqueTokens: 0 };
  const texts = sentArguments(message);
  for (const [index, call] of (message.toolCalls ?? []).entries()) {
    text += countedId(call) + sentName(call.name) + (texts[index] ?? "");
  }
  if (message.reasoning === undefined) return { text, opaqueTokens: 0 };
  const reasoning = reasoningSize(message.reasoning);
  return { text: text + reasoning.text, opaqueTokens: reasoning.opaqueTokens };
}

/** An upper bound for the bytes of `messageText`. */
function messageBytes(message: Message): number {
  if (message.role === "tool" && hasMedia(message.content)) return byteBound(messageText(message).text);
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

/** A prompt as this process measured it: by its bytes, or counted. */
export interface MeasuredPrompt {
  readonly request: ModelRequest;
  /** Its upper bound by bytes. */
  readonly bound: number;
  /** Its tokens as counted locally; `undefined` if only its bytes were measured. */
  readonly counted?: number;
}

/** Tokenizers differ by at most this factor on any human text; a larger difference is a fixed addition of the provider. */
const mostTooLow = 2;

interface AnsweredPrompt extends MeasuredPrompt {
  /** Its tokens as reported by the provider. */
  readonly reported: number;
}

/**
 * The last answered prompt of a live agent. A conversation grows at its end, so most prompts extend the previous one, whose tokens the
 * provider has reported. Not stored.
 */
export class PromptMemory {
  #asked: { readonly key: string; readonly prompt: MeasuredPrompt } | undefined;
  #answered: AnsweredPrompt | undefined;
  /** Reported tokens divided by locally counted tokens, for the last prompt that was counted: at least 1. */
  #tooLow = 1;

  /** Called before a call with this key and prompt is proposed. */
  noteAsked(key: string, prompt: MeasuredPrompt): void {
    this.#asked = { key, prompt };
  }

  /** Called when the provider has reported the input tokens of the call with this key. */
  noteAnswered(key: string, reported: number): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked?.key !== key) return;
    const { counted } = asked.prompt;
    this.#answered = { ...asked.prompt, reported };
    if (counted !== undefined) this.#tooLow = Math.min(mostTooLow, Math.max(1, reported / Math.max(1, counted)));
  }

  /** The last answered prompt, if this prompt begins with it. */
  startOf(request: ModelRequest): AnsweredPrompt | undefined {
    const before = this.#answered;
    return before !== undefined && beginsWith(request, before.request) ? before : undefined;
  }

  /**
   * The best estimate of the prompt's tokens. If it begins with the last answered prompt (`start`), the sum of the reported tokens of
   * `start` and the measured tokens of the rest, scaled by the error of the last count, at most its bytes. Otherwise the measured tokens.
   */
  tokensOf({ request, bound, counted }: MeasuredPrompt, start = this.startOf(request)): number {
    if (start === undefined) return counted ?? bound;
    const restBound = Math.max(0, bound - start.bound);
    if (counted === undefined) return start.reported + restBound;
    // If the start was not counted, the rest is the scaled total minus the reported tokens of the start.
    const rest =
      start.counted === undefined
        ? counted * this.#tooLow - start.reported
        : Math.max(0, counted - start.counted) * this.#tooLow;
    return start.reported + Math.min(Math.max(0, Math.ceil(rest)), restBound);
  }
}

/** Whether the prompt has the same tools and format as `before`, and begins with its messages. */
function beginsWith(request: ModelRequest, before: ModelRequest): boolean {
  if (request.messages.length < before.messages.length) return false;
  if (!isSame(request.tools ?? [], before.tools ?? [])) return false;
  if (!isSame(request.responseFormat, before.responseFormat)) return false;
  return before.messages.every((message, index) => isSameMessage(request.messages[index], message));
}

function isSameMessage(one: Message | undefined, other: Message): boolean {
  if (one === other) return true;
  if (one === undefined || one.role !== other.role) return false;
  // Instructions and edited messages are new objects in each call; ids and times are not sent.
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
