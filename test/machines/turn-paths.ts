import { type TurnContext, turnMachine } from "../../src/machines/index.ts";
import {
  type Entry,
  type EntryBody,
  type HookCounts,
  needsOf,
  noHooks,
  type StopReason,
  strongestSignal,
  type TurnOutcome,
  type TurnState,
} from "../../src/state/index.ts";
import {
  at,
  budgetFreed,
  childReported,
  failure,
  hookApplied,
  journalOf,
  modelFailed,
  modelRequested,
  modelResponded,
  refused,
  resumed,
  stopSignalled,
  toolSettled,
  turnEnded,
  turnId,
  turnStarted,
} from "./bodies.ts";
import { type Explored, nameOf, type Path, pathsOf } from "./explored.ts";
import { callReviewed, contextCompacted, hooksSettled, outputChecked } from "./hook-bodies.ts";

/** A turn that starts with certain hooks, and the entries that may follow. */
export interface TurnPlan {
  readonly first: ReturnType<typeof turnStarted>;
  readonly also: readonly EntryBody[];
}

const stop = { reason: "stop_requested", message: "enough", source: "hook:agent" } as const;
const reviewed = { reviewDue: true } as const;
const thrown = { type: "effect.failed", turnId, effect: "think", error: failure } as const;

/** Hooks around the model call and the round, and the entries of a simple turn. */
export const plainTurn: TurnPlan = {
  first: turnStarted({ hooks: { ...noHooks, beforeLlm: 1, afterTools: 1 } }),
  also: [
    hookApplied("beforeLlm"),
    modelRequested(1, 2),
    modelRequested(2, 1),
    modelResponded(2, 0),
    modelFailed(5_000),
    contextCompacted(),
    toolSettled(0),
    toolSettled(1, 1, "error"),
    hookApplied("afterTools"),
    refused("mustWait"),
    refused("paused"),
    budgetFreed,
    resumed,
    childReported(0, { wakes: true }),
  ],
};

const everyHook = Object.fromEntries(Object.keys(noHooks).map((name) => [name, 1])) as HookCounts;

export const hookedTurn: TurnPlan = {
  first: turnStarted({ hooks: everyHook }),
  also: [
    hookApplied("afterUserInput"),
    hooksSettled("input"),
    hookApplied("beforeLlm"),
    hookApplied("beforeLlm", 0, { stop }),
    hookApplied("afterLlm"),
    hookApplied("afterLlm", 0, { stop }),
    hookApplied("beforeTools"),
    hooksSettled("answer"),
    { ...toolSettled(0), ...reviewed },
    { ...toolSettled(1, 1, "error"), ...reviewed },
    callReviewed(0),
    callReviewed(1),
    hookApplied("afterTools"),
    hookApplied("onComplete"),
    hooksSettled("end"),
  ],
};

/** A turn whose answer must fit a schema. */
export const checkedTurn: TurnPlan = {
  first: turnStarted({ checksOutput: true, hooks: { ...noHooks, afterLlm: 1, onComplete: 1 } }),
  also: [
    hookApplied("afterLlm"),
    hookApplied("afterLlm", 0, { continueRequested: true }),
    outputChecked("fits"),
    outputChecked("repair"),
    outputChecked("misfit"),
    hooksSettled("answer"),
    modelRequested(2, 1),
    modelResponded(2, 0),
    toolSettled(0),
    toolSettled(1, 1, "error"),
    hookApplied("onComplete"),
    hooksSettled("end"),
  ],
};

export function turnPaths({ first, also }: TurnPlan): Path[] {
  const events = journalOf([
    first,
    modelRequested(1, 1),
    modelResponded(1, 0),
    modelResponded(1, 2),
    modelFailed(null),
    refused("budget"),
    stopSignalled("user_requested"),
    stopSignalled("stop_requested"),
    thrown,
    turnEnded("completed"),
    turnEnded("stopped"),
    turnEnded("failed"),
    ...also,
  ]);
  return pathsOf(turnMachine, { events, isLegal, stateKey, input: { entry: at(first, 1) } });
}

