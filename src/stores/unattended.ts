import type { AgentKey, AgentRecord, InboxItem } from "../state/index.ts";
import type { LocalTables } from "./local-tables.ts";
import { standingMark } from "./marks.ts";
import type { ProcessRow, Tables } from "./tables.ts";

/** Whether the agent's inbox holds something that an owner could take in now. */
export function hasNews(tables: LocalTables, key: AgentKey): boolean {
  const record = tables.agent(key);
  return record !== undefined && isAnyNews(tables, record, tables.inbox(key));
}

/**
 * The same for an inbox that was read. Not news: turns in line behind the open one and what ends them, a turn that a pause
 * keeps from beginning, and whatever comes before a root agent was started.
 */
export function isAnyNews(tables: Tables, record: AgentRecord, inbox: readonly InboxItem[]): boolean {
  const { status, parentAgentId, openTurnId, queuedTurnIds } = record;
  if (status === "shutdown" || (status === "created" && parentAgentId === null)) return false;
  return inbox.some((item) => {
    if (item.kind === "turn") {
      return item.turnId === openTurnId && standingMark(tables, record, item.turnId)?.reason !== "paused";
    }
    return item.kind !== "abort" || item.turnId === null || !queuedTurnIds.includes(item.turnId);
  });
}

/** Who of those that may have something to do (`LocalTables.restless`) has nobody who does it. */
export function unattendedAmong(
  tables: LocalTables,
  keys: Iterable<AgentKey>,
  isHeldAlive: (processId: string) => boolean,
  limit: number,
): AgentKey[] {
  const found: AgentKey[] = [];
  for (const key of keys) {
    if (found.length >= limit) break;
    const { holder, work } = tables.head(key);
    if (holder !== null && isHeldAlive(holder)) continue;
    const record = tables.agent(key);
    if (!record || record.status === "shutdown") continue;
    if (work === "open" || isAnyNews(tables, record, tables.inbox(key))) found.push(key);
  }
  return found;
}

/** Who lives, looked at once for each process; `own` always does. */
export function livingAmong(
  tables: Tables,
  own: string,
  isAlive: (process: ProcessRow) => boolean,
): (processId: string) => boolean {
  const known = new Map([[own, true]]);
  return (processId) => {
    const before = known.get(processId);
    if (before !== undefined) return before;
    const row = tables.process(processId);
    const isLiving = row !== undefined && isAlive(row);
    known.set(processId, isLiving);
    return isLiving;
  };
}
