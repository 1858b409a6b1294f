import type { Moment } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  agentOfAccount,
  agentOfTurn,
  type Timer,
  type TurnRecord,
} from "../../state/index.ts";
import {
  type Batch,
  byAge,
  byChange,
  allApplied,
  commitCharged,
  type CommitOutcome,
  formatAgentCursor,
  formatTurnCursor,
  type RequestFilter,
  type RolledBackTree,
  type Stores,
} from "../../stores/index.ts";
import { type UnsavedOptions, UnsavedTrees } from "./unsaved-trees.ts";

/** The stores of a runtime: the durable ones, and the trees that are in memory until they are saved. */
export interface RuntimeStores extends Stores {
  /**
   * Keeps the whole tree of an agent in memory until it is saved; a stored tree is copied when it is activated. Throws
   * `InvalidInputError` while the tree is active in this process with `autoSave`.
   */
  keepUnsaved(key: AgentKey): Promise<void>;
  /**
   * Writes the agent's whole tree in one transaction; does nothing if it is not in memory. If another process owns the agent,
   * rejects with `LeaseLostError` or `AlreadyOwnedError` and overwrites nothing.
   */
  save(key: AgentKey): Promise<void>;
  /** Saves; with a root's key the tree is also removed from memory until it is activated again. */
  letGo(key: AgentKey): Promise<void>;
  /** Whether the agent's tree exists only in the memory of this process. */
  isUnsaved(key: AgentKey): boolean;
  /** Drops a tree that was deleted, whether it is in memory or cached, and calls the listeners of `onRolledBack`. */
  forgetTree(deleted: RolledBackTree): void;
  /** The roots of the trees that are in memory. */
  readonly unsavedRoots: readonly string[];
  /** An agent in its last saved state, with later commands of other processes. */
  readSaved(key: AgentKey): Promise<AgentRecord | undefined>;
}

