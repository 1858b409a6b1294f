import type { AgentKey, AgentRecord, Entry, InboxItem, SteerItem } from "../../state/index.ts";
import type { SteerMeaning, SteerOutcome } from "./outcomes.ts";
import type { SteerCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";
import { knownInput, openTurn, queueTurn } from "./turns.ts";

/**
 * Inputs for an open turn.
 *
 * Invariants
 * 1. An accepted input is in exactly one place: in the inbox, in an entry `turn.steered`, or in a turn that it has opened. Each step from
 *    one to the next is part of one transaction, under the lease of the agent's owner.
 * 2. Without an open turn, or if the named turn is not the open one, the command opens a turn.
 */
export function steer(tables: Tables, key: AgentKey, command: SteerCommand, now: number): SteerOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const { turnId, turn } = command;
  const known = turn.key && knownInput(tables, record, turn.key);
  if (known) return known;
  const { openTurnId, status } = record;
  const isForOpen = openTurnId !== null && (turnId === undefined || turnId === openTurnId);
  if (!isForOpen || turn.onlyKnown || status === "created" || status === "shutdown") {
    return openTurn(tables, key, { ...turn, ifBusy: "queue" }, now);
  }
  const item = itemOf(command, openTurnId, now);
  putSteer(tables, key, item, { steer: "posted", turnId: openTurnId, step: null });
  tables.addToInbox(key, item);
  return { type: "posted", turnId: openTurnId, item, record, posted: [key.agentId] };
}

function itemOf({ steerId, turn }: SteerCommand, turnId: string, at: number): SteerItem {
  const { input, actorId, limits, trace, clientTools, settings, key } = turn;
  return {
    kind: "steer",
    key: `steer:${steerId}`,
    at,
    turnId,
    steerId,
    input,
    actorId,
    limits,
    ...(trace ? { trace } : {}),
    ...(clientTools ? { clientTools: [...clientTools] } : {}),
    ...(settings ? { settings } : {}),
    ...(key ? { inputKey: key } : {}),
  };
}

/** Stores the state of an input under its key, or under its id if it has none. */
function putSteer(
  tables: Tables,
  key: AgentKey,
  { steerId, inputKey }: Pick<SteerItem, "steerId" | "inputKey">,
  state: Omit<SteerMeaning, "hash">,
): void {
  tables.putSteer(key, inputKey?.text ?? steerId, { ...state, hash: inputKey?.hash ?? "" });
}

/** The state of an input; `undefined` if the agent has none with this key or id. */
export function steerOf(tables: Pick<Tables, "meaningOf">, key: AgentKey, keyOrId: string): SteerMeaning | undefined {
  const meaning = tables.meaningOf(key, keyOrId);
  if (!meaning || "requestId" in meaning) return undefined;
  // A key may belong to the turn that the input has opened.
  return "steer" in meaning ? meaning : { steer: "deferred", step: null, ...meaning };
}

/** Records the inputs that a commit takes in. */
export function noteSteered(tables: Tables, key: AgentKey, entries: readonly Entry[]): void {
  for (const entry of entries) {
    if (entry.type !== "turn.steered") continue;
    const { turnId, step } = entry;
    putSteer(tables, key, entry, { steer: "taken", turnId, step });
  }
}

/** Opens a turn with an input that the open turn does not take in. */
export function deferSteer(tables: Tables, key: AgentKey, item: SteerItem, now: number): void {
  const record = tables.agent(key);
  if (!record) return;
  const { steerId, input, actorId, limits, trace, clientTools, settings, inputKey } = item;
  const isRoot = record.parentAgentId === null;
  const turn = { input, actorId, limits, trace, clientTools, settings, steerId, key: isRoot ? inputKey : undefined };
  const { turnId } = queueTurn(tables, record, turn, now);
  putSteer(tables, key, item, { steer: "deferred", turnId, step: null });
}

/** Restores the states of an imported agent's inputs, which its journal and its inbox contain. */
export function restoreSteers(
  tables: Tables,
  key: AgentRecord,
  entries: readonly Entry[],
  inbox: readonly InboxItem[],
): void {
  noteSteered(tables, key, entries);
  for (const item of inbox) {
    if (item.kind !== "steer") continue;
    putSteer(tables, key, item, { steer: "posted", turnId: item.turnId, step: null });
  }
}
