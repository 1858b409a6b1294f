import { createDraft } from "../hooks/index.ts";
import { effectActor } from "./effect.ts";
import { releaseHeld, runHooks } from "./hook-run.ts";
import { resultsOfRound } from "./round-results.ts";

/** The `afterTools` hooks of a round: every call of it has its result. */
export const settleRound = effectActor<{ readonly turnId: string }>("settleRound", async (host, { turnId }, signal) => {
  releaseHeld(host, turnId);
  const step = host.turn(turnId)?.step ?? 1;
  const registered = host.definition.hooks.afterTools;
  const draft = () => createDraft("afterTools", { messages: host.history(), results: resultsOfRound(host, turnId) });
  await runHooks(host, { turnId, step, hook: "afterTools" }, { registered, draft }, signal);
});
