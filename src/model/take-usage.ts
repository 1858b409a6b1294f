import { describeValue } from "../base/index.ts";
import type { Usage } from "../state/index.ts";
import { MOST_TOKENS } from "./wire-usage.ts";

/** What an adapter told of a call's tokens. */
export interface GivenUsage {
  /** Present where both sides can be true. */
  readonly usage: Usage | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** What no call can have, in words; undefined: nothing was wrong. */
  readonly wrong: string | undefined;
}

const longestNote = 500;

/** A count that a call can have: a whole number from 0 to a billion. */
export function isTokenCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS;
}

/**
 * Reads a usage field by field. A side that no call can have is left out, so that it is counted; a part that none can have is left
 * out, so that it is billed as the rest. May throw what a field throws when it is read.
 */
export function readUsage(given: unknown): GivenUsage {
  if (typeof given !== "object" || given === null) return { usage: undefined, wrong: `usage: ${describeValue(given)}` };
  const told = given as Readonly<Record<keyof Usage, unknown>>;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens, estimated, note } = told;
  const wrong =
    wrongSide("inputTokens", inputTokens) ??
    wrongSide("outputTokens", outputTokens) ??
    wrongPart("cachedInputTokens", cachedInputTokens, inputTokens) ??
    wrongPart("cacheWriteTokens", cacheWriteTokens) ??
    wrongPart("reasoningTokens", reasoningTokens, outputTokens);
  if (!isTokenCount(inputTokens) || !isTokenCount(outputTokens)) {
    const sides = { inputTokens: known(inputTokens), outputTokens: known(outputTokens) };
    return { usage: undefined, ...sides, wrong };
  }
  const usage: { -readonly [Part in keyof Usage]: Usage[Part] } = { inputTokens, outputTokens };
  if (isTokenCount(cachedInputTokens) && cachedInputTokens <= inputTokens) usage.cachedInputTokens = cachedInputTokens;
  if (isTokenCount(cacheWriteTokens)) usage.cacheWriteTokens = cacheWriteTokens;
  if (isTokenCount(reasoningTokens) && reasoningTokens <= outputTokens) usage.reasoningTokens = reasoningTokens;
  if (estimated === true) usage.estimated = true;
  if (typeof note === "string") usage.note = note.slice(0, longestNote);
  return { usage, wrong };
}

function known(value: unknown): number | undefined {
  return isTokenCount(value) ? value : undefined;
}

function wrongSide(field: string, value: unknown): string | undefined {
  return isTokenCount(value) ? undefined : `${field}: ${describeValue(value)}`;
}

/** A part is never more than its whole, where it is told as one. */
function wrongPart(field: string, value: unknown, whole?: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const isMore = isTokenCount(value) && isTokenCount(whole) && value > whole;
  return isMore ? `${field}: ${value} of ${whole}` : wrongSide(field, value);
}
