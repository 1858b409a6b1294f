import { type Account, addUse, type UseByModel } from "../../budget/index.ts";
import { ownUse } from "../../runtime/index.ts";
import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { allAgents } from "./all-agents.ts";
import { allRows } from "./story.ts";

/** Agents and accounts of a tree, or of the part below one agent. */
export interface BudgetTree {
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** By agent: what its own calls have used, by model, as its journal tells. */
  readonly own: ReadonlyMap<string, UseByModel>;
}

/** The agent and all below it, parents first, with their accounts. */
export async function readBudgets(stores: Stores, top: AgentRecord): Promise<BudgetTree> {
  const { rootAgentId } = top;
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId });
  const within = new Set([top.agentId]);
  const agents = records
    .toSorted((one, other) => one.depth - other.depth || one.createdAt - other.createdAt)
    .filter(({ agentId, parentAgentId }) => {
      if (parentAgentId !== null && within.has(parentAgentId)) within.add(agentId);
      return within.has(agentId);
    });
  const accounts = await stores.accounts(DEFAULT_TENANT, rootAgentId);
  const own = new Map<string, UseByModel>();
  for (const { agentId, entries } of await allRows(stores, rootAgentId)) {
    if (within.has(agentId)) own.set(agentId, addUse(own.get(agentId) ?? {}, ownUse(entries)));
  }
  return { agents, accounts: accounts.filter(({ agentId }) => within.has(agentId)), own };
}
