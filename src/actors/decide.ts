import { createDraft } from "../hooks/index.ts";
import { openCallsOf, type TurnState, textOf } from "../state/index.ts";
import { argumentsTextOf, callPatchesOf } from "./call-request.ts";
import { checkOutput } from "./check-output.ts";
import { effectActor } from "./effect.ts";
import { runHooks } from "./hook-run.ts";
import type { Host } from "./host.ts";

/**
 * What has to be seen to between an answer and what follows from it: the `afterLlm` hooks, then the `beforeTools` hooks
 * where there are calls, or the output schema where there are none.
 */
export const decide = effectActor<{ readonly turnId: string }>("decide", async (host, { turnId }, signal) => {
  const turn = host.turn(turnId);
  if (!turn) return;
  const { step } = turn;
  const { hooks } = host.definition;
  const calls = () =>
    openCallsOf(turn).map(({ callId, name }) => {
      const denied = callPatchesOf(host, callId).find((patch) => patch.denied !== undefined)?.denied;
      return { callId, name, arguments: argumentsTextOf(host, callId), ...(denied === undefined ? {} : { denied }) };
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
