import { and, assign, setup, stateIn } from "xstate";

/** `waits`: the agent is in this process and only a post can make it continue. `gone`: it is not in this process any more. */
export type Rest = "waits" | "gone";

/** After this time an agent is passivated even if it has frequent turns, so that it can move to another process. */
export const LONGEST_KEPT_MS = 60_000;

export interface PlacementContext {
  /** A handle of this process has started the agent. */
  readonly isHeld: boolean;
  /** Deliveries to the agent that are in progress. */
  readonly deliveries: number;
  /** The agent was shut down with an open turn: only `start()` activates it again. */
  readonly isShutDown: boolean;
  /**
   * When the agent first ended a turn since its activation, and until when it stays in memory for its next turn; monotonic time.
   */
  readonly keptSince: number | null;
  readonly keptUntil: number;
}

export type PlacementEvent =
  | { readonly type: "handle.opened" | "handle.closed" }
  | { readonly type: "delivery.started" | "delivery.ended" }
  | { readonly type: "rest.awaited" | "rest.checked" }
  | { readonly type: "activation.started" | "activation.succeeded" }
  /** `keepsLease`: the agent was passive, and this process still holds the lease. */
  | { readonly type: "activation.failed"; readonly keepsLease: boolean }
  | { readonly type: "change.started" | "change.ended" }
  /** The lease was offered to the stores; they did not take it back because new items have arrived. */
  | { readonly type: "lease.offered" | "lease.kept" }
  | { readonly type: "leave.started"; readonly isShutDown: boolean }
  | { readonly type: "leave.ended" }
  /** The activation was stopped, or this process has lost the lease of a passive agent. */
  | { readonly type: "lost" }
  | { readonly type: "turn.ended"; readonly now: number; readonly keptMs: number }
  | { readonly type: "kept.ended" }
  | {
      /** Everything is committed, and no effect runs except those that wait for children. */
      readonly type: "settled";
      /** Whether no effect runs at all, not even one that waits for children. */
      readonly mayLeave: boolean;
      readonly isBetweenTurns: boolean;
      /** A child that has finished is passivated even if a handle holds it. */
      readonly isDone: boolean;
      readonly now: number;
    }
  | { readonly type: "passivation.ended" }
  /** The agent was removed from memory; this process keeps its lease. */
  | { readonly type: "passivated" };

/** The actions of this machine that make the host do work; all others only change the context. */
export type PlacementAction =
  | { readonly type: "answerRest"; readonly params: { readonly rest: Rest } }
  /** Sends `rest.checked` in the next turn of the event loop. */
  | { readonly type: "checkRest" }
  /** Offers the lease to the stores and stops the actors, unless an item arrives meanwhile. */
  | { readonly type: "passivate" };

const answerWaits = { type: "answerRest", params: { rest: "waits" } } as const;
const answerGone = { type: "answerRest", params: { rest: "gone" } } as const;

/**
 * The placement of one agent, as far as one process knows:
 * `away | dormant → activating → live { lease: kept ⇄ offered, departure: staying ⇄ passivating } → leaving → away | dormant`,
 * or `live → passive → activating` if the process keeps the lease of an agent that it removes from memory. In `changing` the
 * process holds the lease for a change that runs no step. An agent that was passivated with an open turn and whose lease was
 * released is `away`: only the stores have its state.
 *
 * Send events about an activation only while it is the current activation.
 *
 * Invariants. These never happen:
 * 1. Two activations of one agent in a process: an activation starts only from `away`, `dormant` or `passive`.
 * 2. An activation without a lease: `activating` acquires it before the actors are created, or with the first commit of a new
 *    agent; `leaving` stops the actors before it releases the lease.
 * 3. A caller that waits for rest without an answer: it is answered when the agent rests in this process, when a handle holds the
 *    agent, when the agent is passive, and after each transition to `away` or `dormant`.
 * 4. A passivation during a delivery to the agent; two passivations at once; a passivation that releases the lease of an agent
 *    that a handle holds, unless the agent is a finished child.
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
