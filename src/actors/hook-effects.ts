import type { ParsedOutput } from "../agents/index.ts";
import { createDraft } from "../hooks/index.ts";
import { type Message, naturalStopReason, openCallsOf, stepMetadata, textOf, type TurnState } from "../state/index.ts";
import { callEffect, turnEffect } from "./effect.ts";
import { endOf } from "./end-turn.ts";
import { releaseHeld, runHooks } from "./hook-run.ts";
import type { Host } from "./host.ts";
import { inTime, LONGEST_CHECK_MS } from "./in-time.ts";
import { argumentsTextOf, callPatchesOf, isFailure, callPosition, resultOfCall, resultsOfRound } from "./tool-calls.ts";

/** Runs the `afterUserInput` hooks, once per turn, before the input is used. */
export const receive = turnEffect("receive", async (host, { turnId }, signal) => {
  const place = { turnId, step: 1, hook: "afterUserInput" } as const;
  const registered = host.definition.hooks.afterUserInput;
  const draft = () => createDraft("afterUserInput", { messages: host.history(), input: host.memory(turnId).prompt });
  if (await runHooks(host, place, { registered, draft }, signal)) {
    host.append({ type: "hooks.settled", turnId, step: 1, phase: "input" });
  }
});

/**
 * Runs the hooks after an answer: `afterLlm`, then `beforeTools` if the answer has calls, or the validation against the output
 * schema if it has none.
 */
export const decide = turnEffect("decide", async (host, { turnId }, signal) => {
  const turn = host.turn(turnId);
  if (!turn) return;
  const { step } = turn;
  const { hooks } = host.definition;
  const calls = () =>
    openCallsOf(turn).map(({ callId, name }) => {
      const denied = callPatchesOf(host, callPosition(callId)).find((patch) => patch.denied !== undefined)?.denied;
      return {
        callId,
        name,
        arguments: argumentsTextOf(host, callPosition(callId)),
        ...(denied === undefined ? {} : { denied }),
      };
    });
  const afterLlm = {
    registered: hooks.afterLlm,
    draft: () =>
      createDraft("afterLlm", { messages: host.history(), calls: calls(), response: responseOf(host, turn) }),
  };
  if (!(await runHooks(host, { turnId, step, hook: "afterLlm" }, afterLlm, signal))) return;
  if (turn.openCallIds.length > 0) {
    const beforeTools = {
      registered: hooks.beforeTools,
      draft: () => createDraft("beforeTools", { messages: host.history(), calls: calls() }),
    };
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
    usage: inference?.usage ?? { inputTokens: 0, outputTokens: 0 },
  };
}

/** How many times an answer that does not match its schema is requested again. */
const REPAIRS = 1;

/**
 * Validates a final answer against the definition's output schema, and journals the parsed value with transforms applied. An
 * invalid answer is requested once more, with its mistakes; then the turn fails.
 */
async function checkOutput(host: Host, turnId: string, signal: AbortSignal): Promise<void> {
  const { output } = host.definition;
  const turn = host.turn(turnId);
  if (!output || !turn?.checksOutput || turn.outputFits !== null) return;
  const { stopSignals, isContinuationRequested } = turn.execution.continuation;
  if (stopSignals.length > 0 || isContinuationRequested) return;
  // A refusal is not an answer in a wrong form: it is not repaired, and ends the turn as a refusal.
  if (naturalStopReason(turn.execution) === "refusal") return;
  const { step } = turn;
  const messageId = `${turnId}:${step}`;
  const text = textOf(host.message(messageId)?.content ?? "");
  await host.committed();
  if (signal.aborted) return;
  const checked = await host.inFlight.run(`${messageId}:output`, signal, (callSignal) =>
    inTime(host, output.parse(text), { ms: LONGEST_CHECK_MS, signal: callSignal, late: lateCheck }),
  );
  if (signal.aborted) return;
  const place = { type: "output.checked", turnId, step, messageId } as const;
  if (checked.ok) {
    host.append({ ...place, valid: true, value: checked.value });
    return;
  }
  const { issues } = checked;
  if (turn.outputRepairs >= REPAIRS) {
    host.append({ ...place, valid: false, issues });
    return;
  }
  const repair = repairMessage(host, turnId, step, issues);
  host.append({ ...place, valid: false, issues, repairMessageId: repair.id }, { messages: [repair] });
}

function lateCheck(): ParsedOutput {
  return { ok: false, issues: `its check took more than ${LONGEST_CHECK_MS} ms` };
}

/** The message contains the schema, because a server that ignores the response format has not shown it to the model. */
function repairMessage(host: Host, turnId: string, step: number, issues: string): Message {
  const schema = JSON.stringify(host.definition.output?.sentSchema);
  return {
    id: `${turnId}:${step}:repair`,
    role: "user",
    createdAt: host.clock.now(),
    content: `Your answer does not fit the required output: ${issues}. Answer again with nothing but JSON that fits this JSON Schema: ${schema}`,
    origin: "runtime",
    metadata: stepMetadata(host.identity.agentId, { turnId, step, isTrace: true }),
  };
}

/** Runs the `afterTools` hooks of a round once every call of it has its result. */
export const settleRound = turnEffect("settleRound", async (host, { turnId }, signal) => {
  releaseHeld(host, turnId);
  const step = host.turn(turnId)?.step ?? 1;
  const registered = host.definition.hooks.afterTools;
  const draft = () => createDraft("afterTools", { messages: host.history(), results: resultsOfRound(host, turnId) });
  await runHooks(host, { turnId, step, hook: "afterTools" }, { registered, draft }, signal);
});

/** Runs the hooks that review one call's result: `onError` if it failed, then `afterEachTool`. */
export const reviewCall = callEffect("reviewCall", async (host, { turnId, callId }, signal) => {
  const step = host.call(turnId, callId)?.step;
  const result = resultOfCall(host, turnId, callId);
  if (step === undefined || !result) return;
  const { hooks } = host.definition;
  const place = { turnId, step, callId };
  const onError = { registered: hooks.onError, draft: () => createDraft("onError", result) };
  const afterEach = { registered: hooks.afterEachTool, draft: () => createDraft("afterEachTool", result) };
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
  const registered = host.definition.hooks.onComplete;
  const draft = () => {
    const { outcome, stopReason, text } = endOf(host, turn);
    return createDraft("onComplete", { messages: host.history(), end: { outcome, stopReason, text } });
  };
  if (await runHooks(host, { turnId, step, hook: "onComplete" }, { registered, draft }, signal)) {
    host.append({ type: "hooks.settled", turnId, step, phase: "end" });
  }
});
