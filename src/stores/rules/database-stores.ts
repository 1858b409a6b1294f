import { deepFreeze } from "../../base/index.ts";
import { type Moment, type NewAccount, openAccount } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import {
  type AgentIdentity,
  agentOfTurn,
  type AgentRecord,
  type AgentRequest,
  type Entry,
  type Message,
  newRecord,
  type TurnRecord,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import { commitCharged, OuterStores } from "./charged-commit.ts";
import { commitBatch } from "./commit.ts";
import { acquire, holderOf, release, wantLease } from "./leases.ts";
import { changeTimers, fireAccountTimer } from "./ledger.ts";
import type { AskListener, LiveChannel, LiveFollowing, LiveListener, LiveAddress } from "./live-channel.ts";
import { abort, pause, resume } from "./marks.ts";
import type { CommitOutcome, Committed } from "./outcomes.ts";
import type { AgentParts, Stores, TreeActivity, TreeHead } from "./ports.ts";
import { heartbeat, isRunning, registerProcess } from "./processes.ts";
import { parseAgentCursor, type AgentFilter, type RequestFilter, parseTurnCursor, type TurnFilter } from "./queries.ts";
import { claimCall, fireJobTimer, postCallEnd } from "./queued-calls.ts";
import { decide } from "./requests.ts";
import { putSchedule, removeSchedule, removeSchedules } from "./schedules.ts";
import { assertMayCreate, deletedIdHash, deleteTree, finishDeletion } from "./deletions.ts";
import { setBudget } from "./set-budget.ts";
import { concernsOuter } from "./outer-accounts.ts";
import { waitersOf } from "./reservation-queues.ts";
import type { Database, StoreTables, Tables } from "./tables.ts";
import { steer, steerOf } from "./steer.ts";
import { exportTree, importTree } from "./tree-transfer.ts";
import { lookAtTurn, openTurn } from "./turns.ts";
import { putWebhooks } from "./webhooks.ts";

const DEFAULT_LIST_LIMIT = 100;
const ALL = Number.MAX_SAFE_INTEGER;

/** Implements `Stores` on top of a database: all stores share these rules. */
export function databaseStores(kind: string, database: Database): Stores {
  const { tables } = database;
  const write = async <T>(work: () => T): Promise<T> => frozen(await database.write(work));
  const read = async <T>(work: () => T): Promise<T> => frozen(await database.read(work));
  const outer = new OuterStores(database);
  return {
    kind,
    commit: (batches, now, steady = now) => commitAll(database, outer, batches, { now, steady }),
    outer,
    createAgent: (identity, account, more) => write(() => createAgent(tables, identity, { account, ...more })),
    openTurn: (key, command, now) => write(() => openTurn(tables, key, command, now)),
    steer: (key, command, now) => write(() => steer(tables, key, command, now)),
    readSteer: (key, keyOrId) => read(() => steerOf(tables, key, keyOrId)),
    lookAtTurn: (key, turnId, after) => read(() => lookAtTurn(tables, key, turnId, after)),
    pause: (key, by, now, { now: isHurried, steady } = {}) =>
      write(() => pause(tables, key, { by, isHurried, steady }, now)),
    resume: (key, by, now) => write(() => resume(tables, key, by, now)),
    abort: (key, command, now) => write(() => abort(tables, key, command, now)),
    setBudget: (key, command, now, steady = now) => write(() => setBudget(tables, key, command, { now, steady })),
    decide: (key, requestId, decision, now, options) =>
      write(() => decide(tables, { ...key, requestId, decision, ...options }, now)),
    registerProcess: (identity, now, elapsed = now) => write(() => registerProcess(tables, identity, now, elapsed)),
    heartbeat: (processId, steady) => write(() => heartbeat(tables, processId, steady)),
    processes: () => read(() => tables.processes()),
    acquire: (key, processId, leaseMs, steady, isKnown) =>
      write(() => acquire(tables, key, { processId, leaseMs, isRunning, isKnown }, steady)),
    release: (key, epoch, options) => write(() => release(tables, key, epoch, options)),
    wantLease: (key, now) => write(() => wantLease(tables, key, now)),
    rest: (keys) => database.rest?.(keys),
    unattended: async (tenant, query, steady) =>
      await database.unattended(
        tenant,
        { ...query, limit: countOf("limit", query.limit ?? DEFAULT_LIST_LIMIT) },
        steady,
      ),
    holder: (key) => read(() => holderOf(tables, key)),
    claimCall: (key, claim, steady) => write(() => claimCall(tables, key, { ...claim, isRunning }, steady)),
    postCallEnd: (key, item) => write(() => postCallEnd(tables, key, item)),
    readAgent: (key) => read(() => tables.agent(key)),
    listAgents: (filter) => read(() => listAgents(tables, filter)),
    inbox: (key) => read(() => tables.inbox(key)),
    posted: async (keys) => (keys.length === 0 ? [] : await database.posted(keys)),
    readJournal: (key, fromSeq) => read(() => tables.rowsFrom(key, fromSeq)),
    readTree: (tenant, root, afterCursor, limit) =>
      read(() => tables.treeRows(tenant, root, afterCursor, countOf("limit", limit))),
    messages: (key, { maxMessages } = {}) =>
      read(() => tables.messages(key, maxMessages === undefined ? undefined : countOf("maxMessages", maxMessages))),
    messagesById: (key, ids) => read(() => tables.messagesById(key, ids)),
    artifacts: (key) => read(() => tables.artifacts(key)),
    artifact: (key, artifactId) => read(() => tables.artifact(key, artifactId)),
    artifactByName: (key, name, version) => read(() => tables.artifactByName(key, name, version)),
    requests: (filter) => read(() => listRequests(tables, filter)),
    request: (key, requestId) => read(() => tables.request(key, requestId)),
    turns: (filter) => read(() => listTurns(tables, filter)),
    account: (tenant, accountId) => read(() => tables.account(tenant, accountId)),
    definition: (tenant, root, hash) => read(() => tables.definition(tenant, root, hash)),
    treeActivity: (tenant, root) => read(() => treeActivityOf(tables, tenant, root)),
    treeHead: (tenant, root) => read(() => treeHeadOf(tables, tenant, root)),
    accounts: (tenant, root) => read(() => tables.accounts(tenant, root)),
    waiters: (tenant, root) => read(() => waitersOf(tables, tenant, tables.accounts(tenant, root))),
    dueTimers: (now, limit, steady = now) => read(() => tables.dueTimers({ now, steady }, countOf("limit", limit))),
    fireTimer: (timer, now, steady = now) => {
      const moment = { now, steady };
      return write(() =>
        timer.kind === "job" ? fireJobTimer(tables, timer, moment) : fireAccountTimer(tables, timer, moment),
      );
    },
    nextTimerAt: () => read(() => tables.nextTimerAt()),
    timer: (key, timerId) => read(() => tables.timer(key, timerId)),
    exportTree: (tenant, root) => read(() => exportTree(tables, tenant, root)),
    importTree: (tree, processId, how) => write(() => importTree(tables, tree, processId, how)),
    projectionCursor: (tenant, name, root) => read(() => tables.projectionCursor(tenant, name, root)),
    moveProjection: (tenant, name, root, cursor) =>
      write(() => moveProjection(tables, { tenant, name, root }, countOf("cursor", cursor))),
    webhooks: (tenant, root) => read(() => tables.webhooks(tenant, root)),
    putWebhooks: (webhooks, before) => write(() => putWebhooks(tables, webhooks, before)),
    dueWebhooks: (tenant, now, limit) => read(() => tables.dueWebhooks(tenant, now, countOf("limit", limit))),
    schedule: (tenant, key) => read(() => tables.schedule(tenant, key)),
    schedules: ({ limit = DEFAULT_LIST_LIMIT, ...filter }) =>
      read(() => tables.schedules(filter, countOf("limit", limit))),
    putSchedule: (schedule, before) => write(() => putSchedule(tables, schedule, before)),
    removeSchedule: (tenant, key, before) => write(() => removeSchedule(tables, tenant, key, before)),
    removeSchedules: (filter) => removeSchedules(database, filter),
    dueSchedules: (tenant, now, limit, after) =>
      read(() => tables.dueSchedules(tenant, now, countOf("limit", limit), after)),
    nextScheduleAt: (tenant, after) => read(() => tables.nextScheduleAt(tenant, after)),
    deleteTree: async (deletion, conditions = {}) => await deleteTree(database, deletion, conditions),
    finishDeletion: async (deletion) => await finishDeletion(database, deletion),
    dropTree: (key) => database.dropTree?.(key),
    deletion: (tenant, root) => read(() => tables.deletion(tenant, deletedIdHash(tenant, root))),
    deletions: (query) =>
      read(() => tables.deletions({ ...query, limit: countOf("limit", query.limit ?? DEFAULT_LIST_LIMIT) })),
    live: database.live ?? new InProcessLiveChannel(),
    onForeignWrite: (listener) => database.onForeignWrite(listener),
    onRolledBack: (listener) => database.onRolledBack?.(listener) ?? (() => undefined),
    close: () => database.close(),
  };
}

/** Results may be the stored objects themselves, so they are frozen. A returned list belongs to the caller, its elements do not. */
function frozen<T>(value: T): T {
  if (Array.isArray(value)) value.forEach(deepFreeze);
  else deepFreeze(value);
  return value;
}

/** Each batch is a separate write; the database decides which writes share a transaction. */
async function commitAll(
  database: Database,
  outer: OuterStores,
  batches: readonly Batch[],
  moment: Moment,
): Promise<CommitOutcome[]> {
  const { tables } = database;
  const apply = (batch: Batch): Promise<CommitOutcome> => {
    if (database.spansTrees && !batch.answers && concernsOuter(batch)) {
      return outer.commitTogether(batch, moment);
    }
    return commitCharged(outer, batch, moment, (charged) =>
      database.write(() => commitBatch(tables, batch, moment, charged)),
    );
  };
  return await allApplied(batches.map(apply));
}

/** Rejects with the first error after all commits have settled. */
export async function allApplied(commits: readonly Promise<CommitOutcome>[]): Promise<CommitOutcome[]> {
  const answers = await Promise.allSettled(commits);
  return answers.map((answer) => {
    if (answer.status === "rejected") throw answer.reason;
    return answer.value;
  });
}

function listAgents(tables: StoreTables, filter: AgentFilter): AgentRecord[] {
  const { order = "id", rootsOnly, after, limit = DEFAULT_LIST_LIMIT } = filter;
  const count = countOf("limit", limit);
  if (order === "id") return tables.listAgents(filter, count);
  if (order !== "newest") throw new InvalidInputError(`order is ${JSON.stringify(order)}; expected "id" or "newest"`);
  if (rootsOnly !== true) throw new InvalidInputError('the order "newest" only lists root agents; set rootsOnly: true');
  return tables.listAgents(filter, count, after === undefined ? undefined : parseAgentCursor(after));
}

function listRequests(tables: StoreTables, filter: RequestFilter): AgentRequest[] {
  const { tenant, after, limit = DEFAULT_LIST_LIMIT } = filter;
  if (after === undefined) return tables.requests(filter, undefined, countOf("limit", limit));
  // A request's id contains the id of its agent.
  const last = tables.request({ tenant, agentId: agentOfTurn(after) }, after);
  if (last) return tables.requests(filter, last, countOf("limit", limit));
  throw new InvalidInputError(
    `after is ${JSON.stringify(after)}, and no request of that id is stored; use the id of a listed request`,
  );
}

function listTurns(tables: StoreTables, filter: TurnFilter): TurnRecord[] {
  const { after, limit = DEFAULT_LIST_LIMIT } = filter;
  return tables.turns(filter, countOf("limit", limit), after === undefined ? undefined : parseTurnCursor(after));
}

/** Must run within one read. Slow reads come last, so that a tree without open requests is cheap. */
function treeActivityOf(tables: StoreTables, tenant: string, rootAgentId: string): TreeActivity | undefined {
  const openRequests = tables.requests({ tenant, rootAgentId, status: "open" }, undefined, ALL);
  if (openRequests.length === 0) return undefined;
  const agents = tables.listAgents({ tenant, rootAgentId }, ALL);
  const atWork = agents.filter(({ openTurnId }) => openTurnId !== null);
  return {
    agents,
    openRequests,
    accounts: tables.accounts(tenant, rootAgentId),
    inboxes: new Map(atWork.map((agent) => [agent.agentId, tables.inbox(agent)])),
  };
}

/** Must run within one read. */
function treeHeadOf(tables: StoreTables, tenant: string, rootAgentId: string): TreeHead | undefined {
  const agents = tables.listAgents({ tenant, rootAgentId }, ALL);
  if (!agents.some(({ agentId }) => agentId === rootAgentId)) return undefined;
  return {
    cursor: tables.lastCursor(tenant, rootAgentId),
    agents,
    accounts: tables.accounts(tenant, rootAgentId),
    openRequests: tables.requests({ tenant, rootAgentId, status: "open" }, undefined, ALL),
  };
}

/** Checks a number of rows or a cursor. */
function countOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidInputError(`${name} is ${value}; expected a whole number of at least 0`);
}

