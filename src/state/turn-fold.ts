import type { Entry, EntryOf } from "./entry.ts";
import type { WakingReport } from "./entry-parts.ts";
import { foldExecution, freshExecution, signalled } from "./execution-fold.ts";
import { type FoldedReact, foldReact, initialAgentState, needsOf } from "./react/index.ts";
import { reactInputsOf, type TextLookup } from "./react-inputs.ts";
import { callOfRequest } from "./request.ts";
import type { Continuation } from "./stop.ts";
import { activityAfter, areCallsWaiting, startActivity, withoutId } from "./turn-activity.ts";
import { hookKeyOf, type TurnState } from "./turn-state.ts";

/** The turn after its first entry. */
export function startTurn(entry: EntryOf<"turn.started">): TurnState {
  return {
    turnId: entry.turnId,
    number: entry.number,
    startedAt: entry.at,
    limits: entry.limits,
    accountId: entry.accountId,
    actorId: entry.actorId,
    hooks: entry.hooks,
    checksOutput: entry.checksOutput ?? false,
    outputFits: null,
    outputRepairs: 0,
    maxConsecutiveToolFailures: entry.maxConsecutiveToolFailures,
    react: { ...initialAgentState(), toolCalls: [] },
    execution: freshExecution(entry.turnId, entry.at),
    step: 0,
    attempt: 0,
    retryAt: null,
    isLastCall: false,
    openRequest: null,
    openGenerates: [],
    roundCalls: 0,
    roundFailures: 0,
    consecutiveToolFailures: 0,
    appliedHooks: [],
    queuedCallIds: [],
    openRequestIds: [],
    contextWindowSize: entry.contextWindowSize ?? null,
    loadedCallIds: [],
    compactions: 0,
    hasInstructions: false,
    openChildIds: [],
    toolCalls: 0,
    outputMessageId: null,
    ...startActivity(entry),
  };
}

/** A turn to which only the fold has a reference. */
type FreshTurn = { -readonly [Field in keyof TurnState]: TurnState[Field] };

/**
 * The turn after one more entry: one fold for both views, `react` and `execution`, and for the counters on which the turn machine
 * decides. Pure; the caller must not pass entries of other turns.
 */
export function foldTurn(turn: TurnState, entry: Entry, textOf?: TextLookup): TurnState {
  let react = turn.react;
  for (const input of reactInputsOf(turn, entry, textOf)) react = foldReact(react, input);
  const arrived = entry.type === "model.requested" && entry.attempt === 1 ? unseenMessageIds(turn.react) : none;
  const execution = foldExecution(turn.execution, entry, arrived);
  const counted = count(turn, entry);
  if (counted === turn && react === turn.react && execution === turn.execution) return turn;
  // Only this function has a reference to the copy that `count` creates, so it may be changed in place.
  const next: FreshTurn = counted === turn ? { ...turn } : counted;
  next.react = react;
  next.execution = execution;
  if (isRoundOver(next) && !isRoundOver(turn)) closeRound(next);
  return next;
}

const none: readonly never[] = [];

/** Messages that arrived since the last model call started. */
function unseenMessageIds({ messages, calledLlmOrdinal }: FoldedReact): readonly string[] {
  const unseen: string[] = [];
  // Messages are in the order of their ordinals.
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message === undefined || message.ordinal <= calledLlmOrdinal) break;
    if (message.role === "user") unseen.unshift(message.id);
  }
  return unseen;
}

/** Whether every call has its result and all hooks have reviewed it. */
function isRoundOver({ openCallIds, unreviewedCallIds }: TurnState): boolean {
  return openCallIds.length === 0 && unreviewedCallIds.length === 0;
}

