import type { AnyStateMachine } from "xstate";
import { getShortestPaths } from "xstate/graph";
import type { AgentContext } from "../../src/machines/index.ts";
import { agentMachine, toolCallMachine, turnMachine } from "../../src/machines/index.ts";
import {
  type CallState,
  declareCall,
  type Entry,
  noHooks,
  type StopReason,
  strongestSignal,
  type TurnOutcome,
  type TurnState,
} from "../../src/state/index.ts";
import { nodesOf } from "../architecture/machine-walk.ts";
import {
  at,
  budgetFreed,
  callGated,
  callIdAt,
  childEnded,
  childSpawned,
  failure,
  hookApplied,
  journalOf,
  modelFailed,
  modelRequested,
  modelResponded,
  paused,
  pausing,
  refused,
  resumed,
  shutDown,
  started,
  starting,
  stopSignalled,
  toolRetrying,
  toolSettled,
  toolStarted,
  turnEnded,
  turnId,
  turnStarted,
} from "./bodies.ts";

/** The entries that lead to one state of a machine, on a shortest way, and that state's dotted name. */
export interface Path {
  readonly entries: readonly Entry[];
  readonly end: string;
}

interface Explored {
  readonly value: unknown;
  readonly context: unknown;
}

/** Shortest ways to every state (value and context) that entries of a legal order reach. */
function pathsOf(
  machine: AnyStateMachine,
  events: readonly Entry[],
  isLegal: (state: Explored, entry: Entry) => boolean,
  keyOf: (state: Explored) => unknown,
  input?: unknown,
): Path[] {
  const paths = getShortestPaths(machine, {
    events: [...events],
    input,
    filterEvents: (state: Explored, entry: Entry) => isLegal(state, entry),
    serializeState: (state: Explored) => JSON.stringify(keyOf(state)),
    serializeEvent: (entry: { readonly type: string }) => JSON.stringify(entry),
  } as Parameters<typeof getShortestPaths>[1]);
  return paths.map(({ state, steps }) => ({
    entries: steps
      .map(({ event }) => event as unknown as Entry)
      .filter(({ type }) => type !== ("xstate.init" as string)),
    end: nameOf((state as unknown as Explored).value),
  }));
}

/** `thinking.calling` for `{ thinking: "calling" }`. */
export function nameOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Object.entries(value as object)
    .map(([parent, child]) => `${parent}.${nameOf(child)}`)
    .join();
}

/** The names of all states without inner states. */
export function leavesOf(machine: AnyStateMachine): string[] {
  return nodesOf(machine.root)
    .filter((node) => Object.keys(node.states).length === 0)
    .map((node) => node.path.join("."));
}

export function agentPaths(): Path[] {
  const events = journalOf([
    starting,
    started,
    turnStarted(),
    childSpawned(),
    childEnded(),
    refused("mustWait"),
    budgetFreed,
    pausing,
    paused,
    resumed,
    turnEnded("completed"),
    turnEnded("failed"),
    turnEnded("stopped", { lifecycle: "paused" }),
    shutDown,
  ]);
  return pathsOf(
    agentMachine,
    events,
    ({ value, context }, entry) => {
      const { openTurnId, openChildIds, turnCount } = context as AgentContext;
      const isOpen = openTurnId !== null;
      if (entry.type === "turn.started") return (value === "ready" || value === "failed") && turnCount === 0;
      if (entry.type === "child.spawned") return isOpen && openChildIds.length === 0;
      if (entry.type === "agent.paused") return nameOf(value) === "busy.pausing";
      return isOpen || !("turnId" in entry) || entry.type.startsWith("agent.");
    },
    ({ value, context }) => [value, context],
  );
}

