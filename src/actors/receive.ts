import { createDraft } from "../hooks/index.ts";
import { effectActor } from "./effect.ts";
import { runHooks } from "./hook-run.ts";

/** The `afterUserInput` hooks, once per turn, before anything else is done with the input. */
export const receive = effectActor<{ readonly turnId: string }>("receive", async (host, { turnId }, signal) => {
  const place = { turnId, step: 1, hook: "afterUserInput" } as const;
  const registered = host.definition.hooks.afterUserInput;
  const draft = () => createDraft("afterUserInput", { messages: host.history(), input: host.memory(turnId).prompt });
  if (await runHooks(host, place, { registered, draft }, signal)) {
    host.append({ type: "hooks.settled", turnId, step: 1, phase: "input" });
  }
});
