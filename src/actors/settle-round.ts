import { hookKeyOf } from "../state/index.ts";
import { effectActor } from "./effect.ts";
import { runHook } from "./hook-run.ts";

/**
 * The `afterTools` hooks of a round that are not committed yet, in the order of registration: as many as the turn began
 * with. One that a newer program no longer has counts as having changed nothing, so that the turn goes on without it.
 */
export const settleRound = effectActor<{ readonly turnId: string }>("settleRound", async (host, { turnId }, signal) => {
  const registered = host.definition.hooks.afterTools;
  for (let index = 0; ; index += 1) {
    const turn = host.turn(turnId);
    if (!turn || signal.aborted || index >= turn.hooks.afterTools) return;
    if (turn.appliedHooks.includes(hookKeyOf("afterTools", index))) continue;
    const { plugin, hook } = registered[index] ?? gone;
    const place = { turnId, step: turn.step, hook: "afterTools", index, plugin } as const;
    if (!(await runHook(host, place, hook, signal))) return;
  }
});

const gone = { plugin: "gone", hook: () => undefined };
