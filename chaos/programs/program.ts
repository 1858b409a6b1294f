import type { Budget, HookName } from "../../src/index.ts";
import type { FaultPointName } from "../fault-point-names.ts";

/*
 * Programs (F35): what agents are to do, what others do to them meanwhile, and where their processes die. A program is plain
 * data: it is drawn from a seed, played anywhere, made smaller, and printed as a test.
 */

/** Tools of each effect class, in the process of the turn and on a queue, and those that wait for people. */
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

/** What the code of a tool does. */
export const deeds = ["succeed", "nap", "fail", "refuse", "stop", "generate", "artifact", "spawn"] as const;
export type Deed = (typeof deeds)[number];

/** How a subagent is had: its call waits, with limits of its own, one at a time; or it goes on in the background. */
export const childKinds = ["helper", "thrifty", "curbed", "single", "scout", "errand"] as const;
export type ChildKind = (typeof childKinds)[number];

export type PlannedCall =
  | { readonly tool: ToolName; readonly does: Deed }
  | { readonly child: ChildKind; readonly rounds: readonly PlannedRound[] };
/** The calls of one answer. */
export type PlannedRound = readonly PlannedCall[];

export interface PlannedTurn {
  readonly rounds: readonly PlannedRound[];
  /** When it is sent: after the one before has ended, or at once, to wait in line or to take its place. */
  readonly sent: "after" | "queue" | "supersede";
  readonly budget: Budget | null;
}

export const actNames = ["abort", "abortTurn", "pause", "pauseNow", "restart"] as const;
/** What a user does to the root agent when the program's code is touched for the `at`-th time: a model call, a tool, a hook. */
export interface PlannedAct {
  readonly at: number;
  readonly does: (typeof actNames)[number];
}

export interface PlannedHook {
  readonly hook: HookName;
  readonly step: number;
  readonly does: "nothing" | "add" | "deny" | "generate" | "stop" | "throw";
}

/** The process dies when it passes the point for so many times; the one that carries on may die too. */
export interface PlannedDeath {
  readonly point: FaultPointName;
  readonly hit: number;
}

export interface Program {
  readonly turns: readonly PlannedTurn[];
  /** Of the root agent's life. */
  readonly life: Budget | null;
  readonly acts: readonly PlannedAct[];
  /** None: the agents have no hooks at all. */
  readonly hooks: readonly PlannedHook[];
  /** A client follows the tree's events from its beginning to its end. */
  readonly isWatched: boolean;
  /** When all is done the agent is shut down and started again, and is compared with what it was. */
  readonly isReopened: boolean;
  /** Used where a program is played by itself; processes that run many die at any moment. */
  readonly deaths: readonly PlannedDeath[];
}

export function budgetsOf({ turns, life }: Program): Budget[] {
  return [life, ...turns.map((turn) => turn.budget)].filter((one) => one !== null);
}

/** The calls of tools in it, of the root agent and of all below it. */
export function callsOf({ turns }: Program): Extract<PlannedCall, { tool: unknown }>[] {
  const inRounds = (rounds: readonly PlannedRound[]): Extract<PlannedCall, { tool: unknown }>[] =>
    rounds.flat().flatMap((call) => ("tool" in call ? [call] : inRounds(call.rounds)));
  return turns.flatMap(({ rounds }) => inRounds(rounds));
}
