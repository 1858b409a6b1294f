import { randomUUID } from "node:crypto";
import type { AgentKey, AgentRecord, InboxItem } from "../state/index.ts";
import { abortSpenders } from "./abort-spenders.ts";
import { endWaitsOf } from "./end-waits.ts";
import type { MarkOutcome } from "./outcomes.ts";
import type { AbortCommand } from "./ports.ts";
import type { Tables } from "./tables.ts";

export interface PauseCommand {
  readonly by: string;
  /** Whether model calls in flight are to be dropped. */
  readonly isHurried?: boolean | undefined;
  /** Default: `now`. */
  readonly steady?: number | undefined;
}

export function pause(
  tables: Tables,
  key: AgentKey,
  { by, isHurried = false, steady }: PauseCommand,
  now: number,
): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (record.pause && !isHurried) return { type: "unchanged", posted: [] };
  // One that is hastened keeps its mark: it stands since it was first asked for.
  if (!record.pause) tables.putAgent({ ...record, pause: { by, at: now } });
  const hurry = isHurried ? { now: true } : {};
  const item: InboxItem = { kind: "pause", key: switchKey("pause", key), at: now, by, ...hurry };
  const held = postToTree(tables, record, () => item);
  const records = held.flatMap((agentId) => tables.agent({ tenant: key.tenant, agentId }) ?? []);
  return {
    type: "marked",
    posted: [...held, ...endWaitsOf(tables, records, item.key, { now, steady: steady ?? now })],
  };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  tables.putAgent({ ...record, pause: null });
  const item: InboxItem = { kind: "resume", key: switchKey("resume", key), at: now, by };
  return { type: "marked", posted: postToTree(tables, record, () => item) };
}

/** `isSuperseded`: a new message takes the place of the turn. */
export interface MarkedAbort extends AbortCommand {
  readonly isSuperseded?: boolean | undefined;
}

/** With a turn: that turn and what works below it. Without: whatever is open on the agent and on all below it. */
export function abort(tables: Tables, key: AgentKey, command: MarkedAbort, now: number): MarkOutcome {
  const { by, reason, stopReason, accountId } = command;
  if (accountId !== undefined) return abortSpenders(tables, key, { ...command, accountId }, now);
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
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
      const superseded = command.isSuperseded ? { isSuperseded: true } : {};
      return isNew
        ? { kind: "abort", key: itemKey, at: now, turnId, by, reason, stopReason, ...superseded }
        : undefined;
    }
    // One at rest has nothing to end; if it was held with what is aborted now, it is held no longer.
    if (ofTurn === null) {
      const isHeld = at.status === "paused" && !at.pause;
      return isHeld ? { kind: "resume", key: switchKey("resume", key), at: now, by } : undefined;
    }
    // Of its own: the mark above goes with the turn above, which may be over first.
    mark(at, ofTurn);
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
 * only to descendants that belong to that turn, which those in the background do not. One that is shut down may still have live children.
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
      const isBound = child.parentTurnId === belongsToTurn && !child.background;
      if (belongsToTurn === null || isBound) visit(child, null);
    }
  };
  visit(record, turnId);
  return posted;
}
