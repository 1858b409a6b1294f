import type { Entry } from "./entry.ts";
import type { TurnState } from "./turn-state.ts";

type WithoutEpoch<One> = One extends Entry ? Omit<One, "epoch"> : never;

/** An entry, or one of the inspector's feed, which has no epoch. */
export type TurnEntry = WithoutEpoch<Entry>;

/** The fields of an open turn that describe what it waits for, and which children continue after it. */
export type TurnActivity = Pick<
  TurnState,
  | "openCallIds"
  | "unreviewedCallIds"
  | "waitingCallIds"
  | "heldMessageIds"
  | "backgroundIds"
  | "leavingIds"
  | "waking"
  | "asksForBudget"
>;

/** The result for an entry that changes nothing. */
export const sameActivity: Partial<TurnActivity> = Object.freeze({});

export function startActivity({ waking = [] }: Extract<TurnEntry, { type: "turn.started" }>): TurnActivity {
  return {
    openCallIds: [],
    unreviewedCallIds: [],
    waitingCallIds: [],
    heldMessageIds: [],
    backgroundIds: [],
    leavingIds: [],
    waking,
  };
}

/** The fields that one more entry of the turn changes. Needs neither Node nor zod, because web pages fold entries too. */
export function activityAfter(turn: TurnActivity, entry: TurnEntry): Partial<TurnActivity> {
  switch (entry.type) {
    case "hook.applied": {
      const held = entry.patch.held?.map(({ messageId }) => messageId) ?? [];
      return held.length === 0 ? sameActivity : { heldMessageIds: [...turn.heldMessageIds, ...held] };
    }
    case "turn.steered": {
      const { messageId, actorId } = entry;
      return {
        heldMessageIds: [...turn.heldMessageIds, messageId],
        waking: [...turn.waking, { childId: null, messageId, actorId }],
      };
    }
    case "messages.released":
      return { heldMessageIds: turn.heldMessageIds.filter((id) => !entry.messageIds.includes(id)) };
    case "request.opened":
    case "child.awaited":
    case "call.waiting":
      return { waitingCallIds: [...turn.waitingCallIds, entry.callId] };
    case "request.decided":
      return { waitingCallIds: withoutId(turn.waitingCallIds, entry.callId) };
    case "intent.refused":
      return entry.request === undefined ? sameActivity : { asksForBudget: true };
    case "budget.freed":
      return turn.asksForBudget === true ? { asksForBudget: false } : sameActivity;
    case "call.reviewed":
      return { unreviewedCallIds: withoutId(turn.unreviewedCallIds, entry.callId) };
    case "model.requested": {
      if (!entry.reservation || turn.waking.length === 0) return sameActivity;
      // Messages that are not in history yet were not in the prompt.
      return { waking: turn.waking.filter(({ messageId }) => turn.heldMessageIds.includes(messageId)) };
    }
    case "model.responded":
      return { openCallIds: entry.calls.map(({ callId }) => callId) };
    case "tool.settled":
      return settledCall(turn, entry);
    case "child.spawned":
      if (entry.background) return { backgroundIds: [...turn.backgroundIds, entry.childId] };
      return entry.callId === undefined ? sameActivity : { waitingCallIds: [...turn.waitingCallIds, entry.callId] };
    case "child.ended":
      return {
        leavingIds: entry.leavesWork ? [...turn.leavingIds, entry.childId] : turn.leavingIds,
        waitingCallIds: entry.callId === undefined ? turn.waitingCallIds : withoutId(turn.waitingCallIds, entry.callId),
      };
    case "child.reported":
      return reported(turn, entry);
    default:
      return sameActivity;
  }
}

function settledCall(
  turn: TurnActivity,
  { callId, reviewDue, reports }: Extract<TurnEntry, { type: "tool.settled" }>,
): Partial<TurnActivity> {
  if (!turn.openCallIds.includes(callId)) return sameActivity;
  return {
    openCallIds: withoutId(turn.openCallIds, callId),
    unreviewedCallIds: reviewDue ? [...turn.unreviewedCallIds, callId] : turn.unreviewedCallIds,
    waitingCallIds: withoutId(turn.waitingCallIds, callId),
    heldMessageIds: reports ? turn.heldMessageIds.filter((id) => !reports.includes(id)) : turn.heldMessageIds,
  };
}

/** Like messages of hooks, a report is held until it may be added to history: before the next model call, or at the turn's end. */
function reported(turn: TurnActivity, entry: Extract<TurnEntry, { type: "child.reported" }>): Partial<TurnActivity> {
  const { childId, messageId, actorId } = entry;
  const isOwn = turn.backgroundIds.includes(childId);
  return {
    backgroundIds: withoutId(turn.backgroundIds, childId),
    leavingIds: isOwn && entry.leavesWork ? [...turn.leavingIds, childId] : turn.leavingIds,
    heldMessageIds: [...turn.heldMessageIds, messageId],
    waking: entry.wakes ? [...turn.waking, { childId, messageId, actorId }] : turn.waking,
  };
}

/** Whether a person is asked for more budget, or calls are open and each of them waits: for a child, for a decision, or to spawn a child behind other waiting calls. */
export function areCallsWaiting(
  { openCallIds, unreviewedCallIds, waitingCallIds, asksForBudget }: TurnActivity,
  isQueuedToSpawn?: (callId: string) => boolean,
): boolean {
  if (asksForBudget === true) return true;
  if (openCallIds.length === 0 || unreviewedCallIds.length > 0) return false;
  if (!isQueuedToSpawn && waitingCallIds.length < openCallIds.length) return false;
  const waiting = new Set(waitingCallIds);
  return openCallIds.every((callId) => waiting.has(callId) || isQueuedToSpawn?.(callId) === true);
}

/** The list without the id; the same list if it does not contain the id. */
export function withoutId(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids.filter((one) => one !== id) : ids;
}
