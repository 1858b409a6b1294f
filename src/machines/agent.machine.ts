import { assign, enqueueActions, fromCallback, setup } from "xstate";
import type { Entry, Lifecycle } from "../state/index.ts";
import { type AgentContext, foldAgent, isWaiting, newAgentContext } from "./agent-context.ts";
import { onEveryEntry, whole } from "./entry-routing.ts";
import { turnMachine } from "./turn.machine.ts";

/** The public lifecycle status of the machine's state value. */
export function lifecycleOf(value: unknown): Lifecycle {
  const top = typeof value === "string" ? value : Object.keys(value as object)[0];
  return top as Lifecycle;
}

const vacant = fromCallback<Entry, undefined>(() => undefined);

/**
 * The lifecycle of one agent: `created → starting → ready ⇄ busy { working, waiting, pausing } → paused | failed | shutdown`.
 * `busy` holds the turn as its spawned child. A turn that was merely stopped leaves the agent `ready`.
 */
export const agentMachine = setup({
  types: {
    context: {} as AgentContext,
    events: {} as Entry,
    children: {} as Record<string, "turn">,
  },
  actors: {
    /** Appends `agent.paused` when nothing of the agent's own is in flight any more. */
    confirmPause: vacant,
    turn: turnMachine,
  },
  actions: {
    record: assign(whole(({ context, event }) => foldAgent(context, event))),
    /** Stops the last turn first: a child that has ended stays in its parent until it is stopped. */
    spawnTurn: enqueueActions(({ enqueue, event, context }) => {
      if (event.type !== "turn.started") return;
      if (context.lastTurnId !== null) enqueue.stopChild(context.lastTurnId);
      enqueue.spawnChild("turn", { id: event.turnId, input: { entry: event } });
    }),
  },
  guards: {
    isWaiting: ({ context }) => isWaiting(context),
    isWorking: ({ context }) => !isWaiting(context),
    leavesFailed: ({ event }) => event.type === "turn.ended" && event.lifecycle === "failed",
    leavesPaused: ({ event }) => event.type === "turn.ended" && event.lifecycle === "paused",
    resumesTurn: ({ context, event }) => event.type === "agent.resumed" && context.openTurnId !== null,
  },
}).createMachine({
  id: "agent",
  context: newAgentContext,
  initial: "created",
  on: onEveryEntry({ actions: "record" }),
  states: {
    created: { on: { "agent.starting": "starting" } },
    starting: { on: { "agent.started": "ready" } },
    ready: {
      on: {
        "turn.started": { target: "busy", actions: ["spawnTurn", "record"] },
        "agent.pausing": "paused",
        "agent.shutdown": "shutdown",
      },
    },
    busy: {
      initial: "working",
      states: {
        working: { always: { guard: "isWaiting", target: "waiting" } },
        waiting: { always: { guard: "isWorking", target: "working" } },
        pausing: {
          invoke: { src: "confirmPause" },
          on: { "agent.paused": "#agent.paused", "agent.resumed": "working" },
        },
      },
      on: {
        "agent.pausing": ".pausing",
        "turn.ended": [
          { guard: "leavesFailed", target: "failed", actions: "record" },
          { guard: "leavesPaused", target: "paused", actions: "record" },
          { target: "ready", actions: "record" },
        ],
      },
    },
    paused: {
      on: {
        "agent.resumed": [{ guard: "resumesTurn", target: "busy" }, { target: "ready" }],
        "turn.ended": { actions: "record" },
        "agent.shutdown": "shutdown",
      },
    },
    failed: {
      on: {
        "turn.started": { target: "busy", actions: ["spawnTurn", "record"] },
        "agent.pausing": "paused",
        "agent.shutdown": "shutdown",
      },
    },
    shutdown: { on: { "agent.starting": "starting" } },
  },
});
