import type { TreeWebhooks } from "../../state/index.ts";
import type { StoreTables } from "./tables.ts";

/** Runs inside a transaction of the adapter. */
export function putWebhooks(tables: StoreTables, next: TreeWebhooks, before: string | null): boolean {
  const { tenant, rootAgentId } = next;
  if (tables.agent({ tenant, agentId: rootAgentId })?.rootAgentId !== rootAgentId) return false;
  const known = tables.webhooks(tenant, rootAgentId);
  if ((known?.revision ?? null) !== before) return false;
  if (next.webhooks.length > 0) tables.putWebhooks(next);
  else if (known) tables.removeWebhooks(tenant, rootAgentId);
  return true;
}
