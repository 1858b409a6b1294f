import { randomUUID } from "node:crypto";
import { type NewAccount, openAccount } from "../budget/index.ts";
import {
  type AgentIdentity,
  type AgentKey,
  type AgentRecord,
  type InboxItem,
  newRecord,
  turnIdOf,
} from "../state/index.ts";
import { changeTimers } from "./account-timers.ts";
import { standingMark } from "./marks.ts";
import type { MarkOutcome, OpenTurnOutcome } from "./outcomes.ts";
import type { AbortCommand, TurnCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

/** Commands change only the command fields of a record, post to inboxes, and are answered at once (design, Inbox). */

export function createAgent(
  tables: Tables,
  identity: AgentIdentity,
  account: NewAccount | null,
): { created: boolean; record: AgentRecord } {
  const key = { tenant: identity.tenant, agentId: identity.agentId };
  const known = tables.agent(key);
  if (known) return { created: false, record: known };
  const record = newRecord(identity);
  tables.putAgent(record);
  if (account) {
    const opened = openAccount(account);
    tables.putAccount(identity.tenant, identity.rootAgentId, opened);
    changeTimers(tables, identity.tenant, undefined, opened);
  }
  return { created: true, record };
}

export function openTurn(tables: Tables, key: AgentKey, command: TurnCommand, now: number): OpenTurnOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (record.status === "created" || record.status === "shutdown") {
    return { type: "refused", status: record.status };
  }
  if (record.openTurnId !== null && !command.queue) return { type: "busy", openTurnId: record.openTurnId };
  const number = record.nextTurnNumber;
  const turnId = turnIdOf(key.agentId, number);
  const item: InboxItem = {
    kind: "turn",
    key: `turn:${turnId}`,
    at: now,
    turnId,
    number,
    input: command.input,
    actorId: command.actorId,
    limits: command.limits,
  };
  const waits = record.openTurnId !== null;
  tables.putAgent({
    ...record,
    nextTurnNumber: number + 1,
    openTurnId: record.openTurnId ?? turnId,
    queuedTurnIds: waits ? [...record.queuedTurnIds, turnId] : record.queuedTurnIds,
  });
  tables.addToInbox(key, item);
  return { type: waits ? "queued" : "opened", turnId, number, item };
}

export function pause(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (record.pause) return { type: "unchanged", posted: [] };
  tables.putAgent({ ...record, pause: { by, at: now } });
  const item: InboxItem = { kind: "pause", key: switchKey("pause", key), at: now, by };
  return { type: "marked", posted: postToTree(tables, record, () => item) };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  tables.putAgent({ ...record, pause: null });
  const item: InboxItem = { kind: "resume", key: switchKey("resume", key), at: now, by };
  return { type: "marked", posted: postToTree(tables, record, () => item) };
}

/** With a turn: that turn and what works below it. Without: whatever is open on the agent and on all below it. */
export function abort(tables: Tables, key: AgentKey, command: AbortCommand, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const { by, reason, stopReason } = command;
  const turnId = command.turnId ?? record.openTurnId;
  const isNew = turnId === null || record.abort?.turnId !== turnId;
  const itemKey = `abort:${key.agentId}:${turnId ?? "*"}`;
  if (command.turnId !== null && record.queuedTurnIds.includes(command.turnId)) {
    // It waits in the inbox behind its turn, and ends it before its first step.
    const item: InboxItem = { kind: "abort", key: itemKey, at: now, turnId, by, reason, stopReason };
    return tables.addToInbox(key, item) ? { type: "marked", posted: [key.agentId] } : { type: "unchanged", posted: [] };
  }
  if (command.turnId !== null && (record.openTurnId !== turnId || !isNew)) return { type: "unchanged", posted: [] };
  // A mark lasts as long as its turn; an agent without an open turn has nothing of its own to forbid.
  const mark = (at: AgentRecord, ofTurn: string): void =>
    tables.putAgent({ ...at, pause: null, abort: { by, at: now, turnId: ofTurn, reason } });
  if (turnId !== null && isNew) mark(record, turnId);
  const itemFor = (at: AgentRecord): InboxItem | undefined => {
    const ofTurn = at.openTurnId;
    if (at === record) {
      return isNew ? { kind: "abort", key: itemKey, at: now, turnId, by, reason, stopReason } : undefined;
    }
    // One at rest has nothing to end; if it was held with what is aborted now, it is held no longer.
    if (ofTurn === null) {
      const isHeld = at.status === "paused" && !at.pause;
      return isHeld ? { kind: "resume", key: switchKey("resume", key), at: now, by } : undefined;
    }
    // What an earlier turn spawned is not below the mark of the present one.
    if (standingMark(tables, at, ofTurn)?.reason !== "aborted") mark(at, ofTurn);
    return { kind: "abort", key: itemKey, at: now, turnId: ofTurn, by, reason, stopReason };
  };
  const posted = postToTree(tables, record, itemFor, command.turnId);
  return { type: isNew || posted.length > 0 ? "marked" : "unchanged", posted };
}

/**
 * Pause and resume alternate, so none of them is a double of another; the record's own field tells the second pause
 * from the first, and the key must not make the two one item when both come within a millisecond.
 */
function switchKey(kind: "pause" | "resume", key: AgentKey): string {
  return `${kind}:${key.agentId}:${randomUUID()}`;
}

/**
 * Posts to the agent and to every descendant that is not shut down, where `itemFor` has something for it; with a turn,
 * only to descendants that belong to that turn. One that is shut down may still have live children.
 */
function postToTree(
  tables: Tables,
  record: AgentRecord,
  itemFor: (at: AgentRecord) => InboxItem | undefined,
  turnId: string | null = null,
): string[] {
  const posted: string[] = [];
  const visit = (at: AgentRecord, belongsToTurn: string | null): void => {
    const key = { tenant: at.tenant, agentId: at.agentId };
    const item = at.status === "shutdown" ? undefined : itemFor(at);
    if (item && tables.addToInbox(key, item)) posted.push(at.agentId);
    for (const child of tables.childrenOf(key)) {
      if (belongsToTurn === null || child.parentTurnId === belongsToTurn) visit(child, null);
    }
  };
  visit(record, turnId);
  return posted;
}
