import type { AgentRecord } from "../../state/index.ts";
import type { AgentFilter, Stores } from "../../stores/index.ts";

const agentsAtATime = 200;

/** All agents that pass, however many pages they fill. */
export async function allAgents(stores: Stores, filter: AgentFilter): Promise<AgentRecord[]> {
  const records: AgentRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.agentId;
    const more = await stores.listAgents({ ...filter, limit: agentsAtATime, after });
    records.push(...more);
    if (more.length < agentsAtATime) return records;
  }
}
