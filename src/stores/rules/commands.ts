import { type NewAccount, openAccount } from "../../budget/index.ts";
import {
  type AgentIdentity,
  type AgentKey,
  type AgentRecord,
  type InboxItem,
  newRecord,
  turnIdOf,
} from "../../state/index.ts";
import { changeTimers } from "./ledger.ts";
import { abort } from "./marks.ts";
import type { OpenTurnOutcome } from "./outcomes.ts";
import type { TurnCommand } from "./ports.ts";
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
    const opened = openAccount(account, identity.createdAt);
    tables.putAccount(identity.tenant, identity.rootAgentId, opened);
    changeTimers(tables, identity.tenant, undefined, opened);
  }
  return { created: true, record };
}

export function openTurn(tables: Tables, key: AgentKey, command: TurnCommand, now: number): OpenTurnOutcome {
  const found = tables.agent(key);
  if (!found) return { type: "notFound" };
  if (found.status === "created" || found.status === "shutdown") return { type: "refused", status: found.status };
  const { openTurnId } = found;
  if (command.isFirst && found.nextTurnNumber > 1) return { type: "given", turnId: turnIdOf(key.agentId, 1) };
  if (openTurnId !== null && command.ifBusy === "refuse") return { type: "busy", openTurnId };
  const isSuperseding = openTurnId !== null && command.ifBusy === "supersede";
  const aborted = isSuperseding ? supersede(tables, key, openTurnId, command.actorId, now) : [];
  // Aborting has changed the record.
  const record = tables.agent(key) ?? found;
  const number = record.nextTurnNumber;
  const turnId = turnIdOf(key.agentId, number);
  const { input, actorId, limits, trace, inputMessageIds } = command;
  const item: InboxItem = {
    kind: "turn",
    key: `turn:${turnId}`,
    at: now,
    turnId,
    number,
    input,
    actorId,
    limits,
    ...(trace ? { trace } : {}),
    ...(inputMessageIds ? { inputMessageIds: [...inputMessageIds] } : {}),
  };
  const changed: AgentRecord = {
    ...record,
    nextTurnNumber: number + 1,
    openTurnId: openTurnId ?? turnId,
    queuedTurnIds: openTurnId === null ? record.queuedTurnIds : [...record.queuedTurnIds, turnId],
  };
  tables.putAgent(changed);
  tables.addToInbox(key, item);
  const posted = [...new Set([key.agentId, ...aborted])];
  return { type: openTurnId === null ? "opened" : "queued", turnId, number, item, record: changed, posted };
}

/**
 * Aborts the open turn and the work below it in favour of a new message. Returns the agents whose inbox got something.
 */
function supersede(
  tables: Tables,
  key: AgentKey,
  turnId: string,
  actorId: string | null,
  now: number,
): readonly string[] {
  const by = actorId ?? "user";
  const reason = "superseded by a new message";
  const outcome = abort(tables, key, { turnId, by, reason, stopReason: "user_requested", isSuperseded: true }, now);
  return outcome.type === "notFound" ? [] : outcome.posted;
}
