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
import { standingMark } from "./marks.ts";
import type { CallClaim, CallClaimOutcome, HeardAlarm, JobAlarm } from "./outcomes.ts";
import { identityOf } from "./processes.ts";
import type { Moment } from "./queries.ts";
import type { Tables } from "./tables.ts";

/** How long after a call was queued, and then again and again, its job is added anew until the call has ended, in milliseconds. */
export const JOB_LOOK_MS = 30_000;

/** What a batch does to the calls of its agent that are queued, and the timers that it sets for it. */
export interface QueueChange {
  /** Undefined where none is left. */
  readonly queued: QueuedCalls | undefined;
  readonly timers: readonly Timer[];
}

/**
 * Puts granted calls that have a queue on the record, and takes those away that are settled, tried again, or whose turn
 * ends. Undefined where the batch has to do with none: the usual case, found out by a look at the entries.
 */
export function changeQueued(
  tables: Tables,
  key: AgentKey,
  before: QueuedCalls | undefined,
  { entries, closedTurnId }: { readonly entries: readonly Entry[]; readonly closedTurnId: string | null },
  moment: Moment,
): QueueChange | undefined {
  const isConcerned = before !== undefined || entries.some((entry) => entry.type === "tool.started" && entry.queue);
  if (!isConcerned) return undefined;
  const calls = new Map(Object.entries(before ?? {}));
  const timers = new Map<string, Timer>();
  for (const entry of entries) {
    if (entry.type === "tool.started" && entry.queue !== undefined) {
      const name = queuedCallKey(entry);
      // Begun again, it stays as it is: who has claimed it has claimed it.
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
    // The alarm of one that has ended is cleared already.
    if (!calls.has(name) && !call.isEnded) tables.clearTimer(key, jobTimerId(call));
  }
  const set = [...timers].flatMap(([name, timer]) => (calls.has(name) ? [timer] : []));
  for (const timer of set) tables.setTimer(timer);
  return { queued: calls.size === 0 ? undefined : Object.fromEntries(calls), timers: set };
}

export function withQueued({ queued: _before, ...record }: AgentRecord, queued: QueuedCalls | undefined): AgentRecord {
  return queued ? { ...record, queued } : record;
}

/** Gives a call to whoever is about to run it: once, unless it may be repeated. */
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

/** Tells the agent what became of a call, once; nothing where it was told already, or has gone on without the call. */
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
  // One that was shut down finds it at its next start.
  return { posted: isAdded && record.status !== "shutdown" ? [key.agentId] : [] };
}

/** A call that has not ended after a while: its job may be lost. It is looked at again when as much time has gone by. */
export function hearJobAlarm(tables: Tables, timer: JobAlarm, moment: Moment): HeardAlarm {
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
  // It would be refused; the end of a pause adds it again.
  const isHeld = refusalOf(tables, record, call) !== undefined;
  return { posted: [], timers: [next], jobs: isHeld ? [] : [call] };
}

export function jobTimerId(call: { readonly callId: string; readonly attempt: number }): string {
  return `job:${queuedCallKey(call)}`;
}

/** What forbids to begin a call. An agent that is shut down holds what it has open until it is started again. */
function refusalOf(tables: Tables, record: AgentRecord, call: QueuedCall): "paused" | "aborted" | undefined {
  return standingMark(tables, record, call.turnId)?.reason ?? (record.status === "shutdown" ? "paused" : undefined);
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

function jobTimer({ tenant, agentId }: AgentKey, call: QueuedCall, { steady }: Moment): JobAlarm {
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
