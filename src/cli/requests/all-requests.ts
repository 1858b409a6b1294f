import { type AgentRequest, DEFAULT_TENANT } from "../../state/index.ts";
import type { RequestFilter, Stores } from "../../stores/index.ts";
import { allAgents } from "../job/all-agents.ts";
import { shortAgentId } from "../job/job-id.ts";
import type { PlacedRequest } from "../view/request-lines.ts";

const requestsAtATime = 200;

/** All requests that pass, oldest first, however many pages they fill. */
export async function allRequests(stores: Stores, filter: Omit<RequestFilter, "tenant"> = {}): Promise<AgentRequest[]> {
  const requests: AgentRequest[] = [];
  for (;;) {
    const after = requests.at(-1)?.requestId;
    const more = await stores.requests({ ...filter, tenant: DEFAULT_TENANT, limit: requestsAtATime, after });
    requests.push(...more);
    if (more.length < requestsAtATime) return requests;
  }
}

/** Each request with the path of agents from its root down to the one that asks. */
export async function placedRequests(stores: Stores, requests: readonly AgentRequest[]): Promise<PlacedRequest[]> {
  const roots = new Set(requests.map(({ rootAgentId }) => rootAgentId));
  const trees = await Promise.all(
    [...roots].map((rootAgentId) => allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId })),
  );
  const agents = new Map(trees.flat().map((record) => [record.agentId, record]));
  return requests.map((request) => {
    const names: string[] = [];
    for (let at: string | null = request.agentId; at !== null; at = agents.get(at)?.parentAgentId ?? null) {
      names.unshift(`${agents.get(at)?.definition.name ?? request.agentName} ${shortAgentId(at)}`);
    }
    return { request, path: names.join(" › ") };
  });
}
