import { type Account, agentAccountId, turnAccountId } from "../budget/index.ts";
import { type AgentRecord, type AgentRequest, agentOfTurn, rootOf } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";

/**
 * The open requests that a turn and everything below it wait for; undefined while anything there works. It is read from
 * the accounts, which count the work of every process, and from the inboxes: what lies there sets work going.
 */
export async function requestsAtRest(
  stores: Stores,
  tenant: string,
  turnId: string,
): Promise<AgentRequest[] | undefined> {
  const rootAgentId = rootOf(agentOfTurn(turnId));
  const requests = await openRequests(stores, tenant, rootAgentId);
  // The rest is read whole, which takes the longer the more agents the tree has had.
  if (requests.length === 0) return undefined;
  const accounts = await stores.accounts(tenant, rootAgentId);
  const agents = await agentsOf(stores, tenant, rootAgentId);
  if (activeBelow(turnId, accounts, agents) !== 0) return undefined;
  const own = requests.filter((request) => isOfTurn(request.turnId, turnId, agents));
  return own.length === 0 || (await isSomethingUnheard(stores, agents)) ? undefined : own;
}

async function isSomethingUnheard(stores: Stores, agents: Agents): Promise<boolean> {
  for (const { tenant, agentId, openTurnId } of agents.values()) {
    if (openTurnId === null) continue;
    const items = await stores.inbox({ tenant, agentId });
    if (items.some(({ kind }) => kind === "decision" || kind === "child.ended" || kind === "child.reported"))
      return true;
  }
  return false;
}

/** How many work for the turn: children in the background count on its account as well, and it does not wait for them. */
function activeBelow(turnId: string, accounts: readonly Account[], agents: Agents): number | undefined {
  const byId = new Map(accounts.map((account) => [account.id, account]));
  const isUnder = (id: string | null): boolean => {
    for (let at = id; at !== null; at = byId.get(at)?.parentId ?? null) if (at === turnAccountId(turnId)) return true;
    return false;
  };
  let active = byId.get(turnAccountId(turnId))?.activeCount;
  for (const { background, agentId, parentTurnId } of agents.values()) {
    const account = byId.get(agentAccountId(agentId));
    if (!background || !account || active === undefined || parentTurnId === null) continue;
    if (isOfTurn(parentTurnId, turnId, agents) && isUnder(account.id)) active -= account.activeCount;
  }
  return active;
}

/** Open requests of an agent and of everything below it. */
export async function requestsBelow(stores: Stores, tenant: string, agentId: string): Promise<AgentRequest[]> {
  const rootAgentId = rootOf(agentId);
  const agents = await agentsOf(stores, tenant, rootAgentId);
  const requests = await openRequests(stores, tenant, rootAgentId);
  return requests.filter((request) => isOfAgent(request.agentId, agentId, agents));
}

const ALL = 10_000;

function openRequests(stores: Stores, tenant: string, rootAgentId: string): Promise<AgentRequest[]> {
  return stores.requests({ tenant, rootAgentId, status: "open", limit: ALL });
}

type Agents = ReadonlyMap<string, AgentRecord>;

async function agentsOf(stores: Stores, tenant: string, rootAgentId: string): Promise<Agents> {
  const agents = await stores.listAgents({ tenant, rootAgentId, limit: ALL });
  return new Map(agents.map((agent) => [agent.agentId, agent]));
}

function isOfAgent(agentId: string, above: string, agents: Agents): boolean {
  for (let at: string | null = agentId; at !== null; at = agents.get(at)?.parentAgentId ?? null) {
    if (at === above) return true;
  }
  return false;
}

/** Whether a turn is another one, or belongs to an agent that was spawned under it and that it waits for. */
function isOfTurn(turnId: string, above: string, agents: Agents): boolean {
  for (let at: string | null = turnId; at !== null; ) {
    if (at === above) return true;
    const agent: AgentRecord | undefined = agents.get(agentOfTurn(at));
    at = agent && !agent.background ? agent.parentTurnId : null;
  }
  return false;
}