/** Routes each call to the stores that contain the tree, and merges trees in memory into lists of saved ones. */
export function unsavedStores(durable: Stores, options: UnsavedOptions): RuntimeStores {
  const trees = new UnsavedTrees(durable, options);
  const losing = new Set<(found: RolledBackTree) => void>();
  return {
    ...routed(trees, ofAgent, (key: AgentKey) => key),
    ...routed(trees, ofTree, (tenant: string, agentId: string) => ({ tenant, agentId })),
    kind: durable.kind,
    keepUnsaved: (key) => trees.keep(key),
    save: (key) => trees.save(key),
    letGo: (key) => trees.letGo(key),
    isUnsaved: (key) => trees.has(key),
    readSaved: (key) => durable.readAgent(key),
    forgetTree: (deleted) => {
      const key = { tenant: deleted.tenant, agentId: deleted.rootAgentId };
      trees.drop(key);
      durable.dropTree?.(key);
      for (const listener of losing) listener(deleted);
    },
    get unsavedRoots() {
      return trees.inMemory.map(({ root }) => root.agentId);
    },

    commit: (batches, now, steady = now) =>
      trees.isEmpty ? durable.commit(batches, now, steady) : commit(trees, batches, now, steady),
    acquire: (key, processId, leaseMs, steady, isKnown) => trees.acquire(key, processId, leaseMs, steady, isKnown),
    account: (tenant, id) => trees.at({ tenant, agentId: agentOfAccount(id) }, (stores) => stores.account(tenant, id)),
    importTree: (tree, processId, how) =>
      trees.at({ tenant: tree.tenant, agentId: tree.rootAgentId }, (stores) => stores.importTree(tree, processId, how)),

    posted: async (keys) => {
      if (trees.isEmpty) return await durable.posted(keys);
      await trees.settled(keys);
      const groups = Map.groupBy(keys, (key) => trees.storesOf(key));
      return (await Promise.all([...groups].map(([stores, own]) => stores.posted(own)))).flat();
    },
    unattended: async (tenant, query, steady) =>
      (await durable.unattended(tenant, query, steady)).filter((key) => !trees.has(key)),
    listAgents: (filter) => {
      const { tenant, rootAgentId: agentId, order } = filter;
      if (agentId !== undefined) return trees.at({ tenant, agentId }, (stores) => stores.listAgents(filter));
      return merged(trees, filter, (stores, asked) => stores.listAgents(asked), order === "newest" ? newest : oldest);
    },
    turns: (filter) => {
      const { tenant, agentId } = filter;
      if (agentId !== undefined) return trees.at({ tenant, agentId }, (stores) => stores.turns(filter));
      return merged(trees, filter, (stores, asked) => stores.turns(asked), lastChanged);
    },
    requests: (filter) => {
      const { tenant } = filter;
      const agentId = filter.rootAgentId ?? filter.agentId ?? (filter.turnId && agentOfTurn(filter.turnId));
      if (agentId !== undefined) return trees.at({ tenant, agentId }, (stores) => stores.requests(filter));
      return trees.isEmpty ? durable.requests(filter) : listRequests(trees, filter);
    },
    dueTimers: (now, limit, steady = now) =>
      trees.isEmpty ? durable.dueTimers(now, limit, steady) : dueTimers(trees, { now, steady }, limit),
    nextTimerAt: () => (trees.isEmpty ? durable.nextTimerAt() : nextTimerAt(trees)),

    registerProcess: (process, now, elapsed) => trees.register(process, now, elapsed),
    heartbeat: (processId, steady) => trees.heartbeat(processId, steady),
    onForeignWrite: (listener) => trees.onForeignWrite(listener),
    close: () => trees.close(),
    live: {
      // Live texts refer to rows that only this process has.
      isFollowed: (place) =>
        !trees.has({ tenant: place.tenant, agentId: place.rootAgentId }) && durable.live.isFollowed(place),
      send: (place, message) => durable.live.send(place, message),
      follow: (place, listener) => durable.live.follow(place, listener),
      onAsked: (processId, listener) => durable.live.onAsked(processId, listener),
    },

    outer: {
      charge: (batch, moment) => durable.outer.charge(batch, moment),
      end: (tenant, ends, moment) => durable.outer.end(tenant, ends, moment),
      of: (tenant, ownerId) => durable.outer.of(tenant, ownerId),
      list: (tenant, page) => durable.outer.list(tenant, page),
      raise: (tenant, accountId, more, moment) => durable.outer.raise(tenant, accountId, more, moment),
      forget: (tenant, ownerId, moment) => durable.outer.forget(tenant, ownerId, moment),
      wake: (tenant, agentIds, moment) => durable.outer.wake(tenant, agentIds, moment),
      tidy: async (tenant, moment) => {
        const woken = await durable.outer.tidy(tenant, moment);
        await wakeInMemory(trees, tenant, woken, moment);
        return woken;
      },
    },

    // These concern saved trees only.
    processes: () => durable.processes(),
    projectionCursor: (tenant, name, root) => durable.projectionCursor(tenant, name, root),
    moveProjection: (tenant, name, root, cursor) => durable.moveProjection(tenant, name, root, cursor),
    webhooks: (tenant, root) => durable.webhooks(tenant, root),
    putWebhooks: (webhooks, before) => durable.putWebhooks(webhooks, before),
    dueWebhooks: (tenant, now, limit) => durable.dueWebhooks(tenant, now, limit),
    schedule: (tenant, key) => durable.schedule(tenant, key),
    schedules: (filter) => durable.schedules(filter),
    putSchedule: (schedule, before) => durable.putSchedule(schedule, before),
    removeSchedule: (tenant, key, before) => durable.removeSchedule(tenant, key, before),
    removeSchedules: (filter) => durable.removeSchedules(filter),
    dueSchedules: (tenant, now, limit, after) => durable.dueSchedules(tenant, now, limit, after),
    nextScheduleAt: (tenant, after) => durable.nextScheduleAt(tenant, after),
    onRolledBack: (listener) => {
      const entry = (found: RolledBackTree): void => listener(found);
      losing.add(entry);
      const stop = durable.onRolledBack(listener);
      return () => {
        losing.delete(entry);
        stop();
      };
    },
    // The saved copy of a tree in memory has other entries than the tree.
    deleteTree: (deletion, conditions) =>
      durable.deleteTree(
        deletion,
        trees.has({ tenant: deletion.tenant, agentId: deletion.pending.rootAgentId }) ? {} : conditions,
      ),
    finishDeletion: (deletion) => durable.finishDeletion(deletion),
    deletion: (tenant, root) => durable.deletion(tenant, root),
    deletions: (query) => durable.deletions(query),
    rest: (keys) => durable.rest?.(keys),
  };
}