function count(turn: TurnState, entry: Entry): TurnState {
  const activity = activityAfter(turn, entry);
  switch (entry.type) {
    case "instructions.resolved":
      return { ...turn, hasInstructions: true };
    case "hook.applied": {
      // Hooks that review a call are counted by the call itself.
      if (entry.callId !== undefined) return activity.heldMessageIds ? { ...turn, ...activity } : turn;
      const key = hookKeyOf(entry.hook, entry.index, entry.inputId);
      return { ...turn, ...activity, appliedHooks: [...turn.appliedHooks, key] };
    }
    case "output.checked":
      if (entry.callId !== undefined) return checkedResult(turn, entry);
      return { ...turn, outputFits: entry.valid, outputRepairs: turn.outputRepairs + (entry.repairMessageId ? 1 : 0) };
    case "context.compacted":
      return { ...turn, compactions: turn.compactions + 1, retryAt: null };
    case "context.expanded":
      return { ...turn, contextWindowSize: entry.size };
    case "context.loaded":
      return { ...turn, loadedCallIds: [...new Set([...turn.loadedCallIds, ...entry.callIds])] };
    case "intent.refused":
      return entry.request ? { ...turn, ...activity } : turn;
    case "budget.freed":
      return turn.asksForBudget === true ? { ...turn, ...activity } : turn;
    case "request.opened":
      return { ...turn, ...activity, openRequestIds: [...turn.openRequestIds, entry.requestId] };
    case "request.decided":
      return { ...turn, ...activity, openRequestIds: withoutId(turn.openRequestIds, entry.requestId) };
    case "model.requested": {
      if (!entry.reservation) return turn;
      const { step, attempt, epoch, at, model, messageId, reservation } = entry;
      const openRequest = { step, attempt, epoch, at, model, messageId, ordinal: turn.react.ordinal, reservation };
      return {
        ...withoutEnding(turn),
        ...activity,
        step,
        attempt,
        retryAt: null,
        isLastCall: entry.last !== undefined,
        openRequest,
      };
    }
    case "model.responded":
      return {
        ...turn,
        ...activity,
        openRequest: null,
        attempt: 0,
        appliedHooks: [],
        outputFits: null,
        compactions: 0,
        roundCalls: entry.calls.length,
        roundFailures: 0,
        outputMessageId: entry.hasText ? entry.messageId : turn.outputMessageId,
      };
    case "model.failed":
      return { ...turn, openRequest: null, retryAt: entry.retryAt };
    case "generate.requested": {
      if (!entry.reservation) return turn;
      const { run, index, epoch, reservation } = entry;
      return { ...turn, openGenerates: [...turn.openGenerates, { run, index, epoch, reservation }] };
    }
    case "generate.responded":
    case "generate.failed":
      return {
        ...turn,
        openGenerates: turn.openGenerates.filter((open) => open.run !== entry.run || open.index !== entry.index),
      };
    case "tool.settled":
      if (!turn.openCallIds.includes(entry.callId)) return turn;
      return {
        ...turn,
        ...activity,
        queuedCallIds: withoutId(turn.queuedCallIds, entry.callId),
        openRequestIds:
          turn.openRequestIds.length === 0
            ? turn.openRequestIds
            : turn.openRequestIds.filter((id) => callOfRequest(id) !== entry.callId),
        roundFailures: turn.roundFailures + (entry.outcome === "success" ? 0 : 1),
        ...(entry.endsTurn ? { endingCallIds: [...(turn.endingCallIds ?? []), entry.callId] } : {}),
      };
    case "child.spawned": {
      const openChildIds = entry.background ? turn.openChildIds : [...turn.openChildIds, entry.childId];
      return { ...turn, ...activity, openChildIds, toolCalls: turn.toolCalls + 1 };
    }
    case "child.ended":
      return { ...turn, ...activity, openChildIds: withoutId(turn.openChildIds, entry.childId) };
    case "tool.started":
      return startedCall(turn, entry);
    case "tool.retrying":
    case "child.ordered":
      return turn.queuedCallIds.includes(entry.callId)
        ? { ...turn, queuedCallIds: withoutId(turn.queuedCallIds, entry.callId) }
        : turn;
    case "turn.steered":
    case "messages.released":
    case "call.reviewed":
    case "child.reported":
    case "child.awaited":
    case "call.waiting":
      return { ...turn, ...activity };
    default:
      return turn;
  }
}

function startedCall(turn: TurnState, { attempt, callId, queue }: EntryOf<"tool.started">): TurnState {
  if (attempt > 1 && queue === undefined) return turn;
  return {
    ...turn,
    toolCalls: turn.toolCalls + (attempt === 1 ? 1 : 0),
    queuedCallIds: queue === undefined ? turn.queuedCallIds : [...turn.queuedCallIds, callId],
  };
}

/** A result is checked as an answer once; after that the model's own answers count again. */
function checkedResult(turn: TurnState, { valid, messageId }: EntryOf<"output.checked">): TurnState {
  return { ...withoutEnding(turn), outputMessageId: valid ? messageId : turn.outputMessageId };
}

function withoutEnding(turn: TurnState): TurnState {
  if (turn.endingCallIds === undefined) return turn;
  const { endingCallIds: _ended, ...rest } = turn;
  return rest;
}

