import type { AgentKey, AgentRecord, JournalRow, Message, StoredDefinition } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { definitionHashesOf, type StoredConversation } from "../../src/context/sent-prompts.ts";
import { entriesOf } from "./journal-probes.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/** The agents of a tree, by id. */
export function agentsOf(stores: Stores, rootAgentId: string): Promise<AgentRecord[]> {
  return stores.listAgents({ tenant: "default", rootAgentId, limit: ALL });
}

export function rowsOf(stores: Stores, rootAgentId: string): Promise<JournalRow[]> {
  return stores.readTree("default", rootAgentId, 0, ALL);
}

/** All stored data of an agent's prompts, as an inspector reads it. */
export async function conversationOf(stores: Stores, agent: AgentRecord): Promise<StoredConversation> {
  const { tenant, agentId, rootAgentId } = agent;
  const key: AgentKey = { tenant, agentId };
  const entries = await entriesOf(stores, agentId);
  const messages: readonly Message[] = await stores.messages(key);
  const definitions = new Map<string, StoredDefinition>();
  for (const hash of definitionHashesOf(entries)) {
    const definition = await stores.definition(tenant, rootAgentId, hash);
    if (definition) definitions.set(hash, definition);
  }
  return { agent, entries, messages, definitions };
}
