import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import type { LocalTables } from "./local-tables.ts";
import { isHeld } from "./marks.ts";
import type { Tables } from "./tables.ts";

/** Whether the agent's inbox holds something that an owner could take in now. */
export function hasNews(tables: LocalTables, key: AgentKey): boolean {
  const record = tables.agent(key);
  return record !== undefined && isAnyNews(tables, record, tables.inbox(key));
}

/**
 * The same for an inbox that was read. Not news: turns in line behind the open one and what ends them, a turn that a pause
 * keeps from beginning and what ends it, and whatever comes before a root agent was started.
 */
export function isAnyNews(tables: Pick<Tables, "agent">, record: AgentRecord, inbox: readonly InboxItem[]): boolean {
  const { status, parentAgentId, openTurnId, queuedTurnIds } = record;
  if (status === "shutdown" || (status === "created" && parentAgentId === null)) return false;
  const isBegun = !inbox.some((item) => item.kind === "turn" && item.turnId === openTurnId);
  return inbox.some((item) => {
    if (item.kind === "turn") return item.turnId === openTurnId && !isHeld(tables, record);
    if (item.kind !== "abort" || item.turnId === null) return true;
    if (item.turnId === openTurnId && !isBegun) return !isHeld(tables, record);
    return !queuedTurnIds.includes(item.turnId);
  });
}
