import { type WireObject, wireObject } from "./openai-wire.ts";
import type { Usage } from "../state/index.ts";
import { byteBound, countTokens } from "./token-count.ts";
import { describeValue } from "../base/index.ts";

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

export interface CompleteUsage {
  /** What the server told. */
  readonly reported: ReportedUsage | undefined;
  /** All that was generated. */
  readonly generated: string;
  /** Counts the prompt here. */
  readonly countInput: () => number | Promise<number>;
}

/** A token has four or five bytes of most texts; only where it would have more than this, the text is counted to compare. */
const doubtfulBytesPerToken = 8;
const doubtfulFrom = 64;

/**
 * A call's usage: as the server reports it, where a side is missing or cannot be true as it is counted here, which marks it
 * `estimated`. What cannot be true is told in `note`.
 */
export async function completeUsage({ reported, generated, countInput }: CompleteUsage): Promise<Usage> {
  const { inputTokens, outputTokens, nonsense, ...parts } = reported ?? {};
  const output = await outputTokensOf(outputTokens, generated);
  const isEstimated = inputTokens === undefined || output.isCounted;
  const note = output.note ?? (nonsense === undefined ? undefined : `the server reported ${nonsense}`);
  return {
    ...parts,
    inputTokens: inputTokens ?? (await countInput()),
    outputTokens: output.tokens,
    ...(isEstimated ? { estimated: true } : {}),
    ...(note === undefined ? {} : { note }),
  };
}

/** Output tokens as they were reported, unless there is more text than they can hold; then as they are counted here. */
export async function outputTokensOf(
  reported: number | undefined,
  generated: string,
): Promise<{ readonly tokens: number; readonly isCounted: boolean; readonly note?: string }> {
  const bytes = byteBound(generated);
  const isTold = reported !== undefined && (reported > 0 || bytes === 0);
  if (isTold && (bytes <= doubtfulFrom || bytes <= reported * doubtfulBytesPerToken)) {
    return { tokens: reported, isCounted: false };
  }
  const tokens = await countTokens(generated);
  if (!isTold) return { tokens, isCounted: true };
  if (tokens <= reported * 2) return { tokens: reported, isCounted: false };
  return {
    tokens,
    isCounted: true,
    note: `the server reported ${reported} output tokens for a text of about ${tokens}`,
  };
}

/** What a server has told of a call's tokens. A side that it did not tell, or told as no call can have it, is absent. */
export interface ReportedUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
  /** A count that no call can have, as it was told. */
  readonly nonsense?: string;
}

/** More than this no single call can have used. */
export const MOST_TOKENS = 1_000_000_000;

/**
 * Puts together what the chunks of an answer tell of its usage: all of it in a last one, in each one what was used so far,
 * input in one and output in another. What was used so far only grows, so that zeros and nulls take nothing back.
 */
export class UsageReport {
  #told: WireObject = {};
  #nonsense: string | undefined;

  /** Adds a usage object; anything else is no usage. */
  add(value: unknown): void {
    const usage = wireObject(value);
    if (usage === undefined) return;
    this.#told = merged(this.#told, usage);
    this.#nonsense ??= nonsenseIn(usage);
  }

  /** What was told so far, in the spellings that are about; `undefined` when neither side was. */
  read(): ReportedUsage | undefined {
    const told = this.#told;
    const input = inputOf(told);
    const output = outputOf(told, input?.inputTokens);
    const nonsense = this.#nonsense === undefined ? {} : { nonsense: this.#nonsense };
    const reported = { ...input, ...output, ...nonsense };
    return Object.keys(reported).length === 0 ? undefined : reported;
  }
}

const sides = ["prompt_tokens", "input_tokens", "completion_tokens", "output_tokens"] as const;