/** A round in which every call failed counts against `maxConsecutiveToolFailures`. */
function closeRound(turn: FreshTurn): void {
  const allFailed = turn.roundCalls > 0 && turn.roundFailures === turn.roundCalls;
  turn.roundCalls = 0;
  turn.consecutiveToolFailures = allFailed ? turn.consecutiveToolFailures + 1 : 0;
  if (turn.consecutiveToolFailures < turn.maxConsecutiveToolFailures) return;
  const message = `every tool call failed in ${turn.consecutiveToolFailures} rounds in a row`;
  turn.execution = signalled(turn.execution, { reason: "error", message, source: "tools" });
}

/** The next action of the turn when no work is in progress. */
export type NextMove = "think" | "runTools" | "finish";

/** Stop signals take precedence over the needs of the ReAct state. */
export function nextMove(turn: TurnState): NextMove {
  const needs = needsOf(turn.react);
  const { continuation } = turn.execution;
  // The ReAct core does not record internal calls: it only requires another model call.
  const hasCalls = needs.runsTools || turn.openCallIds.length > 0;
  // A turn without input continues the conversation: its first call is due even without a new message.
  if (turn.step === 0) return continuation.stopSignals.length > 0 ? "finish" : "think";
  // Even if a hook requests another step, the calls do not run: the model was told that there are no tools.
  if (hasCalls && turn.isLastCall) return "finish";
  // A call without an answer is still due, even if the ReAct core does not require one, and so is the call that sees a new input.
  const isCallDue = needs.callLlm || turn.attempt > 0 || unseenInputsOf(turn).length > 0;
  if (shouldStop(continuation, hasCalls || isCallDue)) return "finish";
  if (hasCalls) return "runTools";
  return "think";
}

/**
 * The call whose result is the turn's answer, once its round is over: of the calls that end the turn, the first in the order in which the
 * model made them. `undefined` if the turn goes on or stops for another reason: a signal, a hook's request to continue, or an input that no
 * model call has seen.
 */
export function endingCallOf(turn: TurnState): string | undefined {
  const { endingCallIds, execution } = turn;
  if (endingCallIds === undefined || !isRoundOver(turn) || unseenInputsOf(turn).length > 0) return undefined;
  const { stopSignals, isContinuationRequested } = execution.continuation;
  if (stopSignals.length > 0 || isContinuationRequested) return undefined;
  return execution.currentStep?.toolExecutions.find(({ callId }) => endingCallIds.includes(callId))?.callId;
}

/** Inputs that arrived during the turn and that no model call has seen, in order. */
export function unseenInputsOf({ waking }: Pick<TurnState, "waking">): readonly WakingReport[] {
  return waking.filter(({ childId }) => childId === null);
}

/** Whether the turn stops; signals are checked in order. */
export function shouldStop(continuation: Continuation, hasToolCalls: boolean): boolean {
  if (continuation.stopSignals.length > 0 && !continuation.isContinuationRequested) return true;
  if (continuation.isContinuationRequested) return false;
  return !hasToolCalls;
}

/** Whether a model call or tool call of this turn has no outcome yet. */
export function hasOpenWork(turn: TurnState): boolean {
  const { openRequest, openCallIds, unreviewedCallIds, openGenerates } = turn;
  return openRequest !== null || openCallIds.length + unreviewedCallIds.length + openGenerates.length > 0;
}

/** Whether hooks or a schema must check the new answer before the turn continues. */
export function isAnswerChecked({
  hooks,
  openCallIds,
  checksOutput,
}: Pick<TurnState, "hooks" | "openCallIds" | "checksOutput">): boolean {
  if (hooks.afterLlm > 0) return true;
  return openCallIds.length > 0 ? hooks.beforeTools > 0 : checksOutput;
}

/** Whether the turn itself does nothing, because each open call waits. */
export function isResting(turn: TurnState, isQueuedToSpawn?: (callId: string) => boolean): boolean {
  if (turn.execution.status !== "in_progress" || turn.openRequest !== null || turn.openGenerates.length > 0)
    return false;
  return areCallsWaiting(turn, isQueuedToSpawn);
}

/** The calls of the new answer that have no result yet. */
export function openCallsOf({ openCallIds, execution }: TurnState): { callId: string; name: string }[] {
  const calls = execution.currentStep?.toolExecutions ?? [];
  return calls.flatMap(({ callId, name }) => (openCallIds.includes(callId) ? [{ callId, name }] : []));
}
