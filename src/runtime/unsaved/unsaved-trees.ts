import type { Moment } from "../../budget/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type TurnRecord,
  agentOfAccount,
  agentOfTurn,
  rootOf,
  type Timer,
} from "../../state/index.ts";
import {
  type AgentFilter,
  type Batch,
  byAge,
  byChange,
  type CommitOutcome,
  type LiveChannel,
  placeOfAgent,
  placeOfTurn,
  type RequestFilter,
  type Stores,
  type TurnFilter,
} from "../../stores/index.ts";
import { UnsavedKeeper, type UnsavedOptions } from "./unsaved-keeper.ts";
import type { UnsavedTree } from "./unsaved-tree.ts";

/**
 * Stores that keep some trees in memory until they are saved, and all others durable. Callers see one set of stores.
 */
export interface UnsavedTrees extends Stores {
  /**
   * Keeps the whole tree of an agent in memory until it is saved; a stored tree is copied when it is activated. Throws
   * `InvalidInputError` while it lives in this process with `autoSave`.
   */
  hold(key: AgentKey): Promise<void>;
  /**
   * Writes the agent's whole current tree in one transaction; does nothing if it is not held. Rejects with
   * `LeaseLostError` or `AlreadyOwnedError` when another process has the agent, and overwrites nothing then.
   */
  save(key: AgentKey): Promise<void>;
  /** Saves; with a root's key the tree also leaves memory, until it is activated again. */
  letGo(key: AgentKey): Promise<void>;
  /** Whether its tree is in the memory of this process alone. */
  isHeld(key: AgentKey): boolean;
  /** An agent as it was last saved, with later commands of other processes. */
  readSaved(key: AgentKey): Promise<AgentRecord | undefined>;
}

/**
 * While no tree is held, the methods are those of the durable stores, so that other trees pay nothing. From the first
 * `hold()` on each call is routed to the stores of its tree.
 */
export function unsavedTrees(durable: Stores, options: UnsavedOptions): UnsavedTrees {
  const keeper = new UnsavedKeeper(durable, options);
  const routed = routedStores(keeper);
  const live: LiveChannel = {
    // Live texts refer to rows that only this process has.
    isFollowed: (place) =>
      !keeper.isHeld({ tenant: place.tenant, agentId: place.rootAgentId }) && durable.live.isFollowed(place),
    send: (place, message) => durable.live.send(place, message),
    follow: (place, listener) => durable.live.follow(place, listener),
    onAsked: (processId, listener) => durable.live.onAsked(processId, listener),
  };
  const stores: UnsavedTrees = {
    ...ownMethods(durable, [...Object.keys(routed), ...savedOnly]),
    ...(options.guardsRequests || options.onDurable ? { commit: routed.commit } : {}),
    hold: async (key) => {
      Object.assign(stores, routed, { live });
      await keeper.hold(key);
    },
    save: (key) => keeper.save(key),
    letGo: (key) => keeper.letGo(key),
    isHeld: (key) => !keeper.isEmpty && keeper.isHeld(key),
    readSaved: (key) => durable.readAgent(key),

    kind: durable.kind,
    registerProcess: (process, now, elapsed) => keeper.register(process, now, elapsed),
    live: durable.live,
    onForeignWrite: (listener) => keeper.onForeignWrite(listener),
    close: () => keeper.close(),
  };
  return stores;
}

/**
 * Methods that concern only the durable stores: projections copy what is saved, webhooks are told of it, only saved writes can
 * be lost, and only agents that are saved are put away.
 */
const savedOnly = [
  "projectionCursor",
  "moveProjection",
  "webhooks",
  "putWebhooks",
  "dueWebhooks",
  "onRolledBack",
  "rest",
] as const;
type RoutedStores = Omit<
  Stores,
  (typeof savedOnly)[number] | "kind" | "registerProcess" | "live" | "onForeignWrite" | "close"
>;

function ownMethods(
  durable: Stores,
  names: readonly string[],
): RoutedStores & Pick<Stores, (typeof savedOnly)[number]> {
  const methods = names.map((name) => {
    const method: unknown = Reflect.get(durable, name);
    return [name, typeof method === "function" ? (method as (...given: never[]) => unknown).bind(durable) : method];
  });
  return Object.fromEntries(methods) as ReturnType<typeof ownMethods>;
}

