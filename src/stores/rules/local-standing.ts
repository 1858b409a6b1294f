import type { LocalTables } from "./local-tables.ts";
import type { TreeStanding } from "./tree-standing.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/** To be called within one piece of reading work. What takes the longer the more agents there were is read last. */
export function standingOf(tables: LocalTables, tenant: string, rootAgentId: string): TreeStanding | undefined {
  const openRequests = tables.requests({ tenant, rootAgentId, status: "open" }, undefined, ALL);
  if (openRequests.length === 0) return undefined;
  const agents = tables.listAgents({ tenant, rootAgentId }, ALL);
  const atWork = agents.filter(({ openTurnId }) => openTurnId !== null);
  return {
    agents,
    openRequests,
    accounts: tables.accounts(tenant, rootAgentId),
    inboxes: new Map(atWork.map((agent) => [agent.agentId, tables.inbox(agent)])),
  };
}
