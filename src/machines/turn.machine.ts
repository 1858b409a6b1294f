import { and, assign, setup } from "xstate";
import {
  activityAfter,
  cutsNow,
  declareCall,
  type Entry,
  type EntryOf,
  foldTurn,
  hasOpenWork,
  isAnswerChecked,
  nextMove,
  noHooks,
  openCallsOf,
  startTurn,
  type TurnState,
} from "../state/index.ts";
import { type EffectMeta, running } from "./effect-slot.ts";
import { onEveryEntry } from "./entry-routing.ts";
import { toolCallMachine } from "./tool-call.machine.ts";

/**
 * Effects of a turn:
 * - `receive` runs the `afterUserInput` hooks that are not committed yet;
 * - `think` assembles the prompt, proposes the call, makes it and retries it;
 * - `decide` runs the `afterLlm` and `beforeTools` hooks, and validates an answer that has an output schema;
 * - `settleRound` runs the `afterTools` hooks that are not committed yet, and makes the answer of a turn that a tool ends;
 * - `interruptOpenWork` settles every open call and request;
 * - `complete` runs the `onComplete` hooks;
 * - `endTurn` appends `turn.ended`.
 */
export type TurnEffectName =
  | "receive"
  | "think"
  | "decide"
  | "settleRound"
  | "interruptOpenWork"
  | "complete"
  | "endTurn";

/** The context of the turn machine. One field, because each assignment copies all fields of a context. */
export interface TurnContext {
  readonly turn: TurnState;
}

function after({ turn }: TurnContext, entry: Entry): TurnState {
  return foldTurn(turn, entry);
}

/** The calls that have no result or are being reviewed; cheaper than `after`, which folds the whole turn. */
function callsAfter({ turn }: TurnContext, entry: Entry): Pick<TurnState, "openCallIds" | "unreviewedCallIds"> {
  const { openCallIds, unreviewedCallIds } = turn;
  return { openCallIds, unreviewedCallIds, ...activityAfter(turn, entry) };
}

const machine = setup({
  types: {
    context: {} as TurnContext,
    events: {} as Entry,
    input: {} as { readonly entry: EntryOf<"turn.started"> },
    children: {} as Record<string, "toolCall">,
    meta: {} as EffectMeta<TurnEffectName>,
  },
  actors: { toolCall: toolCallMachine },
  actions: {
    startEffect: (_args, _params: EffectMeta<TurnEffectName>) => undefined,
    stopEffect: () => undefined,
    record: assign(({ context, event }) => ({ turn: after(context, event) })),
  },
  guards: {
    cuts: ({ event }) => (event.type === "stop.signalled" || event.type === "timer.due") && cutsNow(event.signal),
    leavesWorkOpen: ({ context, event }) => hasOpenWork(after(context, event)),
    cannotStop: ({ event }) => event.type === "effect.failed" && event.effect === "interruptOpenWork",
    thinksNext: ({ context, event }) => nextMove(after(context, event)) === "think",
    runsToolsNext: ({ context, event }) => nextMove(after(context, event)) === "runTools",
    stopsHere: ({ event }) => event.type === "hook.applied" && event.patch.stop !== null,
    willRetry: ({ event }) => event.type === "model.failed" && event.retryAt !== null,
    checksAnswer: ({ context, event }) => {
      const { hooks, checksOutput } = context.turn;
      return isAnswerChecked({ hooks, checksOutput, ...callsAfter(context, event) });
    },
    welcomesInput: ({ event }) => event.type === "turn.started" && event.hooks.afterUserInput > 0,
    completesFirst: ({ context, event }) =>
      context.turn.hooks.onComplete > 0 && !after(context, event).execution.continuation.stopSignals.some(cutsNow),
    roundGoesOn: ({ context, event }) => {
      const { openCallIds, unreviewedCallIds } = callsAfter(context, event);
      return openCallIds.length > 0 || unreviewedCallIds.length > 0;
    },
    settlesRound: ({ context, event }) =>
      context.turn.hooks.afterTools > 0 || after(context, event).endingCallIds !== undefined,
    // A result that may end the turn is checked after the hooks.
    roundHooksDone: ({ context, event }) =>
      context.turn.endingCallIds === undefined &&
      after(context, event).appliedHooks.filter((key) => key.startsWith("afterTools:")).length >=
        context.turn.hooks.afterTools,
    concernsModel: ({ event }) => event.type === "intent.refused" && event.intent === "model.requested",
    mustWait: ({ event }) => event.type === "intent.refused" && event.reason === "mustWait",
    isHeld: ({ event }) => event.type === "intent.refused" && event.reason === "paused",
    completes: ({ event }) => event.type === "turn.ended" && event.outcome === "completed",
    stops: ({ event }) => event.type === "turn.ended" && event.outcome === "stopped",
  },
});

