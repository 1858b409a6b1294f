import { and, assign, enqueueActions, fromCallback, setup } from "xstate";
import {
  cutsNow,
  declareCall,
  type Entry,
  type EntryOf,
  foldTurn,
  hasOpenWork,
  nextMove,
  startTurn,
  type TurnState,
} from "../state/index.ts";
import { onEveryEntry } from "./entry-families.ts";
import { toolCallMachine } from "./tool-call.machine.ts";

/** What an effect actor of a turn is started with; all else it reads through its host. */
export interface TurnEffectInput {
  readonly turnId: string;
}

let lastFold: { readonly context: TurnState; readonly event: Entry; readonly next: TurnState } | undefined;

/** The turn after this entry. Guards and the action that follows them ask for the same fold: it is made once. */
function after(context: TurnState, event: Entry): TurnState {
  if (lastFold?.context !== context || lastFold.event !== event) {
    lastFold = { context, event, next: foldTurn(context, event) };
  }
  return lastFold.next;
}

const vacant = fromCallback<Entry, TurnEffectInput>(() => undefined);

const machine = setup({
  types: {
    context: {} as TurnState,
    events: {} as Entry,
    input: {} as { readonly entry: EntryOf<"turn.started"> },
    children: {} as Record<string, "toolCall">,
  },
  actors: {
    /** Assembles the prompt, asks for the call to be granted, makes it, and retries it. */
    think: vacant,
    /** Runs the `afterTools` hooks that are not committed yet. */
    settleRound: vacant,
    /** Gives every open call and request an outcome. */
    interruptOpenWork: vacant,
    /** Appends `turn.ended`. */
    endTurn: vacant,
    toolCall: toolCallMachine,
  },
  actions: {
    record: assign(({ context, event }) => after(context, event)),
    /** The calls of the round before: they have their results, and stay in their parent until they are stopped. */
    dropCalls: enqueueActions(({ enqueue, context }) => {
      for (const { callId } of context.execution.currentStep?.toolExecutions ?? []) enqueue.stopChild(callId);
    }),
    spawnCalls: enqueueActions(({ enqueue, event }) => {
      if (event.type !== "model.responded") return;
      for (const { callId, name } of event.calls) {
        enqueue.spawnChild("toolCall", { id: callId, input: { call: declareCall(callId, name) } });
      }
    }),
  },
  guards: {
    cuts: ({ event }) => (event.type === "stop.signalled" || event.type === "timer.due") && cutsNow(event.signal),
    leavesWorkOpen: ({ context, event }) => hasOpenWork(after(context, event)),
    thinksNext: ({ context, event }) => nextMove(after(context, event)) === "think",
    runsToolsNext: ({ context, event }) => nextMove(after(context, event)) === "runTools",
    willRetry: ({ event }) => event.type === "model.failed" && event.retryAt !== null,
    endsRound: ({ context, event }) => after(context, event).openCallIds.length === 0,
    hasRoundHooks: ({ context }) => context.hooks.afterTools > 0,
    roundHooksDone: ({ context, event }) =>
      after(context, event).appliedHooks.filter((key) => key.startsWith("afterTools:")).length >=
      context.hooks.afterTools,
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

const failure = [
  { guard: "leavesWorkOpen", target: "#turn.stopping", actions: "record" },
  { target: "#turn.finishing", actions: "record" },
] as const;

const afterRound = [
  { guard: "thinksNext", target: "#turn.thinking", actions: "record" },
  { target: "#turn.finishing", actions: "record" },
] as const;

/**
 * One turn: `receiving → [thinking → round → settling]* → finishing → done`, with `waiting` for others' reservations,
 * `held` while paused, `stopping` when work in flight must be given an outcome first.
 * Its context is the fold of its entries; what it does next follows from that fold (`nextMove`).
 */
export const turnMachine = machine.createMachine({
  id: "turn",
  context: ({ input }) => ((input as { entry: EntryOf<"turn.started"> } | undefined) ? startTurn(input.entry) : unborn),
  initial: "receiving",
  on: {
    ...onEveryEntry({ actions: "record" }),
    "stop.signalled": [...cut],
    "timer.due": [...cut],
    "effect.failed": [...failure],
  },
  states: {
    receiving: { on: { "turn.started": { target: "thinking", actions: "record" } } },
    thinking: {
      invoke: { src: "think", input: ({ context }) => ({ turnId: context.turnId }) },
      initial: "assembling",
      states: {
        assembling: {
          on: {
            "model.requested": { target: "calling", actions: ["dropCalls", "record"] },
            // A hook stops the turn before the call is made.
            "stop.signalled": [...failure],
          },
        },
        calling: {
          on: { "model.failed": [{ guard: "willRetry", target: "retrying", actions: "record" }, ...failure] },
        },
        retrying: { on: { "model.requested": { target: "calling", actions: "record" } } },
      },
      on: {
        "model.responded": [
          { guard: "runsToolsNext", target: "round", actions: ["record", "spawnCalls"] },
          { guard: "thinksNext", target: "thinking", reenter: true, actions: "record" },
          { guard: "leavesWorkOpen", target: "stopping", actions: "record" },
          { target: "finishing", actions: "record" },
        ],
        "intent.refused": [
          { guard: and(["concernsModel", "mustWait"]), target: "waiting", actions: "record" },
          { guard: and(["concernsModel", "isHeld"]), target: "held", actions: "record" },
          { guard: "concernsModel", target: "finishing", actions: "record" },
          { actions: "record" },
        ],
      },
    },
    round: {
      on: {
        "tool.settled": [
          { guard: and(["endsRound", "hasRoundHooks"]), target: "settling", actions: "record" },
          { guard: and(["endsRound", "thinksNext"]), target: "thinking", actions: "record" },
          { guard: "endsRound", target: "finishing", actions: "record" },
          { actions: "record" },
        ],
      },
    },
    settling: {
      invoke: { src: "settleRound", input: ({ context }) => ({ turnId: context.turnId }) },
      on: {
        "hook.applied": [
          { guard: and(["roundHooksDone", "thinksNext"]), target: "thinking", actions: "record" },
          { guard: "roundHooksDone", target: "finishing", actions: "record" },
          { actions: "record" },
        ],
        "stop.signalled": [...failure],
      },
    },
    waiting: { on: { "budget.freed": [...afterRound], "agent.resumed": [...afterRound] } },
    held: { on: { "agent.resumed": [...afterRound] } },
    stopping: {
      invoke: { src: "interruptOpenWork", input: ({ context }) => ({ turnId: context.turnId }) },
      on: {
        ...onEveryEntry([
          { guard: "leavesWorkOpen", actions: "record" },
          { target: "finishing", actions: "record" },
        ]),
        "stop.signalled": { actions: "record" },
        "timer.due": { actions: "record" },
        "effect.failed": { target: "finishing", actions: "record" },
      },
    },
    finishing: {
      invoke: { src: "endTurn", input: ({ context }) => ({ turnId: context.turnId }) },
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

/** Context of a machine that was made without input, as pure transitions make it. */
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
  hooks: { beforeLlm: 0, afterTools: 0 },
});
