import { abortable, describeValue } from "../base/index.ts";
import { type Binding, bindsAmounts, costBound, type Price } from "../budget/index.ts";
import { ModelError } from "../errors/index.ts";
import { type LanguageModel, MOST_TOKENS, promptByteBound } from "../model/index.ts";
import type { ModelRequest } from "../state/index.ts";
import { storedErrorOf } from "./effect.ts";
import type { Host } from "./host.ts";
import type { MeasuredPrompt } from "./prompt-memory.ts";
import { appendWarnings } from "./warnings.ts";

/** Longest time that counting a prompt may take. */
export const COUNT_TIMEOUT_MS = 5_000;

/** A prompt is not counted where its bytes are no more than this part of each limit: it could spare no more than that. */
const NEGLIGIBLE_PART = 1 / 1_000;

export interface Measuring {
  readonly turnId: string;
  /** Names the call. */
  readonly key: string;
  /** What binds on its accounts. */
  readonly binding: Binding;
  /** Null: not known. */
  readonly price: Price | null;
  readonly signal: AbortSignal;
}

/**
 * The prompt's tokens, and what they cannot exceed. Its bytes are taken at once without a limit on tokens or cost, under `strict`,
 * and where what no provider has told of it yet is negligible beside the limits; else it is counted by the model's adapter. A
 * count that fails, makes no sense or takes too long costs a warning and room in the budget, not the turn: then it is the
 * bytes again.
 */
export async function measurePrompt(
  host: Host,
  request: ModelRequest,
  { turnId, key, binding, price, signal }: Measuring,
): Promise<{ readonly promptTokens: number; readonly promptBound: number }> {
  const { prompts } = host.notes;
  const bound = boundOf(host.definition.model, request);
  const before = prompts.startOf(request);
  const unknown = Math.max(0, bound - (before?.bound ?? 0));
  let prompt: MeasuredPrompt = { request, bound };
  if (bindsAmounts(binding) && !binding.strict && !isNegligible(unknown, binding, price)) {
    try {
      prompt = { ...prompt, counted: await countOf(host, request, signal) };
    } catch (error) {
      signal.throwIfAborted();
      const why = storedErrorOf(error).message;
      const message = `the prompt's tokens could not be counted (${why}); its bytes are reserved instead: ${bound}`;
      appendWarnings(host, turnId, [{ code: "prompt_not_counted", message }]);
    }
  }
  const promptTokens = prompts.tokensOf(prompt, before);
  prompts.noteAsked(key, prompt);
  return { promptTokens, promptBound: Math.max(bound, promptTokens) };
}

/** Whether so many tokens, and what they cost, are next to nothing beside the limits. */
function isNegligible(tokens: number, { maxTokens, maxCostMicros }: Binding, price: Price | null): boolean {
  if (maxTokens !== undefined && tokens > maxTokens * NEGLIGIBLE_PART) return false;
  if (maxCostMicros === undefined) return true;
  return price !== null && costBound(price, tokens, 0) <= maxCostMicros * NEGLIGIBLE_PART;
}

/** A bound that an adapter cannot give is that of the bytes: it is none of a turn's conditions. */
function boundOf(model: LanguageModel, request: ModelRequest): number {
  try {
    const bound = model.boundPromptTokens?.(request);
    if (isCount(bound)) return Math.ceil(bound);
  } catch {
    // The bytes are an upper bound too.
  }
  return promptByteBound(request);
}

async function countOf(host: Host, request: ModelRequest, signal: AbortSignal): Promise<number> {
  const counting = host.definition.model.countPromptTokens(request);
  const counted = typeof counting === "number" ? counting : await inTime(host, counting, signal);
  if (isCount(counted)) return Math.ceil(counted);
  throw failure(`the model's adapter counted ${describeValue(counted)}`);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MOST_TOKENS;
}

async function inTime(host: Host, counting: Promise<number>, signal: AbortSignal): Promise<number> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const cancel = host.clock.setDelay(COUNT_TIMEOUT_MS, () =>
    reject(failure(`it took more than ${COUNT_TIMEOUT_MS} ms`)),
  );
  try {
    return await abortable(Promise.race([counting, late]), signal);
  } finally {
    cancel();
  }
}

function failure(message: string): ModelError {
  return new ModelError(message, { retryable: false, mayHaveBeenSent: false });
}
