import type { FoldedEntry, FoldedEntryOf } from "./account-at.ts";

/**
 * The part of an open turn by which its accounts follow from the journal: whether it works or rests, and which children go on
 * when it ends. The rules are those of `foldTurn` and `isResting`, over a few ids. Values are never changed, but `calls` is by
 * its owner: a lead may have a thousand of them.
 */
export interface OpenTurn {
  readonly accountId: string;
  /** As it was last counted on its accounts. */
  readonly isActive: boolean;
  readonly isCalling: boolean;
  readonly calls: OpenCalls;
  readonly unreviewedCallIds: readonly string[];
  readonly openGenerates: number;
  readonly backgroundIds: readonly string[];
  readonly leavingIds: readonly string[];
  /** Reports that call for a turn and that no model call has seen. */
  readonly waking: readonly { readonly childId: string; readonly messageId: string }[];
  /** Reports that are not in the history yet. */
  readonly heldReportIds: readonly string[];
}

/** Ids of the calls of the last answer that are not settled. */
interface OpenCalls {
  /** Who may change it in place. Others copy it. */
  readonly owner: object;
  readonly open: Set<string>;
  /** Those that wait for a child or for somebody's decision. */
  readonly waiting: Set<string>;
  /** Those that do not: `open` without `waiting`. */
  readonly running: Set<string>;
}

const noCalls: OpenCalls = { owner: {}, open: new Set(), waiting: new Set(), running: new Set() };

export function startedTurn({ accountId, waking = [] }: FoldedEntryOf<"turn.started">): OpenTurn {
  return {
    accountId,
    isActive: false,
    isCalling: false,
    calls: noCalls,
    unreviewedCallIds: [],
    openGenerates: 0,
    backgroundIds: [],
    leavingIds: [],
    waking,
    heldReportIds: [],
  };
}

/** Whether the turn itself does something: not every open call waits for a child or for somebody's decision. */
export function isWorking({ isCalling, calls, openGenerates, unreviewedCallIds }: OpenTurn): boolean {
  return (
    isCalling || calls.open.size === 0 || calls.running.size > 0 || openGenerates > 0 || unreviewedCallIds.length > 0
  );
}

/** `owner`: the fold that the turn belongs to. */
export function afterEntry(turn: OpenTurn, entry: FoldedEntry, owner: object): OpenTurn {
  switch (entry.type) {
    case "model.requested":
      if (!entry.reservation) return turn;
      return {
        ...turn,
        isCalling: true,
        waking: turn.waking.filter(({ messageId }) => turn.heldReportIds.includes(messageId)),
      };
    case "model.responded":
      return { ...turn, isCalling: false, calls: answered(turn.calls, entry, owner) };
    case "model.failed":
      return { ...turn, isCalling: false };
    case "generate.requested":
      return entry.reservation ? { ...turn, openGenerates: turn.openGenerates + 1 } : turn;
    case "generate.responded":
    case "generate.failed":
      return { ...turn, openGenerates: Math.max(0, turn.openGenerates - 1) };
    case "call.reviewed":
      return { ...turn, unreviewedCallIds: without(turn.unreviewedCallIds, entry.callId) };
    case "tool.settled":
      return settled(turn, entry, owner);
    case "request.opened":
    case "child.awaited":
    case "call.waiting":
      return waiting(turn, entry.callId, owner);
    case "request.decided":
      return goingOn(turn, entry.callId, owner);
    case "messages.released":
      return { ...turn, heldReportIds: turn.heldReportIds.filter((id) => !entry.messageIds.includes(id)) };
    case "child.spawned":
      if (entry.background) return { ...turn, backgroundIds: [...turn.backgroundIds, entry.childId] };
      return entry.callId === undefined ? turn : waiting(turn, entry.callId, owner);
    case "child.ended": {
      const left = entry.leavesWork ? { ...turn, leavingIds: [...turn.leavingIds, entry.childId] } : turn;
      return entry.callId === undefined ? left : goingOn(left, entry.callId, owner);
    }
    case "child.reported":
      return reported(turn, entry);
    default:
      return turn;
  }
}

/** The calls, to be changed in place. */
function ownCalls(calls: OpenCalls, owner: object): OpenCalls {
  if (calls.owner === owner) return calls;
  const { open, waiting: idle, running } = calls;
  return { owner, open: new Set(open), waiting: new Set(idle), running: new Set(running) };
}

function answered(before: OpenCalls, { calls }: FoldedEntryOf<"model.responded">, owner: object): OpenCalls {
  const ids = calls.map(({ callId }) => callId);
  const idle = new Set(before.waiting);
  return { owner, open: new Set(ids), waiting: idle, running: new Set(ids.filter((id) => !idle.has(id))) };
}

function waiting(turn: OpenTurn, callId: string, owner: object): OpenTurn {
  const calls = ownCalls(turn.calls, owner);
  calls.waiting.add(callId);
  calls.running.delete(callId);
  return calls === turn.calls ? turn : { ...turn, calls };
}

function goingOn(turn: OpenTurn, callId: string, owner: object): OpenTurn {
  const calls = ownCalls(turn.calls, owner);
  calls.waiting.delete(callId);
  if (calls.open.has(callId)) calls.running.add(callId);
  return calls === turn.calls ? turn : { ...turn, calls };
}

function settled(turn: OpenTurn, entry: FoldedEntryOf<"tool.settled">, owner: object): OpenTurn {
  const { callId, reviewDue, reports = [] } = entry;
  if (!turn.calls.open.has(callId)) return turn;
  const calls = ownCalls(turn.calls, owner);
  for (const ids of [calls.open, calls.waiting, calls.running]) ids.delete(callId);
  if (calls === turn.calls && !reviewDue && reports.length === 0) return turn;
  return {
    ...turn,
    calls,
    unreviewedCallIds: reviewDue ? [...turn.unreviewedCallIds, callId] : turn.unreviewedCallIds,
    heldReportIds: turn.heldReportIds.filter((id) => !reports.includes(id)),
  };
}

function reported(turn: OpenTurn, entry: FoldedEntryOf<"child.reported">): OpenTurn {
  const { childId, messageId, wakes, leavesWork } = entry;
  const isOwn = turn.backgroundIds.includes(childId);
  return {
    ...turn,
    backgroundIds: without(turn.backgroundIds, childId),
    leavingIds: isOwn && leavesWork ? [...turn.leavingIds, childId] : turn.leavingIds,
    heldReportIds: [...turn.heldReportIds, messageId],
    waking: wakes ? [...turn.waking, { childId, messageId }] : turn.waking,
  };
}

function without(ids: readonly string[], id: string): readonly string[] {
  return ids.includes(id) ? ids.filter((one) => one !== id) : ids;
}
