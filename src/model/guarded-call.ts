import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse } from "../state/index.ts";
import { callFailure } from "./call-failure.ts";
import type { CallGuard } from "./call-guard.ts";
import { completeUsage, outputTokensOf, type ReportedUsage } from "./usage.ts";

/** The answer of a model while it arrives, as an adapter collects it. */
export interface AnswerInProgress {
  /** Whether only the usage is missing. */
  readonly isFinished: boolean;
  /** Why the answer so far is incomplete; `undefined` if it is complete. */
  readonly fault: ModelError | undefined;
  readonly usage: ReportedUsage | undefined;
  /** Whether `generatedText` has all that was generated so far. Default: true. */
  readonly isCountable?: boolean;
  /** All text generated so far, reasoning and calls included. */
  generatedText(): string;
  /** @param requested Names the model if the server did not. */
  answer(requested: string): Omit<ModelResponse, "usage">;
}

/** One attempt of one call. */
export interface GuardedCall {
  /** The requested model. */
  readonly model: string;
  readonly request: ModelRequest;
  /** The signal of the caller. */
  readonly signal: AbortSignal;
  readonly guard: CallGuard;
  readonly progress: AnswerInProgress;
  /** Sends the request and adds the answer to `progress`. */
  readonly exchange: () => Promise<void>;
  readonly countPrompt: (request: ModelRequest) => number | Promise<number>;
  /** Whether the cost of an answer that was cut can be counted by what has arrived. Default: true. */
  readonly isCountable?: (() => boolean) | undefined;
  /** Keys that must not appear in messages. Default: none. */
  readonly secrets?: (() => readonly string[]) | undefined;
  readonly tooLongMessages?: readonly (string | RegExp)[] | undefined;
  readonly keyAdvice?: string | undefined;
}

/**
 * Makes one attempt of one call within the limits of its guard, and completes its usage.
 * @throws ModelError with the tokens that the failed attempt has cost, as far as they are known.
 */
export async function guardedCall(call: GuardedCall): Promise<ModelResponse> {
  const { guard, progress, signal, request, countPrompt } = call;
  try {
    await guard.race(call.exchange());
  } catch (error) {
    // After the finish reason, a connection that breaks only loses the usage; another call would cost more.
    const isTransport = guard.cut !== undefined || !(error instanceof ModelError);
    const isUsable = isTransport && progress.isFinished && progress.fault === undefined && !signal.aborted;
    if (!isUsable) throw await failureOf(guard.cut ?? error, call);
  } finally {
    guard.end();
  }
  const generated = progress.generatedText();
  const countInput = (): number | Promise<number> => countPrompt(request);
  const usage = await completeUsage({ reported: progress.usage, generated, countInput });
  return { ...progress.answer(call.model), usage };
}

async function failureOf(error: unknown, call: GuardedCall): Promise<ModelError> {
  const { guard, progress, request, countPrompt, isCountable, secrets, tooLongMessages = [], keyAdvice } = call;
  const reported = progress.usage;
  const generated = progress.generatedText();
  const context = { secrets: secrets?.() ?? [], tooLongMessages, now: Date.now(), wasSent: guard.wasSent, keyAdvice };
  // A server that reports an error in its answer bills only the part that it sent. If an unstreamed answer was cut, its cost is
  // unknown.
  const isServers = error instanceof ModelError && error.status !== undefined;
  const isKnown = isServers ? generated !== "" : (isCountable?.() ?? true);
  if (!isKnown && reported === undefined) return callFailure(error, { ...context, partial: undefined });
  const { tokens } = await outputTokensOf(reported?.outputTokens, generated);
  const inputTokens = reported?.inputTokens ?? (await countPrompt(request));
  return callFailure(error, { ...context, partial: { inputTokens, outputTokens: tokens } });
}
