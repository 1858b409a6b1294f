import { and, assign, setup, stopChild } from "xstate";
import type { Entry, EntryOf, Lifecycle } from "../state/index.ts";
import { type AgentContext, foldAgent, isWaiting, newAgentContext } from "./agent-context.ts";
import { type EffectMeta, running } from "./effect-slot.ts";
import { onEveryEntry } from "./entry-routing.ts";
import { turnMachine } from "./turn.machine.ts";

/** The public lifecycle status of the machine's state value. */
export function lifecycleOf(value: unknown): Lifecycle {
  const top = typeof value === "string" ? value : Object.keys(value as object)[0];
  return top as Lifecycle;
}

/** Effects of an agent: `confirmPause` appends `agent.paused` once none of the agent's own work is in flight. */
export type AgentEffectName = "confirmPause";

const wait = [{ guard: "waitsNow", target: "waiting", actions: "record" }, { actions: "record" }] as const;
const goOn = [{ guard: "worksNow", target: "working", actions: "record" }, { actions: "record" }] as const;

/**
 * The lifecycle of one agent: `created → starting → ready ⇄ busy { working, waiting, pausing } → paused | failed | shutdown`.
 * `busy` spawns the turn as a child actor. A turn that was stopped leaves the agent `ready`.
 */
export const agentMachine = setup({
  types: {
    context: {} as AgentContext,
    events: {} as Entry,
    children: {} as Record<string, "turn">,
    meta: {} as EffectMeta<AgentEffectName>,
  },
  actors: { turn: turnMachine },
  actions: {
    startEffect: (_args, _params: EffectMeta<AgentEffectName>) => undefined,
    stopEffect: () => undefined,
    record: assign(({ context, event }) => foldAgent(context, event)),
    /** Records the entry and spawns the turn in one action, because each action copies the snapshot. */
    recordAndSpawnTurn: assign(({ context, event, spawn }) => {
      const entry = event as EntryOf<"turn.started">;
      spawn("turn", { id: entry.turnId, input: { entry } });
      return foldAgent(context, event);
    }),
    /** XState keeps a child that has ended until its parent stops it. */
    dropLastTurn: stopChild(({ context }) => context.lastTurnId ?? ""),
  },
  guards: {
    waitsNow: ({ context, event }) => isWaiting(foldAgent(context, event)),
    worksNow: ({ context, event }) => !isWaiting(foldAgent(context, event)),
    leavesFailed: ({ event }) => event.type === "turn.ended" && event.lifecycle === "failed",
    leavesPaused: ({ event }) => event.type === "turn.ended" && event.lifecycle === "paused",
    resumesTurn: ({ context }) => context.openTurnId !== null,
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
        "turn.started": { target: "busy", actions: ["dropLastTurn", "recordAndSpawnTurn"] },
        "agent.pausing": "paused",
        "agent.shutdown": "shutdown",
      },
    },
    busy: {
      initial: "working",
      states: {
        working: {
          on: { "child.spawned": [...wait], "intent.refused": [...wait], "request.opened": [...wait] },
        },
        waiting: {
          on: { "child.ended": [...goOn], "budget.freed": [...goOn], "request.decided": [...goOn] },
        },
        pausing: {
          ...running("confirmPause"),
          on: {
            "agent.paused": "#agent.paused",
            "agent.resumed": [{ guard: "waitsNow", target: "waiting" }, { target: "working" }],
          },
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
        "agent.resumed": [
          { guard: and(["resumesTurn", "waitsNow"]), target: "busy.waiting" },
          { guard: "resumesTurn", target: "busy" },
          { target: "ready" },
        ],
        "turn.ended": { actions: "record" },
        "agent.shutdown": "shutdown",
      },
    },
    failed: {
      on: {
        "turn.started": { target: "busy", actions: ["dropLastTurn", "recordAndSpawnTurn"] },
        "agent.pausing": "paused",
        "agent.shutdown": "shutdown",
      },
    },
    shutdown: { on: { "agent.starting": "starting" } },
  },
});
