import { abortable } from "../base/index.ts";
import type { Binding } from "../budget/index.ts";
import { ModelError } from "../errors/index.ts";
import { type LanguageModel, promptByteBound } from "../model/index.ts";
import type { ModelRequest } from "../state/index.ts";
import type { Host } from "./host.ts";
import { appendWarnings } from "./warnings.ts";

/** Longest time that counting a prompt may take. */
export const COUNT_TIMEOUT_MS = 5_000;

export interface Measuring {
  readonly turnId: string;
  /** Names the call. */
  readonly key: string;
  /** What binds on its accounts. */
  readonly binding: Binding;
  readonly signal: AbortSignal;
}

/**
 * The prompt's tokens, and what they cannot exceed. Without a limit on tokens or cost, and under `strict`, its bytes are taken at
 * once; else it is counted by the model's adapter. A count that fails, makes no sense or takes too long costs a warning and
 * room in the budget, not the turn: then it is the bytes again.
 */
export async function measurePrompt(
  host: Host,
  request: ModelRequest,
  { turnId, key, binding, signal }: Measuring,
): Promise<{ readonly promptTokens: number; readonly promptBound: number }> {
  const { model } = host.definition;
  const bound = boundOf(model, request);
  let prompt: { request: ModelRequest; bound: number; counted?: number } = { request, bound };
  if ((binding.tokens || binding.cost) && !binding.strict) {
    try {
      prompt = { ...prompt, counted: await countOf(host, request, signal) };
    } catch (error) {
      signal.throwIfAborted();
      const why = error instanceof Error ? error.message : String(error);
      const message = `the prompt's tokens could not be counted (${why}); its bytes are reserved instead: ${bound}`;
      appendWarnings(host, turnId, [{ code: "prompt_not_counted", message }]);
    }
  }
  const { prompts } = host.notes;
  const promptTokens = prompts.tokensOf(prompt);
  prompts.noteAsked(key, prompt);
  return { promptTokens, promptBound: Math.max(bound, promptTokens) };
}

function boundOf(model: LanguageModel, request: ModelRequest): number {
  const bound = model.boundPromptTokens?.(request);
  return bound !== undefined && isCount(bound) ? Math.ceil(bound) : promptByteBound(request);
}

async function countOf(host: Host, request: ModelRequest, signal: AbortSignal): Promise<number> {
  const counting = host.definition.model.countPromptTokens(request);
  const counted = typeof counting === "number" ? counting : await inTime(host, counting, signal);
  if (isCount(counted)) return Math.ceil(counted);
  throw failure(`the model's adapter counted ${String(counted)}`);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
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