/** The tree may have been deleted while its rows were copied. */
function moveProjection(
  tables: StoreTables,
  { tenant, name, root }: { readonly tenant: string; readonly name: string; readonly root: string },
  cursor: number,
): boolean {
  const isStored = tables.agent({ tenant, agentId: root }) !== undefined;
  if (isStored) tables.moveProjection(tenant, name, root, cursor);
  return isStored;
}

function createAgent(
  tables: Tables,
  identity: AgentIdentity,
  { account, messages = [], definition }: AgentParts & { readonly account: NewAccount | null },
): { created: boolean; record: AgentRecord } {
  const key = { tenant: identity.tenant, agentId: identity.agentId };
  const known = tables.agent(key);
  if (known) return { created: false, record: known };
  assertMayCreate(tables, identity);
  const record = newRecord(identity);
  tables.putAgent(record);
  if (definition) tables.keepDefinition(identity.tenant, identity.rootAgentId, definition);
  if (account) {
    const opened = openAccount(account, identity.createdAt);
    tables.putAccount(identity.tenant, identity.rootAgentId, opened);
    changeTimers(tables, identity.tenant, undefined, opened);
  }
  if (messages.length > 0) seed(tables, record, messages);
  return { created: true, record };
}

/** Writes the first row of a new agent's journal, before it has an owner. */
function seed(tables: Tables, { tenant, agentId, createdAt: at }: AgentRecord, messages: readonly Message[]): void {
  const key = { tenant, agentId };
  const messageIds = messages.map(({ id }) => id);
  const entries: readonly Entry[] = [{ type: "conversation.seeded", seq: 1, at, epoch: 1, messageIds }];
  const { cursor } = tables.addRow(key, entries, messages);
  const outcome: Committed = { type: "committed", entries, cursor, warnings: [], posted: [], timers: [] };
  tables.putHead(key, { ...tables.head(key), seq: 1, at }, outcome);
}