const cut = [
  { guard: and(["cuts", "leavesWorkOpen"] as const), target: "#turn.stopping", actions: "record" },
  { guard: "cuts", target: "#turn.finishing", actions: "record" },
  { actions: "record" },
] as const;

const ending = [
  { guard: "completesFirst", target: "#turn.completing", actions: "record" },
  { target: "#turn.finishing", actions: "record" },
] as const;

/** A failure, or a stop by a hook, in any state of the turn. `onComplete` runs only after a stop. */
const failure = [{ guard: "leavesWorkOpen", target: "#turn.stopping", actions: "record" }, ...ending] as const;

const stopByHook = [
  { guard: and(["stopsHere", "completesFirst"] as const), target: "#turn.completing", actions: "record" },
  { guard: "stopsHere", target: "#turn.finishing", actions: "record" },
  { actions: "record" },
] as const;

const afterRound = [{ guard: "thinksNext", target: "#turn.thinking", actions: "record" }, ...ending] as const;

/** Stops the calls of the last round: XState keeps a child that has ended until its parent stops it. */
const dropCalls = machine.enqueueActions(({ enqueue, context }) => {
  const calls = context.turn.execution.currentStep?.toolExecutions ?? [];
  // Newest first: each stop copies the remaining children, and V8 copies an object fastest if its last key was deleted.
  for (const { callId } of calls.toReversed()) enqueue.stopChild(callId);
});

const recordAndSpawnCalls = machine.assign(({ context, event, spawn }) => {
  const turn = after(context, event);
  for (const { callId, name } of openCallsOf(turn)) {
    spawn("toolCall", { id: callId, input: { call: declareCall(callId, name) } });
  }
  return { turn };
});

const afterAnswer = [
  { guard: "runsToolsNext", target: "#turn.round", actions: recordAndSpawnCalls },
  { guard: "thinksNext", target: "#turn.thinking", reenter: true, actions: "record" },
  { guard: "leavesWorkOpen", target: "#turn.stopping", actions: "record" },
  ...ending,
] as const;

const endOfRound = [
  { guard: "roundGoesOn", actions: "record" },
  { guard: "settlesRound", target: "#turn.settling", actions: "record" },
  ...afterRound,
] as const;

/**
 * One turn: `receiving → welcoming → [thinking → deciding → round → settling]* → completing → finishing → done`, with `waiting`
 * for other agents' reservations, `held` while paused, `stopping` while work in flight is being settled. `welcoming`, `deciding`,
 * `settling` and `completing` run hooks and are skipped without them. The context contains the fold of the turn's entries;
 * `nextMove` derives the next state from it.
 */