/** Routes each call to the stores of its tree, and merges lists. */
function routedStores(keeper: UnsavedKeeper): RoutedStores {
  const { durable, options } = keeper;
  const of = (key: AgentKey): Stores => keeper.route(key);
  const ofTree = (tenant: string, agentId: string): Stores => keeper.route({ tenant, agentId });
  const merged = (): MergedStores => ({
    durable,
    trees: keeper.trees,
    isHeld: (key) => keeper.isHeld(key),
    request: (tenant, requestId) =>
      ofTree(tenant, agentOfTurn(requestId)).request({ tenant, agentId: agentOfTurn(requestId) }, requestId),
  });
  return {
    commit: (batches, now, steady = now) =>
      commit(keeper, options.guardsRequests ? batches.map(guarded) : batches, now, steady),
    createAgent: (identity, account, more) => of(identity).createAgent(identity, account, more),
    openTurn: (key, command, now) => of(key).openTurn(key, command, now),
    lookAtTurn: (key, turnId, after) => of(key).lookAtTurn(key, turnId, after),
    pause: (key, by, now, how) => of(key).pause(key, by, now, how),
    resume: (key, by, now) => of(key).resume(key, by, now),
    abort: (key, command, now) => of(key).abort(key, command, now),
    setBudget: (key, command, now, steady) => of(key).setBudget(key, command, now, steady),
    decide: (key, requestId, decision, now, how) => of(key).decide(key, requestId, decision, now, how),
    heartbeat: (processId, steady) => keeper.heartbeat(processId, steady),
    acquire: (key, processId, leaseMs, steady, isKnown) => keeper.acquire(key, processId, leaseMs, steady, isKnown),
    release: (key, epoch, how) => of(key).release(key, epoch, how),
    wantLease: (key, now) => of(key).wantLease(key, now),

    claimCall: (key, claim, steady) => of(key).claimCall(key, claim, steady),
    postCallEnd: (key, item) => of(key).postCallEnd(key, item),
    unattended: async (tenant, query, steady) => {
      const keys = await durable.unattended(tenant, query, steady);
      return keeper.isEmpty ? keys : keys.filter((key) => !keeper.isHeld(key));
    },
    holder: (key) => of(key).holder(key),
    readAgent: (key) => of(key).readAgent(key),
    inbox: (key) => of(key).inbox(key),
    posted: async (keys) => {
      if (keeper.isEmpty) return await durable.posted(keys);
      const places = Map.groupBy(keys, (key) => of(key));
      const found = await Promise.all([...places].map(([stores, some]) => stores.posted(some)));
      return found.flat();
    },
    readJournal: (key, fromSeq) => of(key).readJournal(key, fromSeq),
    messages: (key, query) => of(key).messages(key, query),
    messagesById: (key, ids) => of(key).messagesById(key, ids),
    artifacts: (key) => of(key).artifacts(key),
    artifact: (key, artifactId) => of(key).artifact(key, artifactId),
    artifactByName: (key, name, version) => of(key).artifactByName(key, name, version),
    request: (key, requestId) => of(key).request(key, requestId),
    readTree: (tenant, root, after, limit) => ofTree(tenant, root).readTree(tenant, root, after, limit),
    accounts: (tenant, root) => ofTree(tenant, root).accounts(tenant, root),
    waiters: (tenant, root) => ofTree(tenant, root).waiters(tenant, root),
    fireTimer: (timer, now, steady) => of(timer).fireTimer(timer, now, steady),
    account: (tenant, accountId) => ofTree(tenant, agentOfAccount(accountId)).account(tenant, accountId),
    definition: (tenant, root, hash) => ofTree(tenant, root).definition(tenant, root, hash),
    treeActivity: (tenant, root) => ofTree(tenant, root).treeActivity(tenant, root),
    treeHead: (tenant, root) => ofTree(tenant, root).treeHead(tenant, root),
    exportTree: (tenant, root) => ofTree(tenant, root).exportTree(tenant, root),
    importTree: (tree, processId, known) => ofTree(tree.tenant, tree.rootAgentId).importTree(tree, processId, known),

    listAgents: async (filter) => {
      const { tenant, rootAgentId } = filter;
      if (rootAgentId !== undefined) return await ofTree(tenant, rootAgentId).listAgents(filter);
      return keeper.isEmpty ? await durable.listAgents(filter) : await listAllAgents(merged(), filter);
    },
    requests: async (filter) => {
      const place = filter.rootAgentId ?? filter.agentId ?? (filter.turnId && agentOfTurn(filter.turnId));
      if (place !== undefined) return await ofTree(filter.tenant, place).requests(filter);
      return keeper.isEmpty ? await durable.requests(filter) : await listAllRequests(merged(), filter);
    },
    turns: async (filter) => {
      const { tenant, agentId } = filter;
      if (agentId !== undefined) return await ofTree(tenant, agentId).turns(filter);
      return keeper.isEmpty ? await durable.turns(filter) : await listAllTurns(merged(), filter);
    },
    dueTimers: (now, limit, steady = now) =>
      keeper.isEmpty ? durable.dueTimers(now, limit, steady) : allDueTimers(merged(), { now, steady }, limit),
    timer: (key, timerId) => of(key).timer(key, timerId),
    nextTimerAt: () => (keeper.isEmpty ? durable.nextTimerAt() : nextOfAllTimers(merged())),
  };
}