export function turnPaths(): Path[] {
  const thrown = { type: "effect.failed", turnId, effect: "think", error: failure } as const;
  const first = turnStarted({ hooks: { ...noHooks, beforeLlm: 1, afterTools: 1 } });
  const events = journalOf([
    first,
    hookApplied("beforeLlm"),
    modelRequested(1, 1),
    modelRequested(1, 2),
    modelRequested(2, 1),
    modelResponded(1, 0),
    modelResponded(1, 2),
    modelResponded(2, 0),
    modelFailed(null),
    modelFailed(5_000),
    toolSettled(0),
    toolSettled(1, 1, "error"),
    hookApplied("afterTools"),
    refused("mustWait"),
    refused("paused"),
    refused("budget"),
    budgetFreed,
    resumed,
    stopSignalled("user_requested"),
    stopSignalled("stop_requested"),
    thrown,
    turnEnded("completed"),
    turnEnded("stopped"),
    turnEnded("failed"),
  ]);
  return pathsOf(turnMachine, events, isLegalInTurn, keyOfTurn, { entry: at(first, 1) });
}

function isLegalInTurn({ value, context }: Explored, entry: Entry): boolean {
  const turn = context as TurnState;
  const state = nameOf(value);
  const signal = strongestSignal(turn.execution.continuation.stopSignals);
  const assembles = state === "thinking.assembling" || state === "thinking.retrying";
  switch (entry.type) {
    case "turn.started":
      return state === "receiving";
    case "hook.applied":
      if (turn.appliedHooks.includes(`${entry.hook}:0`)) return false;
      return entry.hook === "afterTools" ? state === "settling" : state === "thinking.assembling";
    case "model.requested":
      if (!assembles) return false;
      return entry.attempt === 1 ? entry.step === turn.step + 1 && turn.attempt === 0 : turn.attempt === 1;
    case "model.responded":
      return turn.openRequest?.step === entry.step;
    case "model.failed":
      return turn.openRequest?.step === 1;
    case "tool.settled":
      return turn.openCallIds.includes(entry.callId);
    case "intent.refused":
      return assembles;
    case "stop.signalled":
    case "effect.failed":
      return signal === undefined;
    case "turn.ended":
      return state === "finishing" && entry.outcome === outcomeOf(signal?.reason);
    default:
      return state === "waiting" || state === "held";
  }
}

function outcomeOf(reason: StopReason | undefined): TurnOutcome {
  if (reason === undefined) return "completed";
  return reason === "error" ? "failed" : "stopped";
}

/** What the turn's way depends on; ordinals and times grow for ever and are left out. */
function keyOfTurn({ value, context }: Explored): unknown {
  const { step, attempt, retryAt, openRequest, openCallIds, appliedHooks, execution } = context as TurnState;
  const signals = execution.continuation.stopSignals.map(({ reason }) => reason).sort();
  return [value, step, attempt, retryAt, openRequest !== null, openCallIds, appliedHooks, signals];
}

export const declared: CallState = declareCall(callIdAt(0), "look");

export function callPaths(): Path[] {
  const callId = callIdAt(0);
  const events = journalOf([
    callGated(),
    callGated(0, 1, { verdict: "denied", message: "no" }),
    toolStarted(),
    toolRetrying(),
    toolStarted(0, 1, 2),
    childSpawned(),
    childEnded(),
    refused("paused", "tool.started", { callId }),
    refused("budget", "tool.started", { callId }),
    resumed,
    toolSettled(0, 1, "success"),
    toolSettled(0, 1, "outcome_unknown"),
  ]);
  return pathsOf(toolCallMachine, events, isLegalInCall, ({ value, context }) => [value, context], { call: declared });
}

function isLegalInCall({ context }: Explored, entry: Entry): boolean {
  const call = context as CallState;
  const isRunning = call.startedEpoch !== null;
  if (call.outcome !== null) return false;
  switch (entry.type) {
    case "call.gated":
      return call.gate === null;
    case "tool.started":
      return call.gate?.verdict === "allowed" && !isRunning && !call.childId && entry.attempt === call.attempt + 1;
    case "tool.retrying":
      return isRunning && call.attempt === 1;
    case "child.spawned":
      return call.gate?.verdict === "allowed" && !isRunning && call.attempt === 0 && !call.childId;
    case "child.ended":
      return call.childId !== null && call.childResult === null;
    case "intent.refused":
      return call.gate?.verdict === "allowed" && !isRunning && !call.childId && call.refusal === null;
    default:
      return true;
  }
}
