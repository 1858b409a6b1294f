import type { AgentKey, AgentRecord, AgentRequest, Timer } from "../../state/index.ts";
import {
  type AgentFilter,
  byAge,
  type Moment,
  placeOfAgent,
  type RequestFilter,
  type Stores,
} from "../../stores/index.ts";
import type { UnsavedTree } from "./unsaved-tree.ts";

const ALL = Number.MAX_SAFE_INTEGER;
const DEFAULT_LIMIT = 100;

/** Several stores as one to whoever asks for lists. What is saved of a tree that is held in memory is left out. */
export interface MergedStores {
  readonly durable: Stores;
  readonly trees: readonly UnsavedTree[];
  readonly isHeld: (key: AgentKey) => boolean;
  readonly request: (tenant: string, requestId: string) => Promise<AgentRequest | undefined>;
}

export async function listAllAgents(merged: MergedStores, filter: AgentFilter): Promise<AgentRecord[]> {
  const { durable, trees, isHeld } = merged;
  const { limit = DEFAULT_LIMIT } = filter;
  const lists = await Promise.all([
    agentsBesides(durable, isHeld, { ...filter, limit }),
    ...trees.map((tree) => tree.stores.listAgents({ ...filter, limit })),
  ]);
  return lists
    .flat()
    .sort(filter.order === "newest" ? byAge : (one, other) => (one.agentId < other.agentId ? -1 : 1))
    .slice(0, limit);
}

/** As many as are asked for, also where some of a page are left out. */
async function agentsBesides(
  durable: Stores,
  isHeld: MergedStores["isHeld"],
  filter: AgentFilter & { readonly limit: number },
): Promise<AgentRecord[]> {
  const found: AgentRecord[] = [];
  for (let after = filter.after; found.length < filter.limit; ) {
    const page = await durable.listAgents({ ...filter, after });
    found.push(...page.filter((record) => !isHeld(record)));
    const last = page.at(-1);
    if (page.length < filter.limit || last === undefined) break;
    after = filter.order === "newest" ? placeOfAgent(last) : last.agentId;
  }
  return found;
}

export async function listAllRequests(merged: MergedStores, filter: RequestFilter): Promise<AgentRequest[]> {
  const { durable, trees, isHeld } = merged;
  const { after, limit = DEFAULT_LIMIT, ...others } = filter;
  const last = after === undefined ? undefined : await merged.request(filter.tenant, after);
  // What makes no sense is for the stores to refuse.
  if ((after !== undefined && !last) || !(Number.isSafeInteger(limit) && limit >= 0)) {
    return await durable.requests(filter);
  }
  const wanted = { ...others, limit: ALL };
  const lists = await Promise.all([
    durable.requests(wanted).then((requests) => requests.filter((request) => !isHeld(request))),
    ...trees.map((tree) => tree.stores.requests(wanted)),
  ]);
  const all = lists.flat().sort(byOpening);
  return all.filter((request) => !last || byOpening(last, request) < 0).slice(0, limit);
}

function byOpening(one: AgentRequest, other: AgentRequest): number {
  if (one.openedAt !== other.openedAt) return one.openedAt - other.openedAt;
  return one.requestId === other.requestId ? 0 : one.requestId < other.requestId ? -1 : 1;
}

export async function allDueTimers(merged: MergedStores, moment: Moment, limit: number): Promise<Timer[]> {
  const { durable, trees, isHeld } = merged;
  const lists = await Promise.all([
    timersBesides(durable, isHeld, moment, limit),
    ...trees.map((tree) => tree.stores.dueTimers(moment.now, limit, moment.steady)),
  ]);
  return lists
    .flat()
    .sort((one, other) => one.dueAt - other.dueAt)
    .slice(0, limit);
}

export async function nextOfAllTimers({ durable, trees, isHeld }: MergedStores): Promise<number | undefined> {
  const [first] = await timersBesides(durable, isHeld, { now: ALL, steady: ALL }, 1);
  const times = [first?.dueAt, ...(await Promise.all(trees.map((tree) => tree.stores.nextTimerAt())))];
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

async function timersBesides(
  durable: Stores,
  isHeld: MergedStores["isHeld"],
  { now, steady }: Moment,
  limit: number,
): Promise<Timer[]> {
  for (let asked = limit + DEFAULT_LIMIT; ; asked *= 2) {
    const timers = await durable.dueTimers(now, asked, steady);
    const found = timers.filter((timer) => !isHeld(timer)).slice(0, limit);
    if (found.length === limit || timers.length < asked) return found;
  }
}
