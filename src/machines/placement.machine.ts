import { and, assign, setup, stateIn } from "xstate";

/** `waits`: the agent is here and only a post can move it. `gone`: it is not here any more. */
export type Rest = "waits" | "gone";

/** Even with frequent turns an agent leaves after this time, so that it can move to another process and job. */
export const LONGEST_KEPT_MS = 60_000;

export interface PlacementContext {
  /** A handle of this process has started the agent. */
  readonly isHeld: boolean;
  /** Deliveries to it that are under way. */
  readonly deliveries: number;
  /** It was shut down with an open turn: only `start()` activates it again. */
  readonly isShutDown: boolean;
  /** When it first ended a turn since it came here, and until when it is kept for its next one; in steady time. */
  readonly keptSince: number | null;
  readonly keptUntil: number;
}

export type PlacementEvent =
  | { readonly type: "handle.opened" | "handle.closed" }
  | { readonly type: "delivery.started" | "delivery.ended" }
  | { readonly type: "rest.awaited" | "rest.checked" }
  | { readonly type: "activation.started" | "activation.succeeded" }
  /** `keepsLease`: it was passive, and the lease is still this process's. */
  | { readonly type: "activation.failed"; readonly keepsLease: boolean }
  | { readonly type: "change.started" | "change.ended" }
  /** The lease was offered to the stores, and was not taken because items have arrived. */
  | { readonly type: "lease.offered" | "lease.kept" }
  | { readonly type: "leave.started"; readonly isShutDown: boolean }
  | { readonly type: "leave.ended" }
  /** The activation was stopped, or the lease of a passive agent is not this process's any more. */
  | { readonly type: "lost" }
  | { readonly type: "turn.ended"; readonly now: number; readonly keptMs: number }
  | { readonly type: "kept.ended" }
  | {
      /** Everything is committed and no effect runs, except such as wait for children. */
      readonly type: "settled";
      /** Whether no effect runs at all. */
      readonly mayLeave: boolean;
      readonly isBetweenTurns: boolean;
      /** A child whose work is done leaves even if a handle holds it. */
      readonly isDone: boolean;
      readonly now: number;
    }
  | { readonly type: "passivation.ended" }
  /** It leaves memory, and this process keeps its lease. */
  | { readonly type: "passivated" };

/** The actions of this machine that start work of the host; all others change its context. */
export type PlacementAction =
  | { readonly type: "answerRest"; readonly params: { readonly rest: Rest } }
  /** Sends `rest.checked` in the next turn of the event loop. */
  | { readonly type: "checkRest" }
  /** Offers the lease back and stops the actors, unless something arrives meanwhile. */
  | { readonly type: "passivate" };

const answerWaits = { type: "answerRest", params: { rest: "waits" } } as const;
const answerGone = { type: "answerRest", params: { rest: "gone" } } as const;

/**
 * Where one agent is, as far as one process knows:
 * `away | dormant → activating → live { lease: kept ⇄ offered, departure: staying ⇄ passivating } → leaving → away | dormant`,
 * or `live → passive → activating` where the process keeps the lease of an agent that leaves its memory. `changing`: its
 * lease is held for a change that takes no step. An agent that was passivated with an open turn, and its lease given
 * back, is `away`: only the stores know more.
 *
 * Events about an activation must be sent only while that activation is the one here.
 *
 * These never happen:
 * 1. Two activations of one agent in a process: one starts only from `away`, `dormant` or `passive`.
 * 2. An activation without a lease: `activating` takes it before the actors are made, or with the first commit of an
 *    agent just created; `leaving` stops them before it is given back.
 * 3. A waiter for rest without an answer: it is answered when the agent rests here, when a handle holds the agent, when
 *    it is passive, and after each way to `away` or `dormant`.
 * 4. A passivation of an agent to which something is delivered, or two passivations at once; or, unless it is a child
 *    that is done, one that gives back the lease of an agent that a handle holds.
 */
