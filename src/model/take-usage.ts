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

const sides = ["inputTokens", "outputTokens"] as const;
const parts = ["cachedInputTokens", "cacheWriteTokens", "reasoningTokens"] as const;
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
  let wrong: string | undefined;
  const counts: { -readonly [Field in (typeof sides | typeof parts)[number]]?: number } = {};
  for (const field of sides) {
    const value = told[field];
    if (isTokenCount(value)) counts[field] = value;
    else wrong ??= `${field}: ${describeValue(value)}`;
  }
  for (const field of parts) {
    const value = told[field];
    if (isTokenCount(value)) counts[field] = value;
    else if (value !== undefined && value !== null) wrong ??= `${field}: ${describeValue(value)}`;
  }
  const { inputTokens, outputTokens } = counts;
  if (inputTokens === undefined || outputTokens === undefined) {
    return { usage: undefined, inputTokens, outputTokens, wrong };
  }
  const { estimated, note } = told;
  return {
    usage: {
      ...counts,
      inputTokens,
      outputTokens,
      ...(estimated === true ? { estimated } : {}),
      ...(typeof note === "string" ? { note: note.slice(0, longestNote) } : {}),
    },
    wrong,
  };
}