/** Notes in each request that a rule limits who may decide it. */
function guarded(batch: Batch): Batch {
  if (batch.requests.length === 0) return batch;
  return { ...batch, requests: batch.requests.map((request) => ({ ...request, isGuarded: true })) };
}

/** Commits each batch in the stores of its tree; the outcomes are in the order of the batches. */
async function commit(
  keeper: UnsavedKeeper,
  batches: readonly Batch[],
  now: number,
  steady: number,
): Promise<CommitOutcome[]> {
  const { durable } = keeper;
  if (keeper.isEmpty) return noted(keeper, batches, await durable.commit(batches, now, steady));
  const groups = new Map<Stores, Batch[]>();
  for (const batch of batches) {
    const stores = keeper.route(batch.key);
    groups.set(stores, [...(groups.get(stores) ?? []), batch]);
  }
  const outcomes = new Map<Batch, CommitOutcome>();
  const work = [...groups].map(async ([stores, own]) => {
    const answers = await stores.commit(own, now, steady);
    if (stores === durable) noted(keeper, own, answers);
    for (const [index, answer] of answers.entries()) outcomes.set(own[index] as Batch, answer);
  });
  // Waits for all, because a repeated commit relies on the answers of the batches that succeeded.
  const failed = (await Promise.allSettled(work)).find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  return batches.flatMap((batch) => outcomes.get(batch) ?? []);
}

function noted(keeper: UnsavedKeeper, batches: readonly Batch[], outcomes: CommitOutcome[]): CommitOutcome[] {
  const { onDurable } = keeper.options;
  if (!onDurable) return outcomes;
  for (const [index, outcome] of outcomes.entries()) {
    const agentId = batches[index]?.key.agentId;
    if (agentId === undefined || outcome.type !== "committed" || outcome.entries.length === 0) continue;
    onDurable(rootOf(agentId));
  }
  return outcomes;
}

const ALL = Number.MAX_SAFE_INTEGER;
const DEFAULT_LIMIT = 100;

/** Several stores that are listed as one. The saved copy of a tree that is held in memory is left out. */
interface MergedStores {
  readonly durable: Stores;
  readonly trees: readonly UnsavedTree[];
  readonly isHeld: (key: AgentKey) => boolean;
  readonly request: (tenant: string, requestId: string) => Promise<AgentRequest | undefined>;
}

async function listAllAgents(merged: MergedStores, filter: AgentFilter): Promise<AgentRecord[]> {
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

/** Reads further pages until the limit is reached, since held agents are left out. */
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

async function listAllTurns({ durable, trees, isHeld }: MergedStores, filter: TurnFilter): Promise<TurnRecord[]> {
  const { limit = DEFAULT_LIMIT } = filter;
  const besides = async (): Promise<TurnRecord[]> => {
    const found: TurnRecord[] = [];
    for (let after = filter.after; found.length < limit; ) {
      const page = await durable.turns({ ...filter, limit, after });
      found.push(...page.filter((turn) => !isHeld(turn)));
      const last = page.at(-1);
      if (page.length < limit || last === undefined) break;
      after = placeOfTurn(last);
    }
    return found;
  };
  const lists = await Promise.all([besides(), ...trees.map((tree) => tree.stores.turns({ ...filter, limit }))]);
  return lists.flat().sort(byChange).slice(0, limit);
}

async function listAllRequests(merged: MergedStores, filter: RequestFilter): Promise<AgentRequest[]> {
  const { durable, trees, isHeld } = merged;
  const { after, limit = DEFAULT_LIMIT, ...others } = filter;
  const last = after === undefined ? undefined : await merged.request(filter.tenant, after);
  // Invalid filters are left to the stores to refuse.
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

async function allDueTimers(merged: MergedStores, moment: Moment, limit: number): Promise<Timer[]> {
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

async function nextOfAllTimers({ durable, trees, isHeld }: MergedStores): Promise<number | undefined> {
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
