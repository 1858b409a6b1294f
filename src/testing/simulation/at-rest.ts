import { DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** Whether nothing is left to do in a tree: no turn is open, queued or paused, and every inbox is empty. */
export async function isAtRest(stores: Stores, rootAgentId: string): Promise<boolean> {
  const all = { tenant: DEFAULT_TENANT, rootAgentId, limit: 1_000 };
  const tree = await stores.listAgents(all);
  if (tree.some(({ openTurnId, queuedTurnIds, pause }) => openTurnId ?? queuedTurnIds[0] ?? pause)) return false;
  for (const { agentId } of tree) {
    const inbox = await stores.inbox({ tenant: DEFAULT_TENANT, agentId });
    // An abort of an ended turn has no effect, and no process starts an agent for it.
    if (inbox.some(({ kind }) => kind !== "abort")) return false;
  }
  // Items in an inbox may have been handled meanwhile and have started a turn.
  return JSON.stringify(await stores.listAgents(all)) === JSON.stringify(tree);
}
