import { type WireObject, wireObject } from "./wire-values.ts";
import type { Usage } from "../state/index.ts";
import { byteBound, estimateTokens } from "./token-count.ts";
import { describeValue } from "../base/index.ts";

/** The token counts that an adapter reported for a call. */
export interface GivenUsage {
  /** Present if both input and output tokens are plausible. */
  readonly usage: Usage | undefined;
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** The implausible field and its value; `undefined` if all are plausible. */
  readonly wrong: string | undefined;
}

const longestNote = 500;

/** Whether a count is plausible for one call: a whole number from 0 to a billion. */
export function isTokenCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MOST_TOKENS;
}

/**
 * Reads a usage field by field. Implausible input or output tokens are left out and counted instead; an implausible detail, such as
 * cached tokens, is left out and billed at the normal rate. Throws if reading a field throws.
 */
export function readUsage(given: unknown): GivenUsage {
  if (typeof given !== "object" || given === null) return { usage: undefined, wrong: `usage: ${describeValue(given)}` };
  const told = given as Readonly<Record<keyof Usage, unknown>>;
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, longCacheWriteTokens } = told;
  const { reasoningTokens, estimated, note } = told;
  const wrong =
    wrongSide("inputTokens", inputTokens) ??
    wrongSide("outputTokens", outputTokens) ??
    wrongPart("cachedInputTokens", cachedInputTokens, inputTokens) ??
    wrongPart("cacheWriteTokens", cacheWriteTokens) ??
    wrongPart("longCacheWriteTokens", longCacheWriteTokens, cacheWriteTokens) ??
    wrongPart("reasoningTokens", reasoningTokens, outputTokens);
  if (!isTokenCount(inputTokens) || !isTokenCount(outputTokens)) {
    const sides = { inputTokens: known(inputTokens), outputTokens: known(outputTokens) };
    return { usage: undefined, ...sides, wrong };
  }
  const usage: { -readonly [Part in keyof Usage]: Usage[Part] } = { inputTokens, outputTokens };
  if (isTokenCount(cachedInputTokens) && cachedInputTokens <= inputTokens) usage.cachedInputTokens = cachedInputTokens;
  if (isTokenCount(cacheWriteTokens)) {
    usage.cacheWriteTokens = cacheWriteTokens;
    if (isTokenCount(longCacheWriteTokens) && longCacheWriteTokens <= cacheWriteTokens) {
      usage.longCacheWriteTokens = longCacheWriteTokens;
    }
  }
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

/** A detail must not exceed its total, if both are reported. */
function wrongPart(field: string, value: unknown, whole?: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const isMore = isTokenCount(value) && isTokenCount(whole) && value > whole;
  return isMore ? `${field}: ${value} of ${whole}` : wrongSide(field, value);
}

interface CompleteUsage {
  /** The server's report. */
  readonly reported: ReportedUsage | undefined;
  /** All generated text. */
  readonly generated: string;
  /** Counts the prompt locally. */
  readonly countInput: () => number | Promise<number>;
}

/** Most texts have four or five bytes per token; above this ratio the text is counted for comparison. */
const doubtfulBytesPerToken = 8;
const doubtfulFrom = 64;

/**
 * A call's usage as reported by the server. A missing or implausible input or output count is counted locally, which sets `estimated`.
 * `note` names implausible values.
 */
export function completeUsage({ reported, generated, countInput }: CompleteUsage): Usage | Promise<Usage> {
  const { inputTokens, outputTokens, nonsense, ...parts } = reported ?? {};
  const complete = (input: number, output: OutputTokens): Usage => {
    const usage = { ...parts, inputTokens: input, outputTokens: output.tokens };
    const note = output.note ?? (nonsense === undefined ? undefined : `the server reported ${nonsense}`);
    if (inputTokens !== undefined && !output.isCounted && note === undefined) return usage;
    const isEstimated = inputTokens === undefined || output.isCounted;
    return { ...usage, ...(isEstimated ? { estimated: true } : {}), ...(note === undefined ? {} : { note }) };
  };
  const output = outputTokensOf(outputTokens, generated);
  if (inputTokens !== undefined && !(output instanceof Promise)) return complete(inputTokens, output);
  return (async () => {
    const counted = await output;
    return complete(inputTokens ?? (await countInput()), counted);
  })();
}

interface OutputTokens {
  readonly tokens: number;
  readonly isCounted: boolean;
  readonly note?: string;
}