function nonsenseIn(usage: WireObject): string | undefined {
  for (const side of sides) {
    const value = usage[side];
    if (value === undefined || value === null || (usedCount(value) ?? Number.POSITIVE_INFINITY) <= MOST_TOKENS)
      continue;
    return `${side}: ${JSON.stringify(value).slice(0, 40)}`;
  }
  return undefined;
}

type Input = Pick<ReportedUsage, "inputTokens" | "cachedInputTokens" | "cacheWriteTokens">;

function inputOf(told: WireObject): Input | undefined {
  const details = wireObject(told["prompt_tokens_details"] ?? told["input_tokens_details"]);
  // These two are told beside the input where it is called `input_tokens`, and as parts of it where it is `prompt_tokens`.
  const read = usedCount(told["cache_read_input_tokens"]);
  const created = usedCount(told["cache_creation_input_tokens"]);
  const cached = first(details?.["cached_tokens"], told["prompt_cache_hit_tokens"], told["cached_tokens"], read);
  const written = first(details?.["cache_write_tokens"], created);
  const prompt = usedCount(told["prompt_tokens"]);
  let inputTokens = prompt ?? usedCount(told["input_tokens"]);
  if (inputTokens === undefined) return undefined;
  if (prompt === undefined && details === undefined) inputTokens += (read ?? 0) + (created ?? 0);
  // What is part of something cannot be more than it: then it stands beside it.
  else if ((cached ?? 0) > inputTokens) inputTokens += cached ?? 0;
  // There is no call without a prompt.
  if (inputTokens === 0 || inputTokens > MOST_TOKENS) return undefined;
  return {
    inputTokens,
    ...(cached === undefined ? {} : { cachedInputTokens: Math.min(cached, inputTokens) }),
    ...(written === undefined || written === 0
      ? {}
      : { cacheWriteTokens: Math.min(written, inputTokens - Math.min(cached ?? 0, inputTokens)) }),
  };
}

type Output = Pick<ReportedUsage, "outputTokens" | "reasoningTokens">;

function outputOf(told: WireObject, inputTokens: number | undefined): Output | undefined {
  const generated = usedCount(told["completion_tokens"]) ?? usedCount(told["output_tokens"]);
  if (generated === undefined) return undefined;
  const details = wireObject(told["completion_tokens_details"] ?? told["output_tokens_details"]);
  const reasoning = first(details?.["reasoning_tokens"], told["reasoning_tokens"]);
  // Some count reasoning in the total only, some beside the output; it is billed as output all the same.
  const beyond = inputTokens === undefined ? 0 : (usedCount(told["total_tokens"]) ?? 0) - inputTokens;
  const withReasoning = (reasoning ?? 0) > generated ? generated + (reasoning ?? 0) : generated;
  const outputTokens = beyond <= MOST_TOKENS ? Math.max(withReasoning, beyond) : withReasoning;
  if (outputTokens > MOST_TOKENS) return undefined;
  return { outputTokens, ...(reasoning === undefined ? {} : { reasoningTokens: Math.min(reasoning, outputTokens) }) };
}

function first(...values: readonly unknown[]): number | undefined {
  for (const value of values) {
    const count = usedCount(value);
    if (count !== undefined) return count;
  }
  return undefined;
}

/** A count of 0 or more, also where it is sent as text. Everything else, negative and infinite numbers too, is none. */
function usedCount(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isFinite(count) && count >= 0 ? Math.ceil(count) : undefined;
}

/** Field by field, the larger count or the newer part. */
function merged(one: WireObject, other: WireObject, depth = 0): WireObject {
  const result: Record<string, unknown> = { ...one };
  for (const [field, value] of Object.entries(other)) {
    const before = Object.hasOwn(one, field) ? one[field] : undefined;
    const part = wireObject(value);
    if (part !== undefined && depth === 0) result[field] = merged(wireObject(before) ?? {}, part, depth + 1);
    else {
      const count = usedCount(value);
      if (count !== undefined) result[field] = Math.max(usedCount(before) ?? 0, count);
    }
  }
  return result;
}
