import type { Budget, HookName } from "../../src/index.ts";
import type { FaultPointName } from "../fault-point-names.ts";

/*
 * Programs (F35): the actions of agents, the actions of others on them, and the deaths of their processes. A program is
 * plain data: it can be drawn from a seed, played anywhere, shrunk, and printed as a test.
 */

/** Tools of each effect class, in the turn's process and on a queue, and tools that wait for people. */
export const toolNames = [
  "look",
  "charge",
  "send",
  "book",
  "look_queued",
  "charge_queued",
  "send_queued",
  "approve",
  "ask_user",
  "subagent_wait",
] as const;
export type ToolName = (typeof toolNames)[number];

/** Behaviours of a tool's code. */
export const deeds = ["succeed", "nap", "fail", "refuse", "stop", "generate", "artifact", "spawn"] as const;
export type Deed = (typeof deeds)[number];

/** Kinds of subagents: the call waits for them, with different limits or one at a time; or they run in the background. */
export const childKinds = ["helper", "thrifty", "curbed", "single", "scout", "errand"] as const;
export type ChildKind = (typeof childKinds)[number];

export type PlannedCall =
  | { readonly tool: ToolName; readonly does: Deed }
  | { readonly child: ChildKind; readonly rounds: readonly PlannedRound[] };
/** The calls of one answer. */
export type PlannedRound = readonly PlannedCall[];

export interface PlannedTurn {
  readonly rounds: readonly PlannedRound[];
  /** When the turn is sent: after the previous one has ended, or at once, to be queued or to supersede it. */
  readonly sent: "after" | "queue" | "supersede";
  readonly budget: Budget | null;
}

export const actNames = ["abort", "abortTurn", "pause", "pauseNow", "restart", "steer"] as const;
/** A user's action on the root agent at the `at`-th touch of the program's code (a model call, tool or hook). */
export interface PlannedAct {
  readonly at: number;
  readonly does: (typeof actNames)[number];
}

export interface PlannedHook {
  readonly hook: HookName;
  readonly step: number;
  readonly does: "nothing" | "add" | "deny" | "generate" | "stop" | "throw";
}

/** The process dies when it passes the point for the `hit`-th time. The process that continues may die too. */
export interface PlannedDeath {
  readonly point: FaultPointName;
  readonly hit: number;
}

export interface Program {
  readonly turns: readonly PlannedTurn[];
  /** Lifetime limits of the root agent. */
  readonly life: Budget | null;
  readonly acts: readonly PlannedAct[];
  /** If empty, the agents have no hooks. */
  readonly hooks: readonly PlannedHook[];
  /** Whether a client follows the tree's events from beginning to end. */
  readonly isWatched: boolean;
  /** Whether the finished agent is shut down, started again, and compared with its earlier state. */
  readonly isReopened: boolean;
  /** Used only if a program is played alone. Processes that run many programs die at any moment. */
  readonly deaths: readonly PlannedDeath[];
}

export function budgetsOf({ turns, life }: Program): Budget[] {
  return [life, ...turns.map((turn) => turn.budget)].filter((one) => one !== null);
}

/** The tool calls of the root agent and its descendants. */
export function callsOf({ turns }: Program): Extract<PlannedCall, { tool: unknown }>[] {
  const inRounds = (rounds: readonly PlannedRound[]): Extract<PlannedCall, { tool: unknown }>[] =>
    rounds.flat().flatMap((call) => ("tool" in call ? [call] : inRounds(call.rounds)));
  return turns.flatMap(({ rounds }) => inRounds(rounds));
}
