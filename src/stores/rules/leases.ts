import { randomUUID } from "node:crypto";
import { type Account, passOverAbsence, turnAccountId } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { changeTimers } from "./ledger.ts";
import { isHeld } from "./marks.ts";
import type { AcquireOutcome, ProcessIdentity } from "./outcomes.ts";
import type { ReleaseOptions } from "./ports.ts";
import { identityOf, isRunning } from "./processes.ts";
import type { UnattendedQuery } from "./queries.ts";
import type { CandidateTables, Head, ProcessRow, StoreTables, Tables } from "./tables.ts";

export interface LeaseRules {
  readonly processId: string;
  /** How long a process without a heartbeat is considered alive, in milliseconds. */
  readonly leaseMs: number;
  /** Whether a process is still running; called only for processes of the same boot. */
  readonly isRunning: (process: ProcessRow) => boolean;
  /** Whether the caller has the definition of that name. Default: it has all. */
  readonly isKnown?: ((definitionName: string) => boolean) | undefined;
}

/**
 * Acquires the agent's lease under a new epoch, or returns its holder. `steady` is the store's monotonic time, so that setting a clock
 * never affects a lease.
 */
export function acquire(tables: StoreTables, key: AgentKey, rules: LeaseRules, steady: number): AcquireOutcome {
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
  // Working time of a parked agent continues to count; it becomes unparked with its new owner's first commit.
  tables.putHead(key, { ...head, epoch, holder: rules.processId, sign: steady });
  return { type: "acquired", epoch, seq: head.seq, at: head.at, record };
}

/** Releases the lease. Refused while the inbox is not empty, so that no item stays unseen, unless the owner is leaving. */
export function release(
  tables: StoreTables,
  key: AgentKey,
  epoch: number,
  { as = "rest", steady }: ReleaseOptions = {},
): boolean {
  const head = tables.head(key);
  if (head.epoch !== epoch || head.holder === null) return false;
  if (as !== "leaving" && tables.inboxSize(key) > 0 && (as === "rest" || hasActionableItem(tables, key))) return false;
  const work = as === "parked" && head.work === "open" ? "parked" : head.work;
  tables.putHead(key, { ...head, holder: null, sign: steady ?? head.sign, work });
  return true;
}

/** Posts an item to the owner of an agent without an open turn: another process needs the lease for a moment. */
export function wantLease(tables: StoreTables, key: AgentKey, now: number): void {
  const record = tables.agent(key);
  const isAtRest = record?.openTurnId === null && record.status !== "created" && record.status !== "shutdown";
  if (!isAtRest || tables.head(key).holder === null) return;
  tables.addToInbox(key, { kind: "lease.wanted", key: `lease.wanted:${randomUUID()}`, at: now });
}

export function holderOf(tables: Tables, key: AgentKey): { process: ProcessIdentity; epoch: number } | undefined {
  const { holder, epoch } = tables.head(key);
  const row = holder === null ? undefined : tables.process(holder);
  return row && { process: identityOf(row), epoch };
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

/**
 * Time during which no agent that works for an account had an owner does not count as working time (docs/budgets.md). For every account
 * above the open turn, counting stops at the last sign of life of the agents below it, and starts again now.
 */
function passOver(tables: StoreTables, record: AgentRecord, rules: LeaseRules, steady: number): void {
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

/** By account: when an agent that works for it was last known to be alive. */
function signsOfWork(
  tables: StoreTables,
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

/** Now, if the agent has a living owner or is parked (then others work for it). Otherwise the last sign of life of its owner. */
function lastSignOf(tables: Tables, key: AgentKey, rules: LeaseRules, steady: number): number {
  const { holder, sign, work } = tables.head(key);
  if (work === "parked") return steady;
  const row = holder === null ? undefined : tables.process(holder);
  if (!row) return Math.min(sign, steady);
  return isAlive(tables, row, rules, steady) ? steady : Math.min(Math.max(sign, row.heartbeatAt), steady);
}

/** Whether the inbox has an item that an owner could process now. */
function hasActionableItem(tables: StoreTables, key: AgentKey): boolean {
  const record = tables.agent(key);
  return record !== undefined && isAnyActionable(tables, record, tables.inbox(key));
}

/**
 * The same for an inbox that was read already. Not actionable are: queued turns behind the open one and their aborts, a turn that a pause
 * prevents from starting with its abort and inputs, and all items that arrived before a root agent was started.
 */
function isAnyActionable(tables: Pick<Tables, "agent">, record: AgentRecord, inbox: readonly InboxItem[]): boolean {
  const { status, parentAgentId, openTurnId, queuedTurnIds } = record;
  if (status === "shutdown" || (status === "created" && parentAgentId === null)) return false;
  const isBegun = !inbox.some((item) => item.kind === "turn" && item.turnId === openTurnId);
  return inbox.some((item) => {
    if (item.kind === "turn") return item.turnId === openTurnId && !isHeld(tables, record);
    if ((item.kind !== "abort" && item.kind !== "steer") || item.turnId === null) return true;
    if (item.turnId === openTurnId && !isBegun) return !isHeld(tables, record);
    return !queuedTurnIds.includes(item.turnId);
  });
}

/** An agent that may be unattended. */
interface CandidateAgent {
  readonly record: AgentRecord;
  readonly head: Head;
  readonly inbox: readonly InboxItem[];
}

/** Whether an agent without a living owner has work to do. */
export function isUnattended(tables: Pick<Tables, "agent">, { record, head, inbox }: CandidateAgent): boolean {
  if (record.status === "shutdown") return false;
  return head.work === "open" || isAnyActionable(tables, record, inbox);
}

/** Whether the caller of the query has the agent's definition. */
export function isKnownTo({ isKnown }: UnattendedQuery, { tenant, agentId, definition }: AgentRecord): boolean {
  return isKnown === undefined || isKnown(definition.name, { tenant, agentId });
}

/** The unattended agents, for tables that can list candidates. */
export function unattendedIn(
  tables: CandidateTables,
  tenant: string,
  query: UnattendedQuery & { readonly limit: number },
  steady: number,
): AgentKey[] {
  const { after, limit } = query;
  const isLiving = livingFor(tables, query, steady);
  const found: AgentKey[] = [];
  if (limit === 0) return found;
  for (const key of tables.unattendedCandidates(tenant, isLiving, after, limit)) {
    if (isCandidateUnattended(tables, key, query, isLiving)) found.push(key);
    if (found.length === limit) break;
  }
  return found;
}

/** `false` if data of the agent is corrupt, so that it does not hide other agents. */
function isCandidateUnattended(
  tables: StoreTables,
  key: AgentKey,
  query: UnattendedQuery,
  isLiving: (processId: string) => boolean,
): boolean {
  try {
    const head = tables.head(key);
    const record = tables.agent(key);
    if (!record || (head.holder !== null && isLiving(head.holder))) return false;
    return isUnattended(tables, { record, head, inbox: tables.inbox(key) }) && isKnownTo(query, record);
  } catch (error) {
    if (error instanceof CorruptRecordError) return false;
    throw error;
  }
}

/** Returns a function that decides which processes are alive from the caller's point of view; it checks each process once. */
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
