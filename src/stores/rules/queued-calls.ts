import type { Moment } from "../../budget/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type CallEndedItem,
  callEndedKey,
  type Entry,
  type QueuedCall,
  queuedCallKey,
  type QueuedCalls,
  type Timer,
} from "../../state/index.ts";
import { isAlive as isLiving, type LeaseRules } from "./leases.ts";
import { effectiveMark } from "./marks.ts";
import type { CallClaim, CallClaimOutcome, FiredTimer, JobTimer } from "./outcomes.ts";
import { identityOf } from "./processes.ts";
import type { Tables } from "./tables.ts";

/** Interval after which the job of a queued call is added again until the call has ended, in milliseconds. */
export const JOB_LOOK_MS = 30_000;

/** The changes of a batch to its agent's queued calls, and the timers that it sets. */
export interface QueueChange {
  /** `undefined` if none is left. */
  readonly queued: QueuedCalls | undefined;
  readonly timers: readonly Timer[];
}

/** Adds granted calls that have a queue to the record, and removes calls that are settled, retried, or whose turn ends. */
export function changeQueued(
  tables: Tables,
  key: AgentKey,
  before: QueuedCalls | undefined,
  { entries, closedTurnId }: { readonly entries: readonly Entry[]; readonly closedTurnId: string | null },
  moment: Moment,
): QueueChange {
  const calls = new Map(Object.entries(before ?? {}));
  const timers = new Map<string, Timer>();
  for (const entry of entries) {
    if (entry.type === "tool.started" && entry.queue !== undefined) {
      const name = queuedCallKey(entry);
      // A call that starts again keeps its claim.
      if (calls.has(name)) continue;
      const call = queuedCallOf(entry, entry.queue, moment);
      calls.set(name, call);
      timers.set(name, jobTimer(key, call, moment));
    }
    if (entry.type === "tool.settled") drop(calls, ({ callId }) => callId === entry.callId);
    if (entry.type === "tool.retrying")
      drop(calls, ({ callId, attempt }) => callId === entry.callId && attempt === entry.attempt);
  }
  if (closedTurnId !== null) drop(calls, ({ turnId }) => turnId === closedTurnId);
  for (const [name, call] of Object.entries(before ?? {})) {
    // The timer of an ended call was cleared before.
    if (!calls.has(name) && !call.isEnded) tables.clearTimer(key, jobTimerId(call));
  }
  const set = [...timers].flatMap(([name, timer]) => (calls.has(name) ? [timer] : []));
  for (const timer of set) tables.setTimer(timer);
  return { queued: calls.size === 0 ? undefined : Object.fromEntries(calls), timers: set };
}

export function withQueued({ queued: _before, ...record }: AgentRecord, queued: QueuedCalls | undefined): AgentRecord {
  return queued ? { ...record, queued } : record;
}

/** Claims a call for a worker: once, unless it may be repeated. */
export function claimCall(
  tables: Tables,
  key: AgentKey,
  claim: CallClaim & LeaseRules,
  steady: number,
): CallClaimOutcome {
  const record = tables.agent(key);
  const call = record?.queued?.[queuedCallKey(claim)];
  if (!record || !call || call.isEnded || record.openTurnId !== call.turnId) return { type: "over" };
  const reason = refusalOf(tables, record, call);
  if (reason) return { type: "refused", reason };
  if (call.claimedBy !== null && !call.isRepeatable) {
    const holder = tables.process(call.claimedBy);
    const isAlive = holder !== undefined && isLiving(tables, holder, claim, steady);
    // Its job was given to this worker too, so the holder may be dead: check again when the holder's lease would be over.
    if (isAlive && holder.processId !== claim.processId) {
      tables.setTimer({
        ...jobTimer(key, call, { now: steady, steady }),
        dueAt: holder.heartbeatAt + claim.leaseMs + 1,
      });
    }
    return {
      type: "taken",
      by: holder ? identityOf(holder) : { processId: call.claimedBy, pid: 0, bootId: "" },
      isAlive,
    };
  }
  const claimed = withCall(record, { ...call, claimedBy: claim.processId });
  tables.putAgent(claimed);
  return { type: "claimed", record: claimed };
}

/**
 * Reports the end of a call to its agent, once. Does nothing if it was reported before, or if the agent has continued without the call.
 */
export function postCallEnd(
  tables: Tables,
  key: AgentKey,
  item: CallEndedItem,
): { readonly posted: readonly string[] } {
  const record = tables.agent(key);
  const call = record?.queued?.[queuedCallKey(item)];
  if (!record || !call || call.isEnded) return { posted: [] };
  tables.putAgent(withCall(record, { ...call, isEnded: true }));
  tables.clearTimer(key, jobTimerId(call));
  const isAdded = tables.addToInbox(key, { ...item, key: callEndedKey(item) });
  // An agent that is shut down finds the item at its next start.
  return { posted: isAdded && record.status !== "shutdown" ? [key.agentId] : [] };
}

/** The call has not ended after a while, and its job may be lost. Sets the timer again. */
export function fireJobTimer(tables: Tables, timer: JobTimer, moment: Moment): FiredTimer {
  const { tenant, agentId, id } = timer;
  const key = { tenant, agentId };
  const record = tables.agent(key);
  const call = record?.queued?.[queuedCallKey(timer)];
  if (!record || !call || call.isEnded) {
    tables.clearTimer(key, id);
    return { posted: [], timers: [] };
  }
  const next = jobTimer(key, call, moment);
  tables.setTimer(next);
  // A claim would be refused; the end of the pause adds the job again.
  const isHeld = refusalOf(tables, record, call) !== undefined;
  return { posted: [], timers: [next], jobs: isHeld ? [] : [call] };
}

export function jobTimerId(call: { readonly callId: string; readonly attempt: number }): string {
  return `job:${queuedCallKey(call)}`;
}

/** Why a call may not start. An agent that is shut down keeps its open calls until it is started again. */
function refusalOf(tables: Tables, record: AgentRecord, call: QueuedCall): "paused" | "aborted" | undefined {
  return effectiveMark(tables, record, call.turnId)?.reason ?? (record.status === "shutdown" ? "paused" : undefined);
}

function queuedCallOf(
  { turnId, step, callId, attempt, effect, priority }: Extract<Entry, { type: "tool.started" }>,
  queue: string,
  { now: addedAt }: Moment,
): QueuedCall {
  const isRepeatable = effect !== "once";
  const ranked = priority === undefined ? {} : { priority };
  return { turnId, step, callId, attempt, queue, ...ranked, isRepeatable, addedAt, claimedBy: null, isEnded: false };
}

function jobTimer({ tenant, agentId }: AgentKey, call: QueuedCall, { steady }: Moment): JobTimer {
  const { turnId, callId, attempt, queue } = call;
  const dueAt = steady + JOB_LOOK_MS;
  return { kind: "job", tenant, agentId, id: jobTimerId(call), dueAt, turnId, callId, attempt, queue };
}

function withCall(record: AgentRecord, call: QueuedCall): AgentRecord {
  return { ...record, queued: { ...record.queued, [queuedCallKey(call)]: call } };
}

function drop(calls: Map<string, QueuedCall>, isGone: (call: QueuedCall) => boolean): void {
  for (const [name, call] of calls) if (isGone(call)) calls.delete(name);
}
