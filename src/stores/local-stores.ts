import type { Account } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { AgentKey, AgentRecord, Artifact, InboxItem, JournalRow, Message, Timer } from "../state/index.ts";
import type { Batch } from "./batch.ts";
import { abort, createAgent, openTurn, pause, resume } from "./commands.ts";
import { commitBatch } from "./commit.ts";
import { acquire, identityOf, release } from "./leases.ts";
import type { CommitOutcome, ProcessIdentity } from "./outcomes.ts";
import type { AgentFilter, Stores } from "./ports.ts";
import { currentBootId, isRunning, startTimeOf } from "./process-identity.ts";
import type { Tables } from "./tables.ts";

/** The tables and the questions that are asked outside of commits; all answers are immutable values. */
export interface LocalTables extends Tables {
  /** In the order of their ids. */
  listAgents(filter: AgentFilter, limit: number): AgentRecord[];
  inbox(key: AgentKey): InboxItem[];
  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[];
  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[];
  messages(key: AgentKey, newest: number | undefined): Message[];
  messagesById(key: AgentKey, ids: readonly string[]): Message[];
  artifacts(key: AgentKey): Omit<Artifact, "content">[];
  artifact(key: AgentKey, artifactId: string): Artifact | undefined;
  accounts(tenant: string, rootAgentId: string): Account[];
  dueTimers(now: number, limit: number): Timer[];
  nextTimerAt(): number | undefined;
}

/** Transactions over tables that are in this process. Work is synchronous, so nothing of this process comes between. */
export interface LocalDatabase {
  readonly tables: LocalTables;
  /** Runs work in a transaction: what it throws undoes all it did. */
  write<T>(work: () => T): Promise<T>;
  /** Runs a part of a transaction: what it throws undoes this part and goes on to the caller. */
  part<T>(work: () => T): T;
  /** Whether an error is that of the transaction as a whole, so that none of its parts can stand. */
  isFatal(error: unknown): boolean;
  read<T>(work: () => T): Promise<T>;
  onForeignWrite(listener: () => void): () => void;
  close(): Promise<void>;
}

export const DEFAULT_LIST_LIMIT = 100;

/** The whole port over a database of this process. */
export function localStores(kind: string, database: LocalDatabase): Stores {
  const { tables } = database;
  const write = <T>(work: () => T): Promise<T> => database.write(work);
  const read = <T>(work: () => T): Promise<T> => database.read(work);
  return {
    kind,
    commit: (batches, now) => commitAll(database, batches, now),
    createAgent: (identity, account) => write(() => createAgent(tables, identity, account)),
    openTurn: (key, command, now) => write(() => openTurn(tables, key, command, now)),
    pause: (key, by, now) => write(() => pause(tables, key, by, now)),
    resume: (key, by, now) => write(() => resume(tables, key, by, now)),
    abort: (key, command, now) => write(() => abort(tables, key, command, now)),
    registerProcess: (identity, now) => write(() => registerProcess(tables, identity, now)),
    heartbeat: (processId, now) => write(() => heartbeat(tables, processId, now)),
    acquire: (key, processId, leaseMs, now) =>
      write(() => acquire(tables, key, { processId, leaseMs, isRunning }, now)),
    release: (key, epoch, options) => write(() => release(tables, key, epoch, options?.isLeaving)),
    holder: (key) => read(() => holderOf(tables, key)),
    readAgent: (key) => read(() => tables.agent(key)),
    listAgents: (filter) => read(() => tables.listAgents(filter, countOf("limit", filter.limit ?? DEFAULT_LIST_LIMIT))),
    inbox: (key) => read(() => tables.inbox(key)),
    readJournal: (key, fromSeq) => read(() => tables.rowsFrom(key, fromSeq)),
    readTree: (tenant, root, afterCursor, limit) =>
      read(() => tables.treeRows(tenant, root, afterCursor, countOf("limit", limit))),
    messages: (key, { maxMessages } = {}) =>
      read(() => tables.messages(key, maxMessages === undefined ? undefined : countOf("maxMessages", maxMessages))),
    messagesById: (key, ids) => read(() => tables.messagesById(key, ids)),
    artifacts: (key) => read(() => tables.artifacts(key)),
    artifact: (key, artifactId) => read(() => tables.artifact(key, artifactId)),
    accounts: (tenant, root) => read(() => tables.accounts(tenant, root)),
    dueTimers: (now, limit) => read(() => tables.dueTimers(now, countOf("limit", limit))),
    nextTimerAt: () => read(() => tables.nextTimerAt()),
    onForeignWrite: (listener) => database.onForeignWrite(listener),
    close: () => database.close(),
  };
}

async function commitAll(database: LocalDatabase, batches: readonly Batch[], now: number): Promise<CommitOutcome[]> {
  const [first, ...others] = batches;
  if (!first) return [];
  if (others.length === 0) return database.write(() => [commitBatch(database.tables, first, now)]);
  const failures: unknown[] = [];
  const outcomes = await database.write(() => {
    // The work may run again after a busy moment.
    failures.length = 0;
    return batches.flatMap((batch) => {
      try {
        return [database.part(() => commitBatch(database.tables, batch, now))];
      } catch (error) {
        if (database.isFatal(error)) throw error;
        failures.push(error);
        return [];
      }
    });
  });
  if (failures.length > 0) throw failures[0];
  return outcomes;
}

/** How many rows are asked for. */
function countOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidInputError(`${name} is ${value}; it takes a whole number of at least 0`);
}

function registerProcess(tables: Tables, identity: ProcessIdentity, now: number): void {
  const isOfThisBoot = identity.bootId === currentBootId();
  const startTime = isOfThisBoot ? startTimeOf(identity.pid) : null;
  tables.putProcess({ ...identityOf(identity), startTime, heartbeatAt: now });
}

function heartbeat(tables: Tables, processId: string, now: number): void {
  const row = tables.process(processId);
  if (row) tables.putProcess({ ...row, heartbeatAt: now });
}

function holderOf(tables: Tables, key: AgentKey): { process: ProcessIdentity; epoch: number } | undefined {
  const { holder, epoch } = tables.head(key);
  const row = holder === null ? undefined : tables.process(holder);
  return row && { process: identityOf(row), epoch };
}
