import { type AccountHolder, type AgentRecord, agentOfAccount } from "../../state/index.ts";
import type { Tables } from "./tables.ts";

/** Whose account it is, in the eyes of the agent that spends on it: so that a limit can be named for people. */
export function holderOfAccount(tables: Tables, spender: AgentRecord, accountId: string): AccountHolder {
  const agentId = agentOfAccount(accountId);
  if (agentId === spender.agentId) return { name: spender.definition.name, kinship: "own" };
  const name = tables.agent({ tenant: spender.tenant, agentId })?.definition.name ?? agentId;
  return { name, kinship: agentId === spender.parentAgentId ? "parent" : "ancestor" };
}
