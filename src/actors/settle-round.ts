import { hookKeyOf } from "../state/index.ts";
import { effectActor } from "./effect.ts";
import { runHook } from "./hook-run.ts";

/** The `afterTools` hooks of a round that are not committed yet, in the order of registration. */
export const settleRound = effectActor<{ readonly turnId: string }>("settleRound", async (host, { turnId }, signal) => {
  for (const [index, { plugin, hook }] of host.definition.hooks.afterTools.entries()) {
    const turn = host.turn(turnId);
    if (!turn || signal.aborted) return;
    if (turn.appliedHooks.includes(hookKeyOf("afterTools", index))) continue;
    const place = { turnId, step: turn.step, hook: "afterTools", index, plugin } as const;
    if (!(await runHook(host, place, hook, signal))) return;
  }
});
