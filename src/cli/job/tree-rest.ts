import { type AgentRecord, DEFAULT_TENANT, statusOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allAgents } from "./all-agents.ts";
import { listenToTree, type TreeSource } from "./tree-events.ts";

/**
 * Resolves when a paused tree has come to rest: no agent of it has a call in flight any more, so that leaving cuts off
 * no answer that is being paid for.
 */
export async function treeAtRest(stores: Stores, source: TreeSource): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let hasNews = true;
  let isLooking = false;

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      while (hasNews) {
        hasNews = false;
        const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId: source.rootAgentId });
        if (records.every(isAtRest)) return resolve();
      }
    } catch (error) {
      reject(error);
    } finally {
      isLooking = false;
    }
  }

  const stopListening = listenToTree(source, ({ cursor }) => {
    if (cursor === null) return;
    hasNews = true;
    void look();
  });
  try {
    void look();
    await promise;
  } finally {
    stopListening();
  }
}

function isAtRest(agent: AgentRecord): boolean {
  return agent.openTurnId === null || statusOf(agent) === "paused";
}
