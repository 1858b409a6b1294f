import type { InboxItem } from "../../state/index.ts";
import type { AgentRows, TenantRows } from "./memory-rows.ts";
import type { MemoryUndo } from "../rules/undo.ts";

/** False when an item of that key is there already. */
export function addItem(undo: MemoryUndo, rows: AgentRows, item: InboxItem): boolean {
  if (rows.inbox.has(item.key)) return false;
  undo.set(rows.inbox, item.key, { ordinal: rows.nextOrdinal, item });
  rows.nextOrdinal += 1;
  return true;
}

export function removeItems(undo: MemoryUndo, { inbox }: AgentRows, itemKeys: readonly string[]): void {
  for (const itemKey of itemKeys) {
    const row = inbox.get(itemKey);
    if (!row) continue;
    undo.note(() => {
      const before = [...inbox, [itemKey, row] as const].sort(([, a], [, b]) => a.ordinal - b.ordinal);
      inbox.clear();
      for (const [restored, value] of before) inbox.set(restored, value);
    });
    inbox.delete(itemKey);
  }
}

/** Notes whether somebody may have to see to the agent, after its inbox or its head was changed. */
export function noteRest(undo: MemoryUndo, { restless }: TenantRows, rows: AgentRows): void {
  const { agentId } = rows.record;
  const isRestless = rows.inbox.size > 0 || rows.head.work === "open";
  if (isRestless === restless.has(agentId)) return;
  if (isRestless) {
    undo.set(restless, agentId, rows);
    return;
  }
  undo.note(() => restless.set(agentId, rows));
  restless.delete(agentId);
}
