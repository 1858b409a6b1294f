import { TurnInterruptedError } from "../errors/index.ts";
import { createDraft, type HookDrafts } from "../hooks/index.ts";
import { type HookName, openCallsOf, textOf, type TurnState } from "../state/index.ts";
import { answerWithResult } from "./answer-with-result.ts";
import { checkOutput } from "./check-output.ts";
import { callEffect, turnEffect } from "./effect.ts";
import { endOf } from "./end-turn.ts";
import { type HookSet, releaseHeld, runHooks } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { inputHooks } from "./take-inputs.ts";
import { argumentsTextOf, callPatchesOf, isFailure, callPosition, resultOfCall, resultsOfRound } from "./tool-calls.ts";

/** Runs the `afterUserInput` hooks, once per turn, before the input is used. */
export const receive = turnEffect("receive", async (host, { turnId }, signal) => {
  const place = { turnId, step: 1, hook: "afterUserInput" } as const;
  if (await runHooks(host, place, hooksAt.afterUserInput(host, turnId), signal)) {
    host.append({ type: "hooks.settled", turnId, step: 1, phase: "input" });
  }
});

type SetOf<Name extends HookName> = (host: Host, turnId: string) => HookSet<HookDrafts[Name]>;
type ReviewSetOf<Name extends HookName> = (host: Host, result: ReviewedResult) => HookSet<HookDrafts[Name]>;
type ReviewedResult = NonNullable<ReturnType<typeof resultOfCall>>;

/** The hooks of each name, and the draft that each of them gets at this point of the turn. */
export const hooksAt: {
  readonly [Name in "afterUserInput" | "afterLlm" | "beforeTools" | "afterTools" | "onComplete"]: SetOf<Name>;
} & { readonly [Name in "afterEachTool" | "onError"]: ReviewSetOf<Name> } = {
  afterUserInput: (host, turnId) => inputHooks(host, turnId),
  afterLlm: (host, turnId) => ({
    registered: host.definition.hooks.afterLlm,
    draft: () => {
      const turn = host.turn(turnId);
      const response = turn ? responseOf(host, turn) : noResponse;
      return createDraft("afterLlm", { messages: host.history(), calls: openCalls(host, turnId), response });
    },
  }),
  beforeTools: (host, turnId) => ({
    registered: host.definition.hooks.beforeTools,
    draft: () => createDraft("beforeTools", { messages: host.history(), calls: openCalls(host, turnId) }),
  }),
  afterTools: (host, turnId) => ({
    registered: host.definition.hooks.afterTools,
    draft: () => createDraft("afterTools", { messages: host.history(), results: resultsOfRound(host, turnId) }),
  }),
  afterEachTool: (host, result) => ({
    registered: host.definition.hooks.afterEachTool,
    draft: () => createDraft("afterEachTool", result),
  }),
  onError: (host, result) => ({
    registered: host.definition.hooks.onError,
    draft: () => createDraft("onError", result),
  }),
  onComplete: (host, turnId) => ({
    registered: host.definition.hooks.onComplete,
    draft: () => {
      const turn = host.turn(turnId);
      if (!turn) throw new TurnInterruptedError(`turn ${turnId} is not open any more`);
      const { outcome, stopReason, text } = endOf(host, turn);
      return createDraft("onComplete", { messages: host.history(), end: { outcome, stopReason, text } });
    },
  }),
};

/** The calls of the newest answer, as hooks see them. */
function openCalls(host: Host, turnId: string) {
  const turn = host.turn(turnId);
  return (turn ? openCallsOf(turn) : []).map(({ callId, name }) => {
    const denied = callPatchesOf(host, callPosition(callId)).find((patch) => patch.denied !== undefined)?.denied;
    return {
      callId,
      name,
      arguments: argumentsTextOf(host, callPosition(callId)),
      ...(denied === undefined ? {} : { denied }),
    };
  });
}

/**
 * Runs the hooks after an answer: `afterLlm`, then `beforeTools` if the answer has calls, or the validation against the output
 * schema if it has none.
 */
export const decide = turnEffect("decide", async (host, { turnId }, signal) => {
  const turn = host.turn(turnId);
  if (!turn) return;
  const { step } = turn;
  const afterLlm = hooksAt.afterLlm(host, turnId);
  if (!(await runHooks(host, { turnId, step, hook: "afterLlm" }, afterLlm, signal))) return;
  if (turn.openCallIds.length > 0) {
    const beforeTools = hooksAt.beforeTools(host, turnId);
    if (!(await runHooks(host, { turnId, step, hook: "beforeTools" }, beforeTools, signal))) return;
  } else {
    await checkOutput(host, turnId, signal);
    if (signal.aborted) return;
  }
  host.append({ type: "hooks.settled", turnId, step, phase: "answer" });
});

function responseOf(host: Host, turn: TurnState) {
  const inference = turn.execution.currentStep?.inference;
  return {
    text: textOf(host.message(`${turn.turnId}:${turn.step}`)?.content ?? ""),
    finishReason: inference?.finishReason ?? "unknown",
    usage: inference?.usage ?? noResponse.usage,
  };
}

const noResponse = { text: "", finishReason: "unknown", usage: { inputTokens: 0, outputTokens: 0 } } as const;

/** Runs the `afterTools` hooks of a round once every call of it has its result, and lets a tool end the turn. */
export const settleRound = turnEffect("settleRound", async (host, { turnId }, signal) => {
  releaseHeld(host, turnId);
  const step = host.turn(turnId)?.step ?? 1;
  await runHooks(host, { turnId, step, hook: "afterTools" }, hooksAt.afterTools(host, turnId), signal);
  // A hook may have ended the turn, which aborts the signal once its entry is delivered.
  while (host.undelivered().length > 0) await host.delivered();
  if (!signal.aborted) await answerWithResult(host, turnId, signal);
});

/** Runs the hooks that review one call's result: `onError` if it failed, then `afterEachTool`. */
export const reviewCall = callEffect("reviewCall", async (host, { turnId, callId }, signal) => {
  const step = host.call(turnId, callId)?.step;
  const result = resultOfCall(host, turnId, callId);
  if (step === undefined || !result) return;
  const place = { turnId, step, callId };
  const onError = hooksAt.onError(host, result);
  const afterEach = hooksAt.afterEachTool(host, result);
  const goesOn = !isFailure(result.outcome) || (await runHooks(host, { ...place, hook: "onError" }, onError, signal));
  if (goesOn) await runHooks(host, { ...place, hook: "afterEachTool" }, afterEach, signal);
  // Appended even after a hook that ended the turn: the round ends when every call has been reviewed.
  if (signal.aborted) return;
  host.append({ type: "call.reviewed", turnId, step, callId });
});

/** Runs the `onComplete` hooks once per turn, at its end; not after a failure or an abort. */
export const complete = turnEffect("complete", async (host, { turnId }, signal) => {
  releaseHeld(host, turnId);
  const turn = host.turn(turnId);
  if (!turn) return;
  const step = Math.max(1, turn.step);
  if (await runHooks(host, { turnId, step, hook: "onComplete" }, hooksAt.onComplete(host, turnId), signal)) {
    host.append({ type: "hooks.settled", turnId, step, phase: "end" });
  }
});
