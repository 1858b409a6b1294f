import { backoffDelay, createDeferred } from "../../base/index.ts";
import { AgentBusyError, AlreadyOwnedError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import { type AgentKey, type AgentRecord, rootOf } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";
import { wakeUp } from "../agent/intake.ts";

/** Whoever has the agent for a moment gives it back in the time of these tries: about ten seconds. */
const MOST_TRIES = 12;
const pauses = { baseMs: 50, capMs: 1_000 };

/** As `start()` of a handle whose process runs no agents: one that is created or shut down is made ready, no more. */
export async function startElsewhere(core: RuntimeCore, key: AgentKey): Promise<AgentRecord> {
  const record = await readKnown(core, key);
  if (record.openTurnId !== null) core.notify([key.agentId]);
  if (!isAsleep(record) || record.openTurnId !== null) return record;
  await changeElsewhere(core, key, (activation) => wakeUp(activation));
  return await readKnown(core, key);
}

/** As `shutdown()`: throws `AgentBusyError` while a turn is open, which workers carry on whatever happens here. */
export async function shutDownElsewhere(core: RuntimeCore, key: AgentKey): Promise<void> {
  const record = await readKnown(core, key);
  if (record.openTurnId !== null) {
    throw new AgentBusyError(
      `agent "${key.agentId}" is busy with turn ${record.openTurnId}, which workers carry on; wait for it, abort it, or hold it with pause()`,
      { details: { openTurnId: record.openTurnId } },
    );
  }
  if (isAsleep(record)) return;
  await changeElsewhere(core, key, (activation) => activation.append({ type: "agent.shutdown" }));
}

/**
 * Changes an agent that is between two turns, whichever process has it: it is held for a moment. Throws `AgentBusyError`
 * while a turn is open, `AlreadyOwnedError` when another process does not give it back.
 */
export async function changeElsewhere(
  core: RuntimeCore,
  key: AgentKey,
  change: (activation: Activation) => void,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await core.live.change(key, change);
    } catch (error) {
      const isTaken = error instanceof AlreadyOwnedError || error instanceof LeaseLostError;
      if (!isTaken || attempt >= MOST_TRIES || !core.isOpen) throw error;
    }
    await core.clock.sleep(backoffDelay(attempt, 0.5, pauses));
  }
}

/** Resolves when an agent that was asked to pause has come to rest, in whichever process, or is not asked any more. */
export async function pausedElsewhere(core: RuntimeCore, key: AgentKey): Promise<void> {
  let moved = createDeferred();
  const look = (): void => moved.resolve();
  const ends = [core.onForeignWrite(look), core.bus.listen(look, rootOf(key.agentId))];
  core.closed.addEventListener("abort", look, { once: true });
  try {
    for (;;) {
      moved = createDeferred();
      const record = await core.stores.readAgent(key);
      if (!record || record.pause === null || record.openTurnId === null || record.status === "paused") return;
      core.closed.throwIfAborted();
      await moved.promise;
    }
  } finally {
    core.closed.removeEventListener("abort", look);
    for (const end of ends) end();
  }
}

function isAsleep({ status }: AgentRecord): boolean {
  return status === "created" || status === "shutdown";
}

async function readKnown(core: RuntimeCore, key: AgentKey): Promise<AgentRecord> {
  const record = await core.stores.readAgent(key);
  if (record) return record;
  throw new NotFoundError(`there is no agent "${key.agentId}"`);
}
