import { assign, setup } from "xstate";
import { type CallState, declareCall, type Entry, foldCall, isItsChild, isWaitOver } from "../state/index.ts";
import { type EffectMeta, running } from "./effect-slot.ts";
import { onEveryEntry } from "./entry-routing.ts";

/**
 * Effects of a call:
 * - `performCall` gates the call, waits for its slot, asks for it to be granted, runs it, appends its result;
 * - `enqueueCall` adds the call to its queue;
 * - `spawnOrdered` spawns the children that a queued tool has ordered; one of them gives the result;
 * - `settleChild` turns the end of a child into the call's result, or for a child in the background, its beginning;
 * - `settleWait` turns the ends of children in the background into the call's result;
 * - `reviewCall` runs the hooks that review the result.
 */
export type CallEffectName =
  | "performCall"
  | "enqueueCall"
  | "spawnOrdered"
  | "settleChild"
  | "settleWait"
  | "reviewCall";

/** The input and the context of the call machine. In one field, because each assignment copies all fields of a context. */
export interface CallContext {
  readonly call: CallState;
}

const begun = [
  { guard: "isQueued", target: "#toolCall.awaitingQueue", actions: "record" },
  { target: "running", actions: "record" },
] as const;

/**
 * One tool call: `declared → gated → queued → running → settled | outcomeUnknown`, without `gated` where only its schema gates
 * it, `awaitingChild` for a subagent,
 * `awaitingReports` for subagents in the background, `awaitingQueue` for a worker of a queued tool, `awaitingDecision` for a
 * person, a client tool or credentials, `held` while paused, `reviewing` while hooks review the result. One effect lives through
 * declared, gated, queued and running: after a restart it reads from the fold how far the call had come.
 */
const made = setup({
  types: {
    context: {} as CallContext,
    events: {} as Entry,
    input: {} as CallContext,
    meta: {} as EffectMeta<CallEffectName>,
  },
  actions: {
    startEffect: (_args, _params: EffectMeta<CallEffectName>) => undefined,
    stopEffect: () => undefined,
    record: assign(({ context: { call }, event }) => ({ call: foldCall(call, event) })),
  },
  guards: {
    isUnknown: ({ event }) => event.type === "tool.settled" && event.outcome === "outcome_unknown",
    isQueued: ({ event }) => event.type === "tool.started" && event.queue !== undefined,
    isReviewed: ({ event }) => event.type === "tool.settled" && event.reviewDue === true,
    isItsChild: ({ context, event }) => event.type === "child.ended" && isItsChild(context.call, event),
    isBackground: ({ event }) => event.type === "child.spawned" && event.background !== undefined,
    endsWait: ({ context, event }) => isWaitOver(foldCall(context.call, event)),
    wasUnknown: ({ context }) => context.call.outcome === "outcome_unknown",
    isHeld: ({ event }) =>
      event.type === "intent.refused" && event.intent !== "generate.requested" && event.reason === "paused",
  },
}).createMachine({
  id: "toolCall",
  context: ({ input }) => ({ call: (input as CallContext | undefined)?.call ?? unborn }),
  initial: "performing",
  on: {
    ...onEveryEntry({ actions: "record" }),
    "tool.settled": [
      { guard: "isReviewed", target: ".reviewing", actions: "record" },
      { guard: "isUnknown", target: ".outcomeUnknown", actions: "record" },
      { target: ".settled", actions: "record" },
    ],
    // A child can end before the answer of the commit that spawned it has been taken in.
    "child.ended": [{ guard: "isItsChild", target: ".settlingChild", actions: "record" }, { actions: "record" }],
  },
  states: {
    performing: {
      ...running("performCall"),
      initial: "declared",
      states: {
        declared: {
          on: { "call.gated": { target: "gated", actions: "record" }, "tool.started": [...begun] },
        },
        gated: { on: { "tool.started": [...begun] } },
        running: { on: { "tool.retrying": { target: "queued", actions: "record" } } },
        queued: { on: { "tool.started": [...begun] } },
      },
      on: {
        "child.spawned": [
          { guard: "isBackground", target: "settlingChild", actions: "record" },
          { target: "awaitingChild", actions: "record" },
        ],
        "child.awaited": { target: "awaitingChild", actions: "record" },
        "call.waiting": { target: "awaitingReports", actions: "record" },
        "request.opened": { target: "awaitingDecision", actions: "record" },
        "intent.refused": [{ guard: "isHeld", target: "held", actions: "record" }, { actions: "record" }],
      },
    },
    // Its gate is known: the refused intent has brought it, where no entry did before.
    held: { on: { "agent.resumed": { target: "performing.gated", actions: "record" } } },
    // The end of a pause adds the job again: a worker that took it meanwhile was refused and dropped it.
    awaitingQueue: {
      ...running("enqueueCall"),
      on: {
        "agent.resumed": { target: "awaitingQueue", reenter: true, actions: "record" },
        "tool.retrying": { target: "performing.queued", actions: "record" },
        "child.ordered": { target: "spawningOrdered", actions: "record" },
      },
    },
    spawningOrdered: {
      ...running("spawnOrdered"),
      on: { "child.awaited": { target: "awaitingChild", actions: "record" } },
    },
    awaitingChild: {},
    awaitingReports: {
      on: {
        "child.reported": [{ guard: "endsWait", target: "settlingWait", actions: "record" }, { actions: "record" }],
        "call.expired": { target: "settlingWait", actions: "record" },
      },
    },
    // The decision enters the fold, and the call goes on from the question.
    awaitingDecision: { on: { "request.decided": { target: "performing.gated", actions: "record" } } },
    settlingChild: {
      ...running("settleChild"),
    },
    settlingWait: {
      ...running("settleWait"),
    },
    reviewing: {
      ...running("reviewCall"),
      on: {
        "call.reviewed": [
          { guard: "wasUnknown", target: "outcomeUnknown", actions: "record" },
          { target: "settled", actions: "record" },
        ],
      },
    },
    settled: {},
    outcomeUnknown: {},
  },
});

const unborn = declareCall(":1:0", "");

type Made = typeof made;
/** Named, because written out in the type of its parent machine it would be too long for a declaration. */
export interface ToolCallMachine extends Made {}

export const toolCallMachine: ToolCallMachine = made;
