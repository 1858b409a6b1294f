import { createDraft } from "../hooks/index.ts";
import { effectActor } from "./effect.ts";
import { endOf } from "./end-turn.ts";
import { releaseHeld, runHooks } from "./hook-run.ts";

/** The `onComplete` hooks: once per turn, last, when it has come to its end by itself; not after a failure or an abort. */
export const complete = effectActor<{ readonly turnId: string }>("complete", async (host, { turnId }, signal) => {
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
