import { NotFoundError } from "../../errors/index.ts";
import {
  type AgentRecord,
  type AgentRequest,
  DEFAULT_TENANT,
  agentOfTurn,
  type RequestVerdict,
  rootOf,
  verdictsOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { shortAgentId } from "../view/format.ts";
import type { PlacedRequest } from "../view/request-lines.ts";

/** Maximum number of ids in an error about an ambiguous id. */
const namedAtMost = 5;

/** `approve` of a request such as a login at a page means that the person has done what it asks for. */
export function verdictFor<V extends RequestVerdict>({ kind, isAsked }: AgentRequest, verdict: V): V | "provided" {
  return verdict === "approved" && kind === "auth" && isAsked === true ? "provided" : verdict;
}

/**
 * Finds a request by its id or a prefix of it; without a text, the only open one that accepts the verdict. Open
 * requests have precedence over decided ones. Throws `NotFoundError` if no request or several match.
 */
export async function findRequest(
  stores: Stores,
  text: string | undefined,
  verdict: RequestVerdict,
): Promise<AgentRequest> {
  if (text === undefined) {
    const isFitting = (request: AgentRequest): boolean =>
      verdictsOf[request.kind].includes(verdictFor(request, verdict));
    const fitting = await some(stores, { status: "open" }, isFitting);
    return theOnly(fitting, `no open request of this store can be ${verdict}; \`requests\` lists the open requests`);
  }
  const none = `there is no request "${text}" in this store; \`requests\` lists the open requests`;
  if (text === "") throw new NotFoundError(none);
  const exact = text.includes("#")
    ? await stores.request({ tenant: DEFAULT_TENANT, agentId: agentOfTurn(text) }, text)
    : undefined;
  if (exact !== undefined) return exact;
  const starts = ({ requestId }: AgentRequest): boolean => requestId.startsWith(text);
  const place = await treeIn(stores, text);
  const open = await some(stores, { ...place, status: "open" }, starts);
  return theOnly(open.length > 0 ? open : await some(stores, place, starts), none);
}

/** Limits the search to one tree if the text contains the whole id of its root. */
async function treeIn(stores: Stores, text: string): Promise<Pick<RequestFilter, "rootAgentId">> {
  const rootAgentId = rootOf(agentOfTurn(text));
  if (rootAgentId !== text) return { rootAgentId };
  // A whole id may also be the prefix of another.
  const [next] = await stores.listAgents({ tenant: DEFAULT_TENANT, rootsOnly: true, limit: 1, after: text });
  const isOnly = next === undefined || !next.agentId.startsWith(text);
  const isThere = isOnly && (await stores.readAgent({ tenant: DEFAULT_TENANT, agentId: text })) !== undefined;
  return isThere ? { rootAgentId } : {};
}

/** At most one more than an error names. */
async function some(
  stores: Stores,
  filter: Pick<RequestFilter, "rootAgentId" | "status">,
  isMeant: (request: AgentRequest) => boolean,
): Promise<AgentRequest[]> {
  const found: AgentRequest[] = [];
  for await (const request of requestsOf(stores, filter)) {
    if (isMeant(request)) found.push(request);
    if (found.length > namedAtMost) break;
  }
  return found;
}

function theOnly([first, ...others]: readonly AgentRequest[], none: string): AgentRequest {
  if (first === undefined) throw new NotFoundError(none);
  if (others.length === 0) return first;
  const ids = [first, ...others].slice(0, namedAtMost).map(({ requestId }) => requestId);
  throw new NotFoundError(
    others.length >= namedAtMost
      ? `more than ${namedAtMost} requests match; name one of them: ${ids.join(", ")}, …`
      : `${others.length + 1} requests match; name one of them: ${ids.join(", ")}`,
  );
}

const requestsAtATime = 200;

type RequestFilter = Parameters<Stores["requests"]>[0];
type Filter = Omit<RequestFilter, "tenant" | "limit" | "after">;

/** All requests that match the filter, oldest first, page by page. */
export async function allRequests(stores: Stores, filter: Filter = {}): Promise<AgentRequest[]> {
  const requests: AgentRequest[] = [];
  for await (const request of requestsOf(stores, filter)) requests.push(request);
  return requests;
}

/** Like `allRequests`, as an iterator that reads pages only as the caller iterates. */
async function* requestsOf(stores: Stores, filter: Filter): AsyncGenerator<AgentRequest> {
  for (let after: string | undefined; ; ) {
    const page = await stores.requests({ ...filter, tenant: DEFAULT_TENANT, limit: requestsAtATime, after });
    yield* page;
    after = page.at(-1)?.requestId;
    if (page.length < requestsAtATime) return;
  }
}

/** Each request with the path of agents from the root to its agent. */
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
