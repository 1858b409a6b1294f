import { AgentBusyError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import { changeElsewhere } from "./agent-elsewhere.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";

/** Deletes what was said, and for `all` the artifacts too. Throws `AgentBusyError` while a turn is open. */
export async function clearAgent(core: RuntimeCore, key: AgentKey, scope: "conversation" | "all"): Promise<void> {
  core.assertOpen();
  // Taking an agent up carries its turn on, which is not what was asked for; and one that a pause keeps from beginning is
  // known to the record alone.
  assertIdle(key, (await core.stores.readAgent(key))?.openTurnId);
  if (core.part.role !== "all")
    return await changeElsewhere(core, key, (activation) => activation.clear(scope, "user"));
  const live = await core.live.own(key);
  assertIdle(key, live.openTurnId);
  live.clear(scope, "user");
  await live.committed();
}

function assertIdle({ agentId }: AgentKey, openTurnId: string | null | undefined): void {
  if (openTurnId === null || openTurnId === undefined) return;
  throw new AgentBusyError(`agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or abort it first`, {
    details: { openTurnId },
  });
}
