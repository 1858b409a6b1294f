import { setImmediate as nextEventLoopTurn } from "node:timers/promises";
import type { ModelRequest } from "../state/index.ts";
import { fixedTokens, formatText, imageTokenBound, type PromptPart, promptParts } from "./prompt-parts.ts";

/** Longest text given to the tokenizer at once: its time grows with the square of a run without spaces. */
const sliceLength = 1_024;
/** So much is counted before others have their turn: about 5 ms. */
const uninterruptedLength = 65_536;

/** A hard upper bound of the tokens in a text: a byte-level tokenizer never makes more tokens than UTF-8 bytes. */
export function byteBound(text: string): number {
  return Buffer.byteLength(text);
}

/**
 * Tokens of a text in `o200k_base`. Special tokens in it are plain text. Long runs without a space are counted in parts, a little
 * too high. The tokenizer is loaded on first use (65 MB).
 */
export async function countTokens(text: string): Promise<number> {
  if (text === "") return 0;
  const { countTokens: count } = await import("gpt-tokenizer/encoding/o200k_base");
  let tokens = 0;
  let rested = 0;
  for (let start = 0; start < text.length; ) {
    const end = sliceEnd(text, start);
    tokens += count(text.slice(start, end), { disallowedSpecial: new Set<string>() });
    start = end;
    if (start - rested < uninterruptedLength) continue;
    rested = start;
    await nextEventLoopTurn();
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

const knownBounds = new WeakMap<object, number>();
const knownCounts = new WeakMap<object, number>();

/**
 * Upper bound of a prompt's tokens by its bytes: texts, calls, reasoning that is sent back, tool schemas, and what providers
 * wrap around them. It answers at once; what it measured of a message or tool it remembers.
 */
export function promptByteBound(request: ModelRequest, imageTokens = imageTokenBound): number {
  let bytes = fixedTokens(request, imageTokens) + byteBound(formatText(request));
  for (const part of promptParts(request)) bytes += boundOf(part);
  return bytes;
}

function boundOf({ owner, text }: PromptPart): number {
  let bound = knownBounds.get(owner);
  if (bound === undefined) {
    bound = byteBound(text());
    knownBounds.set(owner, bound);
  }
  return bound;
}

/**
 * A prompt's tokens as `o200k_base` counts them, with what providers wrap around; never above `promptByteBound`. What was
 * counted of a message or tool is remembered, so that a conversation is counted once. Long texts are counted bit by bit.
 */
export async function countPromptTokens(request: ModelRequest, imageTokens = imageTokenBound): Promise<number> {
  let tokens = fixedTokens(request, imageTokens) + (await countTokens(formatText(request)));
  let counted = 0;
  for (const { owner, text } of promptParts(request)) {
    let count = knownCounts.get(owner);
    if (count === undefined) {
      const words = text();
      count = await countTokens(words);
      knownCounts.set(owner, count);
      counted += words.length;
      if (counted >= uninterruptedLength) {
        counted = 0;
        await nextEventLoopTurn();
      }
    }
    tokens += count;
  }
  return tokens;
}