/** Methods whose first argument names an agent. */
const ofAgent = [
  "createAgent",
  "openTurn",
  "steer",
  "readSteer",
  "lookAtTurn",
  "pause",
  "resume",
  "abort",
  "setBudget",
  "decide",
  "release",
  "wantLease",
  "holder",
  "claimCall",
  "postCallEnd",
  "readAgent",
  "inbox",
  "readJournal",
  "messages",
  "messagesById",
  "artifacts",
  "artifact",
  "artifactByName",
  "request",
  "timer",
  "fireTimer",
] as const satisfies readonly (keyof Stores)[];

/** Methods whose first arguments are a tenant and a root. */
const ofTree = [
  "readTree",
  "accounts",
  "waiters",
  "definition",
  "treeActivity",
  "treeHead",
  "exportTree",
] as const satisfies readonly (keyof Stores)[];

function routed<Name extends (typeof ofAgent)[number] | (typeof ofTree)[number]>(
  trees: UnsavedTrees,
  names: readonly Name[],
  keyOf: (...given: never[]) => AgentKey,
): Pick<Stores, Name> {
  const methods = names.map((name) => {
    const method = (...given: never[]): Promise<unknown> =>
      trees.at(keyOf(...given), (stores) => (stores[name] as (...all: never[]) => Promise<unknown>)(...given));
    return [name, method];
  });
  return Object.fromEntries(methods) as Pick<Stores, Name>;
}

/** Commits each batch to the stores of its tree; the outcomes are in the order of the batches. */
async function commit(
  trees: UnsavedTrees,
  batches: readonly Batch[],
  now: number,
  steady: number,
): Promise<CommitOutcome[]> {
  await trees.settled(batches.map(({ key }) => key));
  const outcomes = new Map<Batch, CommitOutcome>();
  const work = [...Map.groupBy(batches, ({ key }) => trees.storesOf(key))].map(async ([stores, own]) => {
    const answered =
      stores === trees.durable
        ? await stores.commit(own, now, steady)
        : await allApplied(own.map((batch) => commitApart(trees, stores, batch, { now, steady })));
    for (const [index, outcome] of answered.entries()) outcomes.set(own[index] as Batch, outcome);
  });
  // Waits for all commits, because a repeated commit relies on the answers of the batches that succeeded.
  const failed = (await Promise.allSettled(work)).find((one) => one.status === "rejected");
  if (failed) throw failed.reason;
  for (const [{ key }, outcome] of outcomes) {
    if (outcome.type !== "committed" || trees.has(key)) continue;
    await wakeInMemory(trees, key.tenant, outcome.posted, { now, steady });
  }
  return batches.flatMap((batch) => outcomes.get(batch) ?? []);
}

/** The durable stores cannot post to these agents. */
async function wakeInMemory(
  trees: UnsavedTrees,
  tenant: string,
  agentIds: readonly string[],
  moment: Moment,
): Promise<void> {
  for (const agentId of agentIds) {
    const key = { tenant, agentId };
    if (trees.has(key)) await trees.storesOf(key).outer.wake(tenant, [agentId], moment);
  }
}

/** Commits a batch of a tree in memory. The accounts above its root are those of the durable stores. */
async function commitApart(trees: UnsavedTrees, own: Stores, batch: Batch, moment: Moment): Promise<CommitOutcome> {
  const commit = async (one: Batch): Promise<CommitOutcome> => {
    const [outcome] = await own.commit([one], moment.now, moment.steady);
    if (outcome) return outcome;
    throw new InvariantError(`batch ${batch.id} of agent ${batch.key.agentId} has no outcome`);
  };
  let woken: readonly string[] = [];
  const outcome = await commitCharged(trees.durable.outer, { ...batch, isApart: true }, moment, (answers) => {
    woken = answers?.woken ?? [];
    return commit(answers ? { ...batch, answers } : batch);
  });
  // The batch itself has posted to the other agents of `outcome.posted`.
  await wakeInMemory(trees, batch.key.tenant, woken, moment);
  return outcome;
}

