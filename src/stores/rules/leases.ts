import { type Account, passOverAbsence, turnAccountId } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { isHeld } from "./marks.ts";
import type { AcquireOutcome, ProcessIdentity } from "./outcomes.ts";
import type { ReleaseOptions } from "./ports.ts";
import { identityOf, isRunning } from "./processes.ts";
import type { UnattendedQuery } from "./queries.ts";
import type { Head, LocalTables, ProcessRow, RestlessTables, Tables, Work } from "./tables.ts";
import { changeTimers } from "./timers.ts";

export interface LeaseRules {
  readonly processId: string;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. */
  readonly leaseMs: number;
  /** Whether a process still runs; only asked for processes of the same boot. */
  readonly isRunning: (process: ProcessRow) => boolean;
  /** Whether the asker has the definition of that name; default: it has all. */
  readonly isKnown?: ((definitionName: string) => boolean) | undefined;
}

/**
 * Takes the agent's lease under a new epoch, or tells who holds it. Every activation has a new epoch. `steady`: the store's
 * own time, so that no clock that is set makes a lease change hands.
 */
export function acquire(tables: LocalTables, key: AgentKey, rules: LeaseRules, steady: number): AcquireOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const head = tables.head(key);
  if (head.holder !== null && head.holder !== rules.processId) {
    const holder = tables.process(head.holder);
    if (holder && isAlive(tables, holder, rules, steady)) {
      return { type: "held", by: identityOf(holder), epoch: head.epoch };
    }
  }
  if (rules.isKnown?.(record.definition.name) === false) return { type: "unknown", definition: record.definition.name };
  if (head.holder !== rules.processId) passOver(tables, record, rules, steady);
  const epoch = head.epoch + 1;
  // One that was parked is at work again only with what its new owner commits: until then its time counts as it did.
  tables.putHead(key, { ...head, epoch, holder: rules.processId, sign: steady });
  return { type: "acquired", epoch, seq: head.seq, at: head.at, record };
}

/**
 * Time in which nobody who works for an account had an owner is not working time (design, Budgets): on each account above
 * the open turn, what counts ends at the last sign of life of those that work below it, and goes on now.
 */
function passOver(tables: LocalTables, record: AgentRecord, rules: LeaseRules, steady: number): void {
  const { tenant, rootAgentId, openTurnId } = record;
  const own = openTurnId === null ? undefined : tables.account(tenant, turnAccountId(openTurnId));
  if (!own || own.activeSince === null) return;
  const signs = signsOfWork(tables, record, rules, steady);
  for (let before: Account | undefined = own; before; ) {
    const account = passOverAbsence(before, signs.get(before.id) ?? steady, steady);
    if (account !== before) {
      tables.putAccount(tenant, rootAgentId, account);
      changeTimers(tables, tenant, before, account);
    }
    before = account.parentId === null ? undefined : tables.account(tenant, account.parentId);
  }
}

/** For each account of the tree, when somebody who works for it was last known to live. */
function signsOfWork(
  tables: LocalTables,
  { tenant, rootAgentId }: AgentRecord,
  rules: LeaseRules,
  steady: number,
): Map<string, number> {
  const accounts = new Map(tables.accounts(tenant, rootAgentId).map((account) => [account.id, account]));
  const signs = new Map<string, number>();
  for (const { id, agentId, isActive } of accounts.values()) {
    if (!isActive) continue;
    const sign = lastSignOf(tables, { tenant, agentId }, rules, steady);
    for (let at = accounts.get(id); at; at = at.parentId === null ? undefined : accounts.get(at.parentId)) {
      signs.set(at.id, Math.max(signs.get(at.id) ?? 0, sign));
    }
  }
  return signs;
}

/**
 * Now for an agent that has a living owner, or is parked: others work for it. Else when its owner was last known to live.
 */
function lastSignOf(tables: Tables, key: AgentKey, rules: LeaseRules, steady: number): number {
  const { holder, sign, work } = tables.head(key);
  if (work === "parked") return steady;
  const row = holder === null ? undefined : tables.process(holder);
  if (!row) return Math.min(sign, steady);
  return isAlive(tables, row, rules, steady) ? steady : Math.min(Math.max(sign, row.heartbeatAt), steady);
}

export function isAlive(
  tables: Pick<Tables, "process">,
  holder: ProcessRow,
  rules: LeaseRules,
  steady: number,
): boolean {
  if (steady - holder.heartbeatAt > rules.leaseMs) return false;
  const own = tables.process(rules.processId);
  return own?.bootId !== holder.bootId || rules.isRunning(holder);
}

