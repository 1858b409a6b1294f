import { passOverAbsence, turnAccountId } from "../budget/index.ts";
import type { AgentKey, AgentRecord } from "../state/index.ts";
import { changeTimers } from "./account-timers.ts";
import type { AcquireOutcome, ProcessIdentity } from "./outcomes.ts";
import type { Head, ProcessRow, Tables } from "./tables.ts";

export interface LeaseRules {
  readonly processId: string;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. */
  readonly leaseMs: number;
  /** Whether a process still runs; only asked for processes of the same boot. */
  readonly isRunning: (process: ProcessRow) => boolean;
}

/** Takes the agent's lease under a new epoch, or tells who holds it. Every activation has a new epoch. */
export function acquire(tables: Tables, key: AgentKey, rules: LeaseRules, now: number): AcquireOutcome {
  const record = tables.agent(key);
  if (!record) return { type: "notFound" };
  const head = tables.head(key);
  if (head.holder !== null && head.holder !== rules.processId) {
    const holder = tables.process(head.holder);
    if (holder && isAlive(tables, holder, rules, now)) {
      return { type: "held", by: identityOf(holder), epoch: head.epoch };
    }
  }
  if (head.holder !== rules.processId) passOver(tables, record, lastSignOf(tables, head), now);
  const epoch = head.epoch + 1;
  tables.putHead(key, { ...head, epoch, holder: rules.processId });
  return { type: "acquired", epoch, seq: head.seq, at: head.at, record };
}

/** When the owner before was last known to live: its last heartbeat, or its last commit where it gave the lease back. */
function lastSignOf(tables: Tables, head: Head): number {
  const heartbeatAt = head.holder === null ? 0 : (tables.process(head.holder)?.heartbeatAt ?? 0);
  return Math.max(head.at, heartbeatAt);
}

/** Time in which the agent had no owner is not working time, on no account above its open turn (design, Budgets). */
function passOver(tables: Tables, record: AgentRecord, lastSign: number, now: number): void {
  const { tenant, rootAgentId, openTurnId } = record;
  for (let id = openTurnId === null ? null : turnAccountId(openTurnId); id !== null; ) {
    const before = tables.account(tenant, id);
    if (!before) return;
    const account = passOverAbsence(before, lastSign, now);
    if (account !== before) {
      tables.putAccount(tenant, rootAgentId, account);
      changeTimers(tables, tenant, before, account);
    }
    id = account.parentId;
  }
}

export function identityOf({ processId, pid, bootId }: ProcessIdentity): ProcessIdentity {
  return { processId, pid, bootId };
}

function isAlive(tables: Tables, holder: ProcessRow, rules: LeaseRules, now: number): boolean {
  if (now - holder.heartbeatAt > rules.leaseMs) return false;
  const own = tables.process(rules.processId);
  return own?.bootId !== holder.bootId || rules.isRunning(holder);
}

/** Gives the lease back; refused while the inbox holds something, so that no post is left behind, unless its owner leaves. */
export function release(tables: Tables, key: AgentKey, epoch: number, isLeaving = false): boolean {
  const head = tables.head(key);
  if (head.epoch !== epoch || head.holder === null) return false;
  if (!isLeaving && tables.inboxSize(key) > 0) return false;
  tables.putHead(key, { ...head, holder: null });
  return true;
}