const ALL = Number.MAX_SAFE_INTEGER;
const DEFAULT_LIMIT = 100;

/** How a list is ordered, and at which cursor its next page begins. */
interface ListOrder<Row> {
  readonly cursorOf: (row: Row) => string;
  readonly compare: (one: Row, other: Row) => number;
}

const lastChanged: ListOrder<TurnRecord> = { cursorOf: formatTurnCursor, compare: byChange };
const newest: ListOrder<AgentRecord> = { cursorOf: formatAgentCursor, compare: byAge };
const oldest: ListOrder<AgentRecord> = {
  cursorOf: ({ agentId }) => agentId,
  compare: (one, other) => (one.agentId < other.agentId ? -1 : 1),
};

interface PageFilter {
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

/** One page of the trees in memory and of all other trees, without saved copies of the former. */
async function merged<Row extends AgentKey, Filter extends PageFilter>(
  trees: UnsavedTrees,
  filter: Filter,
  read: (stores: Stores, filter: Filter) => Promise<Row[]>,
  { cursorOf, compare }: ListOrder<Row>,
): Promise<Row[]> {
  if (trees.isEmpty) return await read(trees.durable, filter);
  const { limit = DEFAULT_LIMIT } = filter;
  const found = (await Promise.all(trees.inMemory.map(({ stores }) => read(stores, filter)))).flat();
  let saved = 0;
  for (let { after } = filter; saved < limit; ) {
    const rows = await read(trees.durable, { ...filter, after });
    const others = rows.filter((row) => !trees.has(row));
    found.push(...others);
    saved += others.length;
    const last = rows.at(-1);
    if (rows.length < limit || last === undefined) break;
    after = cursorOf(last);
  }
  return found.sort(compare).slice(0, limit);
}

async function listRequests(trees: UnsavedTrees, filter: RequestFilter): Promise<AgentRequest[]> {
  const { tenant, after, limit = DEFAULT_LIMIT, ...others } = filter;
  const key = after === undefined ? undefined : { tenant, agentId: agentOfTurn(after) };
  const last = key && after && (await trees.at(key, (stores) => stores.request(key, after)));
  // Invalid filters are left to the stores to refuse.
  if ((after !== undefined && !last) || !(Number.isSafeInteger(limit) && limit >= 0)) {
    return await trees.durable.requests(filter);
  }
  const wanted = { ...others, tenant, limit: ALL };
  const saved = trees.durable.requests(wanted).then((requests) => requests.filter((request) => !trees.has(request)));
  const lists = await Promise.all([saved, ...trees.inMemory.map(({ stores }) => stores.requests(wanted))]);
  const all = lists.flat().sort(byOpening);
  return all.filter((request) => !last || byOpening(last, request) < 0).slice(0, limit);
}

function byOpening(one: AgentRequest, other: AgentRequest): number {
  if (one.openedAt !== other.openedAt) return one.openedAt - other.openedAt;
  return one.requestId === other.requestId ? 0 : one.requestId < other.requestId ? -1 : 1;
}

async function dueTimers(trees: UnsavedTrees, moment: Moment, limit: number): Promise<Timer[]> {
  const lists = await Promise.all([
    savedTimers(trees, moment, limit),
    ...trees.inMemory.map(({ stores }) => stores.dueTimers(moment.now, limit, moment.steady)),
  ]);
  return lists
    .flat()
    .sort((one, other) => one.dueAt - other.dueAt)
    .slice(0, limit);
}

async function nextTimerAt(trees: UnsavedTrees): Promise<number | undefined> {
  const [first] = await savedTimers(trees, { now: ALL, steady: ALL }, 1);
  const times = [first?.dueAt, ...(await Promise.all(trees.inMemory.map(({ stores }) => stores.nextTimerAt())))];
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

/** Due timers of the durable stores without those of saved copies, which are out of date. */
async function savedTimers(trees: UnsavedTrees, { now, steady }: Moment, limit: number): Promise<Timer[]> {
  for (let asked = limit + DEFAULT_LIMIT; ; asked *= 2) {
    const timers = await trees.durable.dueTimers(now, asked, steady);
    const found = timers.filter((timer) => !trees.has(timer)).slice(0, limit);
    if (found.length === limit || timers.length < asked) return found;
  }
}