interface Follower {
  readonly processId: string;
  readonly listener: LiveListener;
}

/** A live channel between the users of one stores object in this process; it does not reach other processes. */
class InProcessLiveChannel implements LiveChannel {
  readonly #followers = new Map<string, Set<Follower>>();
  readonly #owners = new Set<{ readonly processId: string; readonly listener: AskListener }>();

  isFollowed(place: LiveAddress): boolean {
    return this.#others(place).length > 0;
  }

  send(place: LiveAddress, message: string): void {
    for (const { listener } of this.#others(place)) listener(message);
  }

  follow(place: LiveAddress, listener: LiveListener): LiveFollowing {
    const text = treeText(place);
    const { processId, tenant, rootAgentId } = place;
    const followers = this.#followers.get(text) ?? new Set();
    const follower: Follower = { processId, listener };
    this.#followers.set(text, followers.add(follower));
    const ask = (): void => {
      for (const owner of this.#owners) if (owner.processId !== processId) owner.listener(tenant, rootAgentId);
    };
    ask();
    const end = (): void => {
      followers.delete(follower);
      if (followers.size === 0 && this.#followers.get(text) === followers) this.#followers.delete(text);
    };
    return { ask, end };
  }

  onAsked(processId: string, listener: AskListener): () => void {
    const owner = { processId, listener };
    this.#owners.add(owner);
    return () => {
      this.#owners.delete(owner);
    };
  }

  #others(place: LiveAddress): Follower[] {
    // Called for each piece of each answer.
    if (this.#followers.size === 0) return [];
    return [...(this.#followers.get(treeText(place)) ?? [])].filter(({ processId }) => processId !== place.processId);
  }
}

function treeText({ tenant, rootAgentId }: LiveAddress): string {
  return JSON.stringify([tenant, rootAgentId]);
}
