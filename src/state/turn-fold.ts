import type { Entry, EntryOf } from "./entry.ts";
import { foldExecution, signalled } from "./execution-fold.ts";
import { agentTransition, effectsAt, type ReactState } from "./react/index.ts";
import { reactInputsOf, type TextLookup } from "./react-inputs.ts";
import { shouldStop } from "./stop.ts";
import { hookKeyOf, type TurnState } from "./turn-state.ts";

/**
 * The turn after one more entry: one fold for both views, `react` (rows R) and `execution` (rows S), and the counters
 * the turn machine decides by. Pure; entries of other turns are the caller's to keep away.
 */
export function foldTurn(turn: TurnState, entry: Entry, textOf?: TextLookup): TurnState {
  let react = turn.react;
  for (const input of reactInputsOf(turn, entry, textOf)) react = agentTransition(input)(react);
  const arrived = entry.type === "model.requested" && entry.attempt === 1 ? unseenMessageIds(turn.react) : [];
  const execution = foldExecution(turn.execution, entry, arrived);
  const counted = count(turn, entry);
  const next =
    react === turn.react && execution === turn.execution && counted === turn ? turn : { ...counted, react, execution };
  return entry.type === "tool.settled" && next.openCallIds.length === 0 ? closeRound(next) : next;
}

/** Messages that came since the last model call began. */
function unseenMessageIds({ messages, calledLlmOrdinal }: ReactState): string[] {
  return messages.filter(({ role, ordinal }) => role === "user" && ordinal > calledLlmOrdinal).map(({ id }) => id);
}

function count(turn: TurnState, entry: Entry): TurnState {
  switch (entry.type) {
    case "instructions.resolved":
      return { ...turn, hasInstructions: true };
    case "hook.applied":
      return { ...turn, appliedHooks: [...turn.appliedHooks, hookKeyOf(entry.hook, entry.index)] };
    case "model.requested":
      return requested(turn, entry);
    case "model.responded":
      return responded(turn, entry);
    case "model.failed":
      return { ...turn, openRequest: null, retryAt: entry.retryAt };
    case "generate.requested":
      return entry.reservation
        ? {
            ...turn,
            openGenerates: [
              ...turn.openGenerates,
              { run: entry.run, index: entry.index, epoch: entry.epoch, reservation: entry.reservation },
            ],
          }
        : turn;
    case "generate.responded":
    case "generate.failed":
      return {
        ...turn,
        openGenerates: turn.openGenerates.filter((open) => open.run !== entry.run || open.index !== entry.index),
      };
    case "tool.settled":
      return settledCall(turn, entry);
    case "child.spawned":
      return { ...turn, openChildIds: [...turn.openChildIds, entry.childId], toolCalls: turn.toolCalls + 1 };
    case "child.ended":
      return { ...turn, openChildIds: turn.openChildIds.filter((id) => id !== entry.childId) };
    case "tool.started":
      return entry.attempt === 1 ? { ...turn, toolCalls: turn.toolCalls + 1 } : turn;
    default:
      return turn;
  }
}

function requested(turn: TurnState, entry: EntryOf<"model.requested">): TurnState {
  if (!entry.reservation) return turn;
  const { step, attempt, epoch, at, model, messageId, reservation } = entry;
  return {
    ...turn,
    step,
    attempt,
    retryAt: null,
    openRequest: { step, attempt, epoch, at, model, messageId, ordinal: turn.react.ordinal, reservation },
  };
}

function responded(turn: TurnState, entry: EntryOf<"model.responded">): TurnState {
  return {
    ...turn,
    openRequest: null,
    attempt: 0,
    appliedHooks: [],
    openCallIds: entry.calls.map(({ callId }) => callId),
    roundCalls: entry.calls.length,
    roundFailures: 0,
    outputMessageId: entry.hasText ? entry.messageId : turn.outputMessageId,
  };
}

function settledCall(turn: TurnState, entry: EntryOf<"tool.settled">): TurnState {
  if (!turn.openCallIds.includes(entry.callId)) return turn;
  return {
    ...turn,
    openCallIds: turn.openCallIds.filter((id) => id !== entry.callId),
    roundFailures: turn.roundFailures + (entry.outcome === "success" ? 0 : 1),
  };
}

/** A round in which every call failed counts against `maxConsecutiveToolFailures` (requirements, A tool that fails). */
function closeRound(turn: TurnState): TurnState {
  const allFailed = turn.roundCalls > 0 && turn.roundFailures === turn.roundCalls;
  const consecutiveToolFailures = allFailed ? turn.consecutiveToolFailures + 1 : 0;
  const counted = { ...turn, roundCalls: 0, consecutiveToolFailures };
  if (consecutiveToolFailures < turn.maxConsecutiveToolFailures) return counted;
  const message = `every tool call failed in ${consecutiveToolFailures} rounds in a row`;
  return { ...counted, execution: signalled(counted.execution, { reason: "error", message, source: "tools" }) };
}

/** What the turn does next, once nothing is under way. */
export type NextMove = "think" | "runTools" | "finish";

/** Stop signals first (row S5), then what the ReAct state calls for (row R5). */
export function nextMove(turn: TurnState): NextMove {
  const effects = effectsAt(turn.react);
  const { continuation } = turn.execution;
  // A turn without a message of its own (row L5) continues the conversation: its first call is due all the same.
  if (turn.step === 0) return continuation.stopSignals.length > 0 ? "finish" : "think";
  if (shouldStop(continuation, effects.runTools.length > 0 || effects.callLlm)) return "finish";
  if (effects.runTools.length > 0) return "runTools";
  return "think";
}

/** Whether calls to the model or of tools of this turn have neither an outcome nor a result. */
export function hasOpenWork(turn: TurnState): boolean {
  return turn.openRequest !== null || turn.openCallIds.length > 0 || turn.openGenerates.length > 0;
}
