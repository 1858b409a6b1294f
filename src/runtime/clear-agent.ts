import { AgentBusyError } from "../errors/index.ts";
import type { AgentKey } from "../state/index.ts";
import type { RuntimeCore } from "./runtime-core.ts";

/** Deletes what was said, and for `all` the artifacts too. Throws `AgentBusyError` while a turn is open. */
export async function clearAgent(core: RuntimeCore, key: AgentKey, scope: "conversation" | "all"): Promise<void> {
  core.assertOpen();
  const live = await core.live.activate(key);
  const { openTurnId } = live;
  if (openTurnId !== null) {
    throw new AgentBusyError(`agent "${key.agentId}" is busy with turn ${openTurnId}; wait for it, or abort it first`, {
      details: { openTurnId },
    });
  }
  live.clear(scope, "user");
  await live.committed();
}
