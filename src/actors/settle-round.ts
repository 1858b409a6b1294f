import { faultPoint } from "../base/index.ts";
import { createDraft } from "../hooks/index.ts";
import { hookKeyOf } from "../state/index.ts";
import { effectActor } from "./effect.ts";
import { addedMessages, hookContextOf } from "./hook-run.ts";

/** The `afterTools` hooks of a round that are not committed yet, in the order of registration. */
export const settleRound = effectActor<{ readonly turnId: string }>("settleRound", async (host, { turnId }, signal) => {
  const hook = "afterTools";
  for (const [index, registered] of host.definition.hooks.afterTools.entries()) {
    const turn = host.turn(turnId);
    if (!turn || signal.aborted) return;
    if (turn.appliedHooks.includes(hookKeyOf(hook, index))) continue;
    await host.committed();
    const { plugin } = registered;
    const { step } = turn;
    const { draft, outcome } = createDraft(host.history(host.definition.maxMessages));
    await registered.hook(draft, hookContextOf(host, turnId, step, hookKeyOf(hook, index), signal));
    if (signal.aborted) return;
    faultPoint("hook.effect");
    const { added, patch } = outcome();
    const messages = addedMessages(host, { turnId, step, hook, index, plugin }, added);
    const addedMessageIds = messages.map(({ id }) => id);
    host.append(
      { type: "hook.applied", turnId, step, hook, plugin, index, patch: { ...patch, addedMessageIds } },
      { messages },
    );
    faultPoint("hook.result");
  }
});