const made = machine.createMachine({
  id: "turn",
  context: ({ input }) => ({
    turn: (input as { entry: EntryOf<"turn.started"> } | undefined) ? startTurn(input.entry) : unborn,
  }),
  initial: "receiving",
  on: {
    ...onEveryEntry({ actions: "record" }),
    "stop.signalled": [...cut],
    "timer.due": [...cut],
    "effect.failed": [...failure],
  },
  states: {
    receiving: {
      on: {
        "turn.started": [
          { guard: "welcomesInput", target: "welcoming", actions: "record" },
          { target: "thinking", actions: "record" },
        ],
      },
    },
    welcoming: {
      ...running("receive"),
      on: { "hooks.settled": [...afterRound], "stop.signalled": [...failure] },
    },
    thinking: {
      ...running("think"),
      initial: "assembling",
      states: {
        assembling: {
          on: {
            "model.requested": { target: "calling", actions: [dropCalls, "record"] },
            // A hook stops the turn before the call is made and billed.
            "stop.signalled": [...failure],
            "hook.applied": [...stopByHook],
          },
        },
        calling: {
          on: { "model.failed": [{ guard: "willRetry", target: "retrying", actions: "record" }, ...failure] },
        },
        retrying: {
          // A compaction between two attempts stops the turn.
          on: {
            "model.requested": { target: "calling", actions: "record" },
            "stop.signalled": [...failure],
            // A hook may stop the turn because of an input that arrived between two attempts.
            "hook.applied": [...stopByHook],
          },
        },
      },
      on: {
        "model.responded": [{ guard: "checksAnswer", target: "deciding", actions: "record" }, ...afterAnswer],
        "intent.refused": [
          { guard: and(["concernsModel", "mustWait"]), target: "waiting", actions: "record" },
          { guard: and(["concernsModel", "isHeld"]), target: "held", actions: "record" },
          { guard: and(["concernsModel", "completesFirst"]), target: "completing", actions: "record" },
          { guard: "concernsModel", target: "finishing", actions: "record" },
          { actions: "record" },
        ],
      },
    },
    deciding: {
      ...running("decide"),
      on: { "hooks.settled": [...afterAnswer], "stop.signalled": [...failure] },
    },
    round: { on: { "tool.settled": [...endOfRound], "call.reviewed": [...endOfRound] } },
    settling: {
      ...running("settleRound"),
      on: {
        "hook.applied": [
          { guard: and(["roundHooksDone", "thinksNext"]), target: "thinking", actions: "record" },
          { guard: and(["roundHooksDone", "completesFirst"]), target: "completing", actions: "record" },
          { guard: "roundHooksDone", target: "finishing", actions: "record" },
          { actions: "record" },
        ],
        "output.checked": [...afterRound],
        "stop.signalled": [...failure],
      },
    },
    waiting: { on: { "budget.freed": [...afterRound], "agent.resumed": [...afterRound] } },
    held: { on: { "agent.resumed": [...afterRound] } },
    stopping: {
      ...running("interruptOpenWork"),
      on: {
        ...onEveryEntry([
          { guard: "leavesWorkOpen", actions: "record" },
          { target: "finishing", actions: "record" },
        ]),
        // Calls of an answer that was not executed because of a stop.
        "tool.settled": [{ guard: "leavesWorkOpen", actions: "record" }, ...ending],
        "stop.signalled": { actions: "record" },
        "timer.due": { actions: "record" },
        // Hooks of several calls may throw; the turn ends only if interruptOpenWork itself failed.
        "effect.failed": [{ guard: "cannotStop", target: "finishing", actions: "record" }, { actions: "record" }],
      },
    },
    completing: {
      ...running("complete"),
      on: {
        "hooks.settled": { target: "finishing", actions: "record" },
        "stop.signalled": [
          { guard: "leavesWorkOpen", target: "stopping", actions: "record" },
          { target: "finishing", actions: "record" },
        ],
      },
    },
    finishing: {
      ...running("endTurn"),
      on: {
        "turn.ended": [
          { guard: "completes", target: "done", actions: "record" },
          { guard: "stops", target: "stopped", actions: "record" },
          { target: "failed", actions: "record" },
        ],
        "stop.signalled": { actions: "record" },
        "timer.due": { actions: "record" },
        "effect.failed": { actions: "record" },
      },
    },
    done: {},
    stopped: {},
    failed: {},
  },
});

type Made = typeof made;
/** A named interface, because the inferred type would be too long for a declaration of the parent machine. */
export interface TurnMachine extends Made {}

export const turnMachine: TurnMachine = made;

/** The context of a machine without input; pure transitions create one. */
const unborn = startTurn({
  type: "turn.started",
  seq: 1,
  at: 0,
  epoch: 1,
  turnId: "",
  number: 1,
  inputMessageIds: [],
  actorId: null,
  definition: { name: "", hash: "" },
  model: { name: "", provider: "" },
  tools: [],
  limits: {},
  accountId: "",
  maxConsecutiveToolFailures: 1,
  hooks: noHooks,
});