export const placementMachine = setup({
  types: { context: {} as PlacementContext, events: {} as PlacementEvent },
  actions: {
    answerRest: (_args, _params: { readonly rest: Rest }) => undefined,
    checkRest: () => undefined,
    passivate: () => undefined,
    hold: assign({ isHeld: true }),
    unhold: assign({ isHeld: false }),
    startDelivery: assign({ deliveries: ({ context }) => context.deliveries + 1 }),
    endDelivery: assign({ deliveries: ({ context }) => Math.max(0, context.deliveries - 1) }),
    noteShutDown: assign({ isShutDown: ({ event }) => event.type === "leave.started" && event.isShutDown }),
    begin: assign({ isShutDown: false, keptSince: null, keptUntil: 0 }),
    keep: assign(({ context, event }) => {
      if (event.type !== "turn.ended") return {};
      return { keptSince: context.keptSince ?? event.now, keptUntil: event.now + event.keptMs };
    }),
    endKeeping: assign({ keptUntil: 0 }),
  },
  guards: {
    isHeld: ({ context }) => context.isHeld,
    isUndelivered: ({ context }) => context.deliveries === 0,
    staysDormant: ({ context }) => context.isShutDown && !context.isHeld,
    keepsLease: ({ event }) => event.type === "activation.failed" && event.keepsLease,
    isKeptLonger: ({ context, event }) =>
      event.type === "turn.ended" && event.now - (context.keptSince ?? event.now) < LONGEST_KEPT_MS,
    isResting: ({ context, event }) => {
      if (event.type !== "settled" || context.deliveries > 0 || (context.isHeld && !event.isDone)) return false;
      return !(event.mayLeave && event.isBetweenTurns && event.now < context.keptUntil);
    },
    mayLeave: ({ event }) => event.type === "settled" && event.mayLeave,
  },
}).createMachine({
  id: "placement",
  context: { isHeld: false, deliveries: 0, isShutDown: false, keptSince: null, keptUntil: 0 },
  initial: "away",
  on: {
    "handle.opened": { actions: ["hold", answerWaits] },
    "handle.closed": { actions: "unhold" },
    "delivery.started": { actions: "startDelivery" },
    "delivery.ended": { actions: "endDelivery" },
    "rest.awaited": { guard: "isHeld", actions: answerWaits },
  },
  states: {
    away: {
      entry: ["begin", "checkRest"],
      on: {
        "activation.started": "activating",
        "change.started": "changing",
        "rest.awaited": [{ guard: "isHeld", actions: answerWaits }, { actions: "checkRest" }],
        "rest.checked": { actions: answerGone },
      },
    },
    dormant: {
      entry: "checkRest",
      on: {
        "activation.started": { target: "activating", actions: "begin" },
        "change.started": "changing",
        "rest.awaited": [{ guard: "isHeld", actions: answerWaits }, { actions: "checkRest" }],
        "rest.checked": { actions: answerGone },
      },
    },
    activating: {
      on: {
        "activation.succeeded": { target: "live", actions: "begin" },
        "activation.failed": [{ guard: "keepsLease", target: "passive" }, { target: "away" }],
      },
    },
    changing: {
      on: { "change.ended": [{ guard: "staysDormant", target: "dormant" }, { target: "away" }] },
    },
    live: {
      type: "parallel",
      on: {
        "leave.started": { target: "leaving", actions: "noteShutDown" },
        lost: "away",
        "turn.ended": { guard: "isKeptLonger", actions: "keep" },
        "kept.ended": { actions: "endKeeping" },
      },
      states: {
        lease: {
          initial: "kept",
          states: {
            kept: { id: "keptLease", on: { "lease.offered": "offered" } },
            offered: { on: { "lease.kept": "kept" } },
          },
        },
        departure: {
          initial: "staying",
          states: {
            staying: {
              on: {
                settled: [
                  { guard: and(["isResting", "mayLeave"]), target: "passivating", actions: [answerWaits, "passivate"] },
                  { guard: "isResting", actions: answerWaits },
                ],
                passivated: { guard: and(["isUndelivered", stateIn("#keptLease")]), target: "#placement.passive" },
              },
            },
            passivating: {
              on: {
                settled: { guard: "isResting", actions: answerWaits },
                "passivation.ended": "staying",
              },
            },
          },
        },
      },
    },
    leaving: {
      on: { "leave.ended": [{ guard: "staysDormant", target: "dormant" }, { target: "away" }] },
    },
    passive: {
      entry: answerWaits,
      on: {
        "activation.started": "activating",
        "change.started": "changing",
        lost: "away",
        "rest.awaited": { actions: answerWaits },
        "rest.checked": { actions: answerWaits },
      },
    },
  },
});