/** Gives the lease back; refused while the inbox holds something, so that no post is left behind, unless its owner leaves. */
export function release(
  tables: LocalTables,
  key: AgentKey,
  epoch: number,
  { as = "rest", steady }: ReleaseOptions = {},
): boolean {
  const head = tables.head(key);
  if (head.epoch !== epoch || head.holder === null) return false;
  if (as !== "leaving" && tables.inboxSize(key) > 0 && (as === "rest" || hasNews(tables, key))) return false;
  const work = as === "parked" && head.work === "open" ? "parked" : head.work;
  tables.putHead(key, { ...head, holder: null, sign: steady ?? head.sign, work });
  return true;
}

/** What a commit that leaves this record leaves to do. */
export function workOf({ openTurnId, status }: AgentRecord): Work {
  return openTurnId !== null && status !== "shutdown" ? "open" : "none";
}

/** Whether the agent's inbox holds something that an owner could take in now. */
export function hasNews(tables: LocalTables, key: AgentKey): boolean {
  const record = tables.agent(key);
  return record !== undefined && isAnyNews(tables, record, tables.inbox(key));
}

/**
 * The same for an inbox that was read. Not news: turns in line behind the open one and what ends them, a turn that a pause
 * keeps from beginning and what ends it, and whatever comes before a root agent was started.
 */
export function isAnyNews(tables: Pick<Tables, "agent">, record: AgentRecord, inbox: readonly InboxItem[]): boolean {
  const { status, parentAgentId, openTurnId, queuedTurnIds } = record;
  if (status === "shutdown" || (status === "created" && parentAgentId === null)) return false;
  const isBegun = !inbox.some((item) => item.kind === "turn" && item.turnId === openTurnId);
  return inbox.some((item) => {
    if (item.kind === "turn") return item.turnId === openTurnId && !isHeld(tables, record);
    if (item.kind !== "abort" || item.turnId === null) return true;
    if (item.turnId === openTurnId && !isBegun) return !isHeld(tables, record);
    return !queuedTurnIds.includes(item.turnId);
  });
}

/** What is known of an agent that may need somebody. */
export interface RestlessAgent {
  readonly record: AgentRecord;
  readonly head: Head;
  readonly inbox: readonly InboxItem[];
}

/** Whether somebody has to take up an agent that no living process holds. */
export function needsSomebody(tables: Pick<Tables, "agent">, { record, head, inbox }: RestlessAgent): boolean {
  if (record.status === "shutdown") return false;
  return head.work === "open" || isAnyNews(tables, record, inbox);
}

/** Those of the tables of this process that somebody has to take up. */
export function unattendedIn(
  tables: RestlessTables,
  tenant: string,
  query: UnattendedQuery & { readonly limit: number },
  steady: number,
): AgentKey[] {
  const { after, limit } = query;
  const isLiving = livingFor(tables, query, steady);
  const found: AgentKey[] = [];
  if (limit === 0) return found;
  for (const key of tables.restless(tenant, isLiving, after, limit)) {
    if (isUnattended(tables, key, isLiving)) found.push(key);
    if (found.length === limit) break;
  }
  return found;
}

/** False where something of the agent cannot be read: it hides no other one. */
function isUnattended(tables: LocalTables, key: AgentKey, isLiving: (processId: string) => boolean): boolean {
  try {
    const head = tables.head(key);
    const record = tables.agent(key);
    if (!record || (head.holder !== null && isLiving(head.holder))) return false;
    return needsSomebody(tables, { record, head, inbox: tables.inbox(key) });
  } catch (error) {
    if (error instanceof CorruptRecordError) return false;
    throw error;
  }
}

/** Who lives, in the eyes of whoever asks; each process is looked at once. */
export function livingFor(
  tables: Pick<Tables, "process">,
  { processId, leaseMs }: Pick<UnattendedQuery, "processId" | "leaseMs">,
  steady: number,
): (processId: string) => boolean {
  const known = new Map([[processId, true]]);
  const isProcessLiving = (row: ProcessRow | undefined): boolean =>
    row !== undefined && isAlive(tables, row, { processId, leaseMs, isRunning }, steady);
  return (id) => {
    const isLiving = known.get(id) ?? isProcessLiving(tables.process(id));
    known.set(id, isLiving);
    return isLiving;
  };
}

export function holderOf(tables: Tables, key: AgentKey): { process: ProcessIdentity; epoch: number } | undefined {
  const { holder, epoch } = tables.head(key);
  const row = holder === null ? undefined : tables.process(holder);
  return row && { process: identityOf(row), epoch };
}
