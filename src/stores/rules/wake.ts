import { agentAccountId } from "../../budget/index.ts";
import { type AgentKey, type InboxItem, turnIdOf } from "../../state/index.ts";
import type { WakeOrder } from "./batch.ts";
import type { Tables } from "./tables.ts";

/**
 * Opens a turn that nobody asked for, unless one is open or waits in line: that one sees what it would be opened for. True
 * when there is something new in the agent's inbox.
 */
export function wake(tables: Tables, key: AgentKey, order: WakeOrder, now: number): boolean {
  const record = tables.agent(key);
  if (!record || record.openTurnId !== null) return false;
  const number = record.nextTurnNumber;
  const turnId = turnIdOf(key.agentId, number);
  const { childId, actorId } = order;
  // Under it is what the turn that started the child had left: a turn that comes by itself brings no room with it.
  const parentAccountId = tables.account(key.tenant, agentAccountId(childId))?.parentId;
  const item: InboxItem = {
    kind: "turn",
    key: `turn:${turnId}`,
    at: now,
    turnId,
    number,
    input: null,
    actorId,
    limits: null,
    wokenBy: childId,
    ...(parentAccountId ? { parentAccountId } : {}),
  };
  tables.putAgent({ ...record, openTurnId: turnId, nextTurnNumber: number + 1 });
  return tables.addToInbox(key, item);
}
