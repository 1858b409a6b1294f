import { describeValue } from "../../base/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import { agentOfTurn, numberOfTurn, turnIdOf } from "../../state/index.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";

/** Throws `InvalidInputError` for what is no id of a turn of this agent: another agent's turn is asked of that agent. */
export function assertTurnOf(agentId: string, turnId: unknown): asserts turnId is string {
  const form = `the turns of agent "${agentId}" are ${turnIdOf(agentId, 1)}, ${turnIdOf(agentId, 2)} and so on`;
  if (typeof turnId !== "string" || !isTurnId(turnId)) {
    throw new InvalidInputError(`${describeValue(turnId)} is not the id of a turn; ${form}`);
  }
  const owner = agentOfTurn(turnId);
  if (owner === agentId) return;
  throw new InvalidInputError(`turn "${turnId}" is one of agent "${owner}", not of this one; ${form}`, {
    details: { agentId, turnId },
  });
}

/**
 * The id of a turn that was opened. Rejects with `NotFoundError` for a number that was never given, unless the agent starts
 * turns by itself: then that one may still come, and is waited for.
 */
export async function givenTurn(core: RuntimeCore, agentId: string, turnId: string): Promise<string> {
  const record = await readRecord(core, agentId);
  if (!record) throw new NotFoundError(`there is no agent "${agentId}", and so no turn "${turnId}"`);
  const number = numberOfTurn(turnId);
  if (number < (record.firstTurnNumber ?? 1)) throw unknown(turnId, "its numbers begin later");
  if (number < record.nextTurnNumber || startsTurns(core, record.definition.name)) return turnId;
  if (number < (await savedTurnNumber(core, agentId))) return turnId;
  const last = record.nextTurnNumber - 1;
  throw unknown(turnId, last === 0 ? "the agent has had none yet" : `the last one is ${turnIdOf(agentId, last)}`);
}

async function readRecord(core: RuntimeCore, agentId: string) {
  core.closed.throwIfAborted();
  try {
    return await core.stores.readAgent(core.keyOf(agentId));
  } catch (error) {
    // The stores go with their runtime.
    core.closed.throwIfAborted();
    throw error;
  }
}

/** What others gave to an agent that is in this memory alone is in the stores, and comes to it. */
async function savedTurnNumber(core: RuntimeCore, agentId: string): Promise<number> {
  const key = core.keyOf(agentId);
  const saved = core.stores.isHeld(key) ? await core.stores.readSaved(key) : undefined;
  return saved?.nextTurnNumber ?? 0;
}

/** Where the definition is not known here, nobody can tell. */
function startsTurns(core: RuntimeCore, name: string): boolean {
  const definition = core.definitions.get(name);
  if (!definition) return true;
  return definition.tools.tools.some((tool) => tool.kind === "subagent" && tool.background?.onEnd === "wake");
}

function unknown(turnId: string, why: string): NotFoundError {
  return new NotFoundError(`there is no turn "${turnId}": ${why}`, { details: { turnId } });
}

/** As `turnIdOf` makes them: one turn has one id. */
function isTurnId(turnId: string): boolean {
  const number = numberOfTurn(turnId);
  return Number.isSafeInteger(number) && number >= 1 && turnIdOf(agentOfTurn(turnId), number) === turnId;
}
