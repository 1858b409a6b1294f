import { createDraft } from "../hooks/index.ts";
import { effectActor } from "./effect.ts";
import { runHooks } from "./hook-run.ts";
import { isFailure } from "./review-due.ts";
import { resultOfCall } from "./round-results.ts";

/** The hooks that look at one call's result: `onError` where it failed, then `afterEachTool`. */
export const reviewCall = effectActor<{ readonly turnId: string; readonly callId: string }>(
  "reviewCall",
  async (host, { turnId, callId }, signal) => {
    const step = host.call(turnId, callId)?.step;
    const result = resultOfCall(host, turnId, callId);
    if (step === undefined || !result) return;
    const { hooks } = host.definition;
    const place = { turnId, step, callId };
    const onError = { registered: hooks.onError, draft: () => createDraft("onError", result) };
    const afterEach = { registered: hooks.afterEachTool, draft: () => createDraft("afterEachTool", result) };
    const goesOn = !isFailure(result.outcome) || (await runHooks(host, { ...place, hook: "onError" }, onError, signal));
    if (goesOn) await runHooks(host, { ...place, hook: "afterEachTool" }, afterEach, signal);
    // A hook that ended the turn has looked at it as well: the round is over when every call is through.
    if (signal.aborted) return;
    host.append({ type: "call.reviewed", turnId, step, callId });
  },
);
