import { type Account, passOverAbsence, turnAccountId } from "../../budget/index.ts";
import type { AgentKey, AgentRecord } from "../../state/index.ts";
import { changeTimers } from "./account-timers.ts";
import type { LocalTables } from "./local-tables.ts";
import { hasNews } from "./news.ts";
import type { AcquireOutcome, ProcessIdentity } from "./outcomes.ts";
import type { ReleaseOptions } from "./ports.ts";
import type { ProcessRow, Tables, Work } from "./tables.ts";

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

export function identityOf({ processId, pid, bootId }: ProcessIdentity): ProcessIdentity {
  return { processId, pid, bootId };
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
