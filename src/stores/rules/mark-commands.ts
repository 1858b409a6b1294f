import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { abortSpenders } from "./abort-spenders.ts";
import { endWaitsOf } from "./end-waits.ts";
import type { MarkAsk } from "./mark-rules.ts";
import { markTree, switchKey } from "./mark-tree.ts";
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
  const { posted } = markTree(tables, record, (at) => (at === record ? "pause" : "hold"), { by, now, isHurried });
  const held = posted.flatMap((agentId) => tables.agent({ tenant: key.tenant, agentId }) ?? []);
  return {
    type: "marked",
    posted: [...posted, ...endWaitsOf(tables, held, switchKey("pause", key.agentId), { now, steady: steady ?? now })],
  };
}

export function resume(tables: Tables, key: AgentKey, by: string, now: number): MarkOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  if (!record.pause) return { type: "unchanged", posted: [] };
  const { posted } = markTree(tables, record, (at) => (at === record ? "resume" : null), { by, now });
  return { type: "marked", posted };
}

/** `isSuperseded`: a new message takes the place of the turn. */
export interface MarkedAbort extends AbortCommand {
  readonly isSuperseded?: boolean | undefined;
}

/** With a turn: that turn and what works below it. Without: whatever is open on the agent and on all below it. */
export function abort(tables: Tables, key: AgentKey, command: MarkedAbort, now: number): MarkOutcome {
  const { turnId, by, accountId } = command;
  if (accountId !== undefined) return abortSpenders(tables, key, { ...command, accountId }, now);
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const source = `abort:${key.agentId}`;
  if (turnId !== null && record.queuedTurnIds.includes(turnId)) {
    // It waits in the inbox behind its turn, and ends it before its first step.
    const { reason, stopReason } = command;
    const item: InboxItem = { kind: "abort", key: `${source}:${turnId}`, at: now, turnId, by, reason, stopReason };
    return tables.addToInbox(key, item) ? { type: "marked", posted: [key.agentId] } : { type: "unchanged", posted: [] };
  }
  const isOpen = turnId === null || record.openTurnId === turnId;
  const isEnding = record.openTurnId !== null && record.abort?.turnId === record.openTurnId;
  if (!isOpen || (turnId !== null && isEnding)) return { type: "unchanged", posted: [] };
  const ask = (at: AgentRecord, isBound: boolean): MarkAsk | null => {
    if (at === record) return "end";
    return isBound || turnId === null ? "endBelow" : null;
  };
  const { posted, isMarked } = markTree(tables, record, ask, { by, now, abort: { ...command, source } });
  return { type: isMarked || posted.length > 0 ? "marked" : "unchanged", posted };
}
