import { assign, setup } from "xstate";
import { type CallState, declareCall, type Entry, foldCall, isItsChild, isWaitOver } from "../state/index.ts";
import { type EffectMeta, running } from "./effect-slot.ts";
import { onEveryEntry } from "./entry-routing.ts";

/**
 * Effects of a call:
 * - `performCall` gates the call, waits for its slot, proposes its intent, runs it, appends its result;
 * - `enqueueCall` adds the call to its queue;
 * - `spawnOrdered` spawns the children that a queued tool has ordered; one of them provides the result;
 * - `settleChild` turns a child's end into the call's result; for a background child, its start;
 * - `settleWait` turns the ends of background children into the call's result;
 * - `reviewCall` runs the hooks that review the result.
 */
export type CallEffectName =
  | "performCall"
  | "enqueueCall"
  | "spawnOrdered"
  | "settleChild"
  | "settleWait"
  | "reviewCall";

/** The input and the context of the call machine. One field, because each assignment copies all fields of a context. */
export interface CallContext {
  readonly call: CallState;
}

const begun = [
  { guard: "isQueued", target: "#toolCall.awaitingQueue", actions: "record" },
  { target: "running", actions: "record" },
] as const;

/**
 * One tool call: `declared → gated → queued → running → settled | outcomeUnknown`. `gated` is skipped if only the tool's schema
 * gates the call. Other states: `awaitingChild` for a subagent, `awaitingReports` for background subagents, `awaitingQueue` for a
 * worker of a queued tool, `awaitingDecision` for a person, a client tool or credentials, `held` while paused, `reviewing` while
 * hooks review the result. One effect runs through declared, gated, queued and running: after a restart it reads the progress of
 * the call from the fold.
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
    // A child can end before the response to the commit that spawned it has been processed.
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
    // The gate is known: without a `call.gated` entry the refused intent contains it.
    held: { on: { "agent.resumed": { target: "performing.gated", actions: "record" } } },
    // Adds the job again after a pause: a worker that took the job during the pause was refused and dropped it.
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
    // The decision enters the fold, and the call continues after its question.
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
/** A named interface, because the inferred type would be too long for a declaration of the parent machine. */
export interface ToolCallMachine extends Made {}

export const toolCallMachine: ToolCallMachine = made;
