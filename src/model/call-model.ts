import { readableThrown } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse, Usage } from "../state/index.ts";
import { completeUsage, isTokenCount } from "./usage.ts";
import type { GenerateOptions, LanguageModel, ModelDelta } from "./language-model.ts";
import { type TakenAnswer, takeAnswer } from "./take-answer.ts";
import { byteBound, countPromptTokens, promptByteBound } from "./token-count.ts";

/** An answer ready for the journal, and the warnings for the agent. */
export interface ModelAnswer {
  readonly response: ModelResponse;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

/**
 * One attempt of one call: the only place where an adapter's answer comes in. Whatever the adapter does, the result
 * fits its schema and is bounded, and an error can be read.
 * @throws ModelError for an unusable answer; otherwise what the adapter threw.
 */
export async function callModel(
  model: LanguageModel,
  request: ModelRequest,
  { signal, onDelta }: GenerateOptions,
): Promise<ModelAnswer> {
  let isOver = false;
  const listen = (given: unknown): void => {
    const delta = isOver ? undefined : deltaOf(given);
    if (delta) onDelta?.(delta);
  };
  let given: unknown;
  try {
    given = await model.generate(request, onDelta === undefined ? { signal } : { signal, onDelta: listen });
  } catch (thrown) {
    throw adapterError(thrown);
  } finally {
    isOver = true;
  }
  const taken = takeAnswer(given, model.name);
  const usage = taken.usage.usage ?? (await counted(request, taken));
  return { response: { ...taken.answer, usage }, warnings: warningsOf(taken, usage) };
}

/** A valid delta, or undefined. Deltas are shown and never stored, so an invalid one is simply not shown. */
function deltaOf(given: unknown): ModelDelta | undefined {
  try {
    const { type, text } = given as Partial<ModelDelta>;
    return (type === "text" || type === "reasoning") && typeof text === "string" ? { type, text } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The reported usage where it is plausible; the rest is counted here, or estimated by its bytes if it cannot be
 * counted.
 */
async function counted(request: ModelRequest, { answer, usage: told }: TakenAnswer): Promise<Usage> {
  const { content, toolCalls, reasoning } = answer;
  const calls = toolCalls.map((call) => call.name + call.arguments).join("");
  const generated = content + calls + (reasoning === undefined ? "" : JSON.stringify(reasoning));
  const { inputTokens, outputTokens } = told;
  const reported = {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
  };
  try {
    const countInput = (): number | Promise<number> => countPromptTokens(request);
    return { ...(await completeUsage({ reported, generated, countInput })), estimated: true };
  } catch {
    const bytes = { inputTokens: promptByteBound(request), outputTokens: byteBound(generated) };
    return { ...bytes, ...reported, estimated: true };
  }
}

function warningsOf({ usage: told, lost }: TakenAnswer, { note }: Usage): ModelAnswer["warnings"] {
  const warnings = [];
  if (told.wrong !== undefined) {
    const place = told.usage === undefined ? "it was counted here" : "it was left out";
    const message = `the model's adapter reported ${told.wrong}, which no call can have; ${place}`;
    warnings.push({ code: "usage_not_true", message });
  } else if (note !== undefined) warnings.push({ code: "usage_not_true", message: note });
  if (lost !== undefined) {
    const message = `the answer's reasoning cannot be kept, and is not sent back to the model: ${lost}`;
    warnings.push({ code: "reasoning_lost", message });
  }
  return warnings;
}

/** Longest wait that an adapter may ask for before the next attempt, in milliseconds. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** A model error decides about retries and is settled by its token counts, so implausible counts are removed. */
function adapterError(thrown: unknown): unknown {
  const error = readableThrown(thrown);
  if (!(error instanceof ModelError) || isPlain(error)) return error;
  const { message, retryable, status, retryAfterMs, mayHaveBeenSent } = error;
  const { partialInputTokens, partialOutputTokens } = error;
  return new ModelError(message, {
    retryable: flag(retryable, false),
    mayHaveBeenSent: flag(mayHaveBeenSent, true),
    cause: error,
    ...(Number.isSafeInteger(status) ? { status } : {}),
    ...(typeof retryAfterMs === "number" && retryAfterMs >= 0
      ? { retryAfterMs: Math.ceil(Math.min(retryAfterMs, LONGEST_WAIT_MS)) }
      : {}),
    ...(isTokenCount(partialInputTokens) ? { partialInputTokens } : {}),
    ...(isTokenCount(partialOutputTokens) ? { partialOutputTokens } : {}),
    ...(error.details?.["kind"] === "context_length" ? { details: { kind: "context_length" } } : {}),
  });
}

function flag(value: unknown, otherwise: boolean): boolean {
  return typeof value === "boolean" ? value : otherwise;
}

function isPlain(error: ModelError): boolean {
  const { retryable, status, retryAfterMs, mayHaveBeenSent, partialInputTokens, partialOutputTokens } = error;
  return (
    typeof retryable === "boolean" &&
    typeof mayHaveBeenSent === "boolean" &&
    (status === undefined || Number.isSafeInteger(status)) &&
    (retryAfterMs === undefined || isWait(retryAfterMs)) &&
    (partialInputTokens === undefined || isTokenCount(partialInputTokens)) &&
    (partialOutputTokens === undefined || isTokenCount(partialOutputTokens))
  );
}

function isWait(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LONGEST_WAIT_MS;
}
