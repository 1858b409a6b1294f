import { type AgentRecord, DEFAULT_TENANT } from "../../state/index.ts";
import { type AgentFilter, placeOfAgent, type Stores } from "../../stores/index.ts";

const agentsAtATime = 200;

/** All agents that pass, in the order of their ids, however many pages they fill. */
export async function allAgents(
  stores: Stores,
  filter: Omit<AgentFilter, "order" | "limit" | "after">,
): Promise<AgentRecord[]> {
  const records: AgentRecord[] = [];
  for (;;) {
    const after = records.at(-1)?.agentId;
    const more = await stores.listAgents({ ...filter, limit: agentsAtATime, after });
    records.push(...more);
    if (more.length < agentsAtATime) return records;
  }
}

/** The root agents of a store, newest first; no more of them are read than are asked for, page by page. */
export async function* rootsByAge(stores: Stores, pageSize: number = agentsAtATime): AsyncGenerator<AgentRecord> {
  for (let after: string | undefined; ; ) {
    const filter = { tenant: DEFAULT_TENANT, rootsOnly: true, order: "newest", limit: pageSize, after } as const;
    const page = await stores.listAgents(filter);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < pageSize) return;
    after = placeOfAgent(last);
  }
}
