import { type AgentRecord, type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import type { RequestFilter, Stores } from "../../stores/index.ts";
import { shortAgentId } from "../job/job-id.ts";
import type { PlacedRequest } from "../view/request-lines.ts";

const requestsAtATime = 200;

type Filter = Omit<RequestFilter, "tenant" | "limit" | "after">;

/** All requests that pass, oldest first, however many pages they fill. */
export async function allRequests(stores: Stores, filter: Filter = {}): Promise<AgentRequest[]> {
  const requests: AgentRequest[] = [];
  for await (const request of requestsOf(stores, filter)) requests.push(request);
  return requests;
}

/** The same one by one; no more of them are read than are asked for, page by page. */
export async function* requestsOf(stores: Stores, filter: Filter): AsyncGenerator<AgentRequest> {
  for (let after: string | undefined; ; ) {
    const page = await stores.requests({ ...filter, tenant: DEFAULT_TENANT, limit: requestsAtATime, after });
    yield* page;
    after = page.at(-1)?.requestId;
    if (page.length < requestsAtATime) return;
  }
}

/** Each request with the path of agents from its root down to the one that asks. */
export async function placedRequests(stores: Stores, requests: readonly AgentRequest[]): Promise<PlacedRequest[]> {
  const agents = new Map<string, Promise<AgentRecord | undefined>>();
  const agentOf = (agentId: string): Promise<AgentRecord | undefined> => {
    const known = agents.get(agentId) ?? stores.readAgent({ tenant: DEFAULT_TENANT, agentId });
    agents.set(agentId, known);
    return known;
  };
  return await Promise.all(
    requests.map(async (request) => {
      const names: string[] = [];
      for (let at: string | null = request.agentId; at !== null; ) {
        const agent: AgentRecord | undefined = await agentOf(at);
        names.unshift(`${agent?.definition.name ?? request.agentName} ${shortAgentId(at)}`);
        at = agent?.parentAgentId ?? null;
      }
      return { request, path: names.join(" › ") };
    }),
  );
}