function isLegal({ value, context }: Explored, entry: Entry): boolean {
  const { turn } = context as TurnContext;
  const state = nameOf(value);
  const signal = strongestSignal(turn.execution.continuation.stopSignals);
  const assembles = state === "thinking.assembling" || state === "thinking.retrying";
  switch (entry.type) {
    case "turn.started":
      return state === "receiving";
    case "hook.applied":
      return isHookDue(turn, state, entry.hook);
    case "hooks.settled":
      return arePassed(turn, state, entry.phase);
    case "output.checked":
      return isChecking(turn, state) && (entry.valid || (turn.outputRepairs === 0) === "repairMessageId" in entry);
    case "model.requested":
      if (!assembles) return false;
      return entry.attempt === 1 ? entry.step === turn.step + 1 && turn.attempt === 0 : turn.attempt === 1;
    case "model.responded":
      return turn.openRequest?.step === entry.step;
    case "model.failed":
      return turn.openRequest?.step === 1;
    case "context.compacted":
      return assembles && turn.compactions === 0;
    case "tool.settled":
      return turn.openCallIds.includes(entry.callId);
    case "call.reviewed":
      return turn.unreviewedCallIds.includes(entry.callId);
    case "intent.refused":
      return assembles;
    case "child.reported":
      return turn.heldMessageIds.length === 0 && state !== "receiving" && turn.step < 2;
    case "stop.signalled":
    case "effect.failed":
      return signal === undefined;
    case "turn.ended":
      return state === "finishing" && entry.outcome === outcomeOf(signal?.reason);
    default:
      return state === "waiting" || state === "held";
  }
}

const wordAt = {
  afterUserInput: "welcoming",
  beforeLlm: "thinking.assembling",
  afterLlm: "deciding",
  beforeTools: "deciding",
  afterTools: "settling",
  onComplete: "completing",
} as const;
type PlacedHook = keyof typeof wordAt;

function isApplied({ hooks, appliedHooks }: TurnState, hook: PlacedHook): boolean {
  return hooks[hook] === 0 || appliedHooks.includes(`${hook}:0`);
}

function isHookDue(turn: TurnState, state: string, hook: string): boolean {
  const placed = hook as PlacedHook;
  if (wordAt[placed] !== state || isApplied(turn, placed)) return false;
  return placed !== "beforeTools" || (isApplied(turn, "afterLlm") && turn.openCallIds.length > 0);
}

/** Whether all hooks of a phase have run. */
function arePassed(turn: TurnState, state: string, phase: "input" | "answer" | "end"): boolean {
  if (phase === "input") return state === "welcoming" && isApplied(turn, "afterUserInput");
  if (phase === "end") return state === "completing" && isApplied(turn, "onComplete");
  if (state !== "deciding" || !isApplied(turn, "afterLlm")) return false;
  return turn.openCallIds.length > 0 ? isApplied(turn, "beforeTools") : !isChecking(turn, state);
}

/** Whether the answer is final and its schema check is next. */
function isChecking(turn: TurnState, state: string): boolean {
  const { stopSignals, isContinuationRequested } = turn.execution.continuation;
  if (state !== "deciding" || !turn.checksOutput || turn.outputFits !== null || !isApplied(turn, "afterLlm")) {
    return false;
  }
  return turn.openCallIds.length === 0 && stopSignals.length === 0 && !isContinuationRequested;
}

function outcomeOf(reason: StopReason | undefined): TurnOutcome {
  if (reason === undefined) return "completed";
  return reason === "error" ? "failed" : "stopped";
}

/** The data that determines the turn's next transitions. Ordinals and times grow without bound and are left out. */
function stateKey({ value, context }: Explored): unknown {
  const { step, attempt, retryAt, openRequest, appliedHooks, execution, react, ...turn } = (context as TurnContext)
    .turn;
  const { openCallIds, unreviewedCallIds, outputFits, outputRepairs, compactions, heldMessageIds } = turn;
  const { stopSignals, isContinuationRequested } = execution.continuation;
  const signals = stopSignals.map(({ reason }) => reason).sort();
  return [
    [value, step, attempt, retryAt, openRequest !== null, appliedHooks, signals, isContinuationRequested],
    [openCallIds, unreviewedCallIds, outputFits, outputRepairs, compactions, needsOf(react).callLlm, heldMessageIds],
  ];
}
