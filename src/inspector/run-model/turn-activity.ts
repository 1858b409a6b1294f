import type { FoldedEntry, FoldedEntryOf } from "./account-at.ts";

/**
 * The part of an open turn by which its accounts follow from the journal: whether it works or rests, and which children go on
 * when it ends. The rules are those of `foldTurn` and `isResting`, over a few ids. Values are never changed.
 */
export interface OpenTurn {
  readonly accountId: string;
  /** As it was last counted on its accounts. */
  readonly isActive: boolean;
  readonly isCalling: boolean;
  readonly openCallIds: readonly string[];
  readonly unreviewedCallIds: readonly string[];
  readonly waitingCallIds: readonly string[];
  readonly openGenerates: number;
  readonly backgroundIds: readonly string[];
  readonly leavingIds: readonly string[];
  /** Reports that call for a turn and that no model call has seen. */
  readonly waking: readonly { readonly childId: string; readonly messageId: string }[];
  /** Reports that are not in the history yet. */
  readonly heldReportIds: readonly string[];
}

export function startedTurn({ accountId, waking = [] }: FoldedEntryOf<"turn.started">): OpenTurn {
  return {
    accountId,
    isActive: false,
    isCalling: false,
    openCallIds: [],
    unreviewedCallIds: [],
    waitingCallIds: [],
    openGenerates: 0,
    backgroundIds: [],
    leavingIds: [],
    waking,
    heldReportIds: [],
  };
}

/** Whether the turn itself does something: not every open call waits for a child or for somebody's decision. */
export function isWorking(turn: OpenTurn): boolean {
  const { isCalling, openCallIds, waitingCallIds, openGenerates, unreviewedCallIds } = turn;
  if (isCalling || openCallIds.length === 0 || openGenerates > 0 || unreviewedCallIds.length > 0) return true;
  if (openCallIds.length > waitingCallIds.length) return true;
  const waiting = new Set(waitingCallIds);
  return openCallIds.some((callId) => !waiting.has(callId));
}

export function afterEntry(turn: OpenTurn, entry: FoldedEntry): OpenTurn {
  switch (entry.type) {
    case "model.requested":
      if (!entry.reservation) return turn;
      return {
        ...turn,
        isCalling: true,
        waking: turn.waking.filter(({ messageId }) => turn.heldReportIds.includes(messageId)),
      };
    case "model.responded":
      return { ...turn, isCalling: false, openCallIds: entry.calls.map(({ callId }) => callId) };
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
      return settled(turn, entry);
    case "request.opened":
    case "child.awaited":
    case "call.waiting":
      return { ...turn, waitingCallIds: [...turn.waitingCallIds, entry.callId] };
    case "request.decided":
      return { ...turn, waitingCallIds: without(turn.waitingCallIds, entry.callId) };
    case "messages.released":
      return { ...turn, heldReportIds: turn.heldReportIds.filter((id) => !entry.messageIds.includes(id)) };
    case "child.spawned":
      if (entry.background) return { ...turn, backgroundIds: [...turn.backgroundIds, entry.childId] };
      return entry.callId === undefined ? turn : { ...turn, waitingCallIds: [...turn.waitingCallIds, entry.callId] };
    case "child.ended":
      return {
        ...turn,
        leavingIds: entry.leavesWork ? [...turn.leavingIds, entry.childId] : turn.leavingIds,
        waitingCallIds: entry.callId === undefined ? turn.waitingCallIds : without(turn.waitingCallIds, entry.callId),
      };
    case "child.reported":
      return reported(turn, entry);
    default:
      return turn;
  }
}

function settled(turn: OpenTurn, { callId, reviewDue, reports = [] }: FoldedEntryOf<"tool.settled">): OpenTurn {
  if (!turn.openCallIds.includes(callId)) return turn;
  return {
    ...turn,
    openCallIds: without(turn.openCallIds, callId),
    waitingCallIds: without(turn.waitingCallIds, callId),
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
