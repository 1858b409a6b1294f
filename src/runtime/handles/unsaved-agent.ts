import { NotFoundError } from "../../errors/index.ts";
import { type AgentKey, rootOf } from "../../state/index.ts";
import { pauseOptionsOf } from "../doors/agent-doors.ts";
import { pausedElsewhere, shutDownElsewhere } from "./agent-elsewhere.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import type { PauseOptions } from "../doors/types.ts";

/** Holds the agent and its subtree; resolves when this agent is at rest and all of it is saved (row L6). */
export async function pauseAndSave(core: RuntimeCore, key: AgentKey, given?: PauseOptions): Promise<void> {
  const options = pauseOptionsOf(given);
  core.assertOpen();
  const { stores, clock, live } = core;
  const outcome = await stores.pause(key, "user", clock.now(), { ...options, steady: clock.elapsed() });
  if (outcome.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  const activation = await live.present(key);
  if (activation) await live.drainInbox(activation);
  const isElsewhere = !activation && live.isOthers(key);
  const others = outcome.posted.filter((agentId) => agentId !== key.agentId);
  live.notify(isElsewhere ? [key.agentId, ...others] : others);
  if (activation) {
    await core.paused(activation);
    if (!activation.isLost) await activation.committed();
  }
  if (isElsewhere) await pausedElsewhere(core, key);
  await stores.save(key);
}

/** Commits what is left, saves, and frees the agent (row L6). */
export async function shutDownAndSave(core: RuntimeCore, key: AgentKey): Promise<void> {
  const live = await core.live.present(key);
  if (live) {
    // An open turn stays open: it is carried on by the next start().
    if (live.openTurnId === null) live.append({ type: "agent.shutdown" });
    await live.committed();
    await core.live.leave(live);
  } else if (core.part.role !== "all") await shutDownElsewhere(core, key);
  await core.stores.letGo(key);
}

/** Waits until what has happened in the agent's tree is committed, and saves the tree where it is saved by hand. */
export async function saveState(core: RuntimeCore, key: AgentKey): Promise<void> {
  core.assertOpen();
  const root = rootOf(key.agentId);
  const ofTree = core.live.all().filter(({ identity, isLost }) => identity.rootAgentId === root && !isLost);
  await Promise.all(ofTree.map((activation) => activation.committed()));
  await core.stores.save(key);
}
