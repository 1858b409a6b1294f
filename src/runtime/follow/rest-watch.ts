import { type Account, agentAccountId, turnAccountId } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { type AgentRecord, type AgentRequest, agentOfTurn, rootOf } from "../../state/index.ts";
import type { Stores, TreeActivity } from "../../stores/index.ts";

/**
 * The open requests that a turn and all agents below it wait for; `undefined` while any of them works. This is derived from the
 * accounts, which count the work of every process, and from the inboxes, whose items start work. All are read at one moment,
 * since the commit that opens a request may also bring the turn to rest.
 */
export async function requestsAtRest(
  stores: Stores,
  tenant: string,
  turnId: string,
): Promise<AgentRequest[] | undefined> {
  const activity = await stores.treeActivity(tenant, rootOf(agentOfTurn(turnId)));
  if (!activity) return undefined;
  const agents = byId(activity.agents);
  assertAccount(turnId, activity);
  if (activeBelow(turnId, activity.accounts, agents) !== 0) return undefined;
  if (activity.agents.some((agent) => isOfAgentAtWork(agent, turnId, agents) && isSomethingUnheard(agent, activity)))
    return undefined;
  const own = activity.openRequests.filter((request) => isOfTurn(request.turnId, turnId, agents));
  return own.length === 0 ? undefined : own;
}

/**
 * A turn that has opened a request has started, so its account exists. Without the account it is unknown whether the turn works.
 */
function assertAccount(turnId: string, { accounts, openRequests }: TreeActivity): void {
  const accountId = turnAccountId(turnId);
  if (accounts.some(({ id }) => id === accountId) || !openRequests.some((one) => one.turnId === turnId)) return;
  throw new CorruptRecordError(`account ${accountId} is missing, though its turn is open`);
}

function isOfAgentAtWork({ openTurnId }: AgentRecord, turnId: string, agents: Agents): boolean {
  return openTurnId !== null && isOfTurn(openTurnId, turnId, agents);
}

/**
 * Whether the agent's inbox contains an item that starts work. Items for queued turns do not, nor do pauses, warnings and changes
 * of budgets.
 */
function isSomethingUnheard({ agentId, openTurnId }: AgentRecord, { inboxes }: TreeActivity): boolean {
  const items = inboxes.get(agentId) ?? [];
  return items.some((item) => {
    if (item.kind === "turn") return item.turnId === openTurnId;
    if (item.kind === "abort") return item.turnId === null || item.turnId === openTurnId;
    return item.kind !== "pause" && item.kind !== "budget.warning" && item.kind !== "budget.changed";
  });
}

/**
 * Counts the work below the turn, without background children: they count on its account, but the turn does not wait for them.
 */
function activeBelow(turnId: string, accounts: readonly Account[], agents: Agents): number | undefined {
  const known = new Map(accounts.map((account) => [account.id, account]));
  const isUnder = (id: string | null): boolean => {
    for (let at = id; at !== null; at = known.get(at)?.parentId ?? null) if (at === turnAccountId(turnId)) return true;
    return false;
  };
  let active = known.get(turnAccountId(turnId))?.activeCount;
  for (const { background, agentId, parentTurnId } of agents.values()) {
    const account = known.get(agentAccountId(agentId));
    if (!background || !account || active === undefined || parentTurnId === null) continue;
    if (isOfTurn(parentTurnId, turnId, agents) && isUnder(account.id)) active -= account.activeCount;
  }
  return active;
}

/** Open requests of an agent and of all agents below it. */
export async function requestsBelow(stores: Stores, tenant: string, agentId: string): Promise<AgentRequest[]> {
  const activity = await stores.treeActivity(tenant, rootOf(agentId));
  if (!activity) return [];
  const agents = byId(activity.agents);
  return activity.openRequests.filter((request) => isOfAgent(request.agentId, agentId, agents));
}

type Agents = ReadonlyMap<string, AgentRecord>;

function byId(agents: readonly AgentRecord[]): Agents {
  return new Map(agents.map((agent) => [agent.agentId, agent]));
}

function isOfAgent(agentId: string, above: string, agents: Agents): boolean {
  for (let at: string | null = agentId; at !== null; at = agents.get(at)?.parentAgentId ?? null) {
    if (at === above) return true;
  }
  return false;
}

/** Whether a turn is `above` itself, or belongs to an agent that was spawned under it and that it waits for. */
function isOfTurn(turnId: string, above: string, agents: Agents): boolean {
  for (let at: string | null = turnId; at !== null; ) {
    if (at === above) return true;
    const agent: AgentRecord | undefined = agents.get(agentOfTurn(at));
    at = agent && !agent.background ? agent.parentTurnId : null;
  }
  return false;
}
