import { type NewAccount, openAccount } from "../budget/index.ts";
import {
  type AgentIdentity,
  type AgentKey,
  type AgentRecord,
  type InboxItem,
  newRecord,
  turnIdOf,
} from "../state/index.ts";
import type { AbortCommand, MarkOutcome, OpenTurnOutcome, TurnCommand } from "./ports.ts";
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
  if (account) tables.putAccount(identity.tenant, identity.rootAgentId, openAccount(account));
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
  return {
    type: "marked",
    posted: postToTree(tables, record, { kind: "pause", key: `pause:${key.agentId}:${now}`, at: now, by }),
  };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  tables.putAgent({ ...record, pause: null });
  return {
    type: "marked",
    posted: postToTree(tables, record, { kind: "resume", key: `resume:${key.agentId}:${now}`, at: now, by }),
  };
}

export function abort(tables: Tables, key: AgentKey, command: AbortCommand, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const turnId = command.turnId ?? record.openTurnId;
  if (record.openTurnId !== turnId || record.abort?.turnId === turnId) return { type: "unchanged", posted: [] };
  // The mark lasts as long as the turn; without an open turn there is nothing of the agent's own to forbid.
  if (turnId !== null)
    tables.putAgent({ ...record, abort: { by: command.by, at: now, turnId, reason: command.reason } });
  const { by, reason, stopReason } = command;
  const item: InboxItem = {
    kind: "abort",
    key: `abort:${key.agentId}:${turnId ?? "*"}`,
    at: now,
    turnId: null,
    by,
    reason,
    stopReason,
  };
  return { type: "marked", posted: postToTree(tables, record, item, command.turnId) };
}

/** Posts to the agent and to every descendant that still has work; with a turn, only to what belongs to that turn. */
function postToTree(tables: Tables, record: AgentRecord, item: InboxItem, turnId: string | null = null): string[] {
  const posted: string[] = [];
  const visit = (at: AgentRecord, belongsToTurn: string | null): void => {
    if (at.status === "shutdown") return;
    if (tables.addToInbox({ tenant: at.tenant, agentId: at.agentId }, item)) posted.push(at.agentId);
    for (const child of tables.childrenOf({ tenant: at.tenant, agentId: at.agentId })) {
      if (belongsToTurn === null || child.parentTurnId === belongsToTurn) {
        if (child.openTurnId !== null || item.kind !== "abort") visit(child, null);
      }
    }
  };
  visit(record, turnId);
  return posted;
}