/** The reported output tokens. If they are implausibly low for the text, a local count (an estimate for a very long text). */
export function outputTokensOf(reported: number | undefined, generated: string): OutputTokens | Promise<OutputTokens> {
  const bytes = byteBound(generated);
  const isTold = reported !== undefined && (reported > 0 || bytes === 0);
  if (isTold && (bytes <= doubtfulFrom || bytes <= reported * doubtfulBytesPerToken)) {
    return { tokens: reported, isCounted: false };
  }
  return estimateTokens(generated).then((tokens) => {
    if (!isTold) return { tokens, isCounted: true };
    if (tokens <= reported * 2) return { tokens: reported, isCounted: false };
    const note = `the server reported ${reported} output tokens for a text of about ${tokens}`;
    return { tokens, isCounted: true, note };
  });
}

/** The token counts that a server reported for a call. Missing or implausible counts are absent. */
export interface ReportedUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly longCacheWriteTokens?: number;
  readonly reasoningTokens?: number;
  /** An implausible count as it was reported. */
  readonly nonsense?: string;
}

/** Largest plausible count for a single call. */
export const MOST_TOKENS = 1_000_000_000;

/**
 * Combines the usage in the chunks of an answer: complete in the last chunk, as running totals in each chunk, or input and output in
 * different chunks. Running totals only grow, so later zeros and nulls change nothing.
 */
export class UsageReport {
  #told: WireObject | undefined;
  #nonsense: string | undefined;

  /** Merges a usage object; ignores other values. */
  add(value: unknown): void {
    const usage = wireObject(value);
    if (usage === undefined) return;
    this.#told = this.#told === undefined ? usage : merged(this.#told, usage);
    this.#nonsense ??= nonsenseIn(usage);
  }

  /** The usage so far, from any of the common field names; `undefined` if no count was reported. */
  read(): ReportedUsage | undefined {
    const told = this.#told ?? {};
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

type Input = Pick<ReportedUsage, "inputTokens" | "cachedInputTokens" | "cacheWriteTokens" | "longCacheWriteTokens">;

function inputOf(told: WireObject): Input | undefined {
  const details = wireObject(told["prompt_tokens_details"] ?? told["input_tokens_details"]);
  // Both counts are separate from `input_tokens`, but included in `prompt_tokens`.
  const read = usedCount(told["cache_read_input_tokens"]);
  const created = usedCount(told["cache_creation_input_tokens"]);
  const cached = first(details?.["cached_tokens"], told["prompt_cache_hit_tokens"], told["cached_tokens"], read);
  const written = first(details?.["cache_write_tokens"], created);
  const prompt = usedCount(told["prompt_tokens"]);
  let inputTokens = prompt ?? usedCount(told["input_tokens"]);
  if (inputTokens === undefined) return undefined;
  if (prompt === undefined && details === undefined) inputTokens += (read ?? 0) + (created ?? 0);
  // If the cached count exceeds the input, the server reported it separately.
  else if ((cached ?? 0) > inputTokens) inputTokens += cached ?? 0;
  // Every call has a prompt.
  if (inputTokens === 0 || inputTokens > MOST_TOKENS) return undefined;
  const parts = cached === undefined ? {} : { cachedInputTokens: Math.min(cached, inputTokens) };
  if (written === undefined || written === 0) return { inputTokens, ...parts };
  const cacheWriteTokens = Math.min(written, inputTokens - Math.min(cached ?? 0, inputTokens));
  const long = first(
    wireObject(told["cache_creation"])?.["ephemeral_1h_input_tokens"],
    wireObject(details?.["cache_write_tokens_details"])?.["ttl_12h_tokens"],
  );
  const longWrites = long === undefined ? {} : { longCacheWriteTokens: Math.min(long, cacheWriteTokens) };
  return { inputTokens, ...parts, cacheWriteTokens, ...longWrites };
}

type Output = Pick<ReportedUsage, "outputTokens" | "reasoningTokens">;

function outputOf(told: WireObject, inputTokens: number | undefined): Output | undefined {
  const generated = usedCount(told["completion_tokens"]) ?? usedCount(told["output_tokens"]);
  if (generated === undefined) return undefined;
  const details = wireObject(told["completion_tokens_details"] ?? told["output_tokens_details"]);
  const reasoning = first(details?.["reasoning_tokens"], told["reasoning_tokens"]);
  // Some servers include reasoning only in the total, others report it beside the output; both are billed as output.
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

/** A count of 0 or more, also if it is sent as text; `undefined` for everything else, such as negative and infinite numbers. */
function usedCount(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
  return typeof count === "number" && Number.isFinite(count) && count >= 0 ? Math.ceil(count) : undefined;
}

/** Merges field by field: keeps the larger of two counts. */
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
