import * as fc from "fast-check";
import type { Budget } from "../../src/index.ts";
import { hookNames } from "../../src/state/index.ts";
import { type FaultPointName, faultPointNames } from "../fault-point-names.ts";

/*
 * Random programs (F35): what agents are to do, what others do to them meanwhile, and where their processes die. A program is
 * plain data: it is drawn from a seed, played anywhere, made smaller, and printed as a test.
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
export const deeds = ["succeed", "nap", "fail", "refuse", "generate", "artifact", "spawn"] as const;
export type Deed = (typeof deeds)[number];

/** How a subagent is had: its call waits, with limits of its own, one at a time; or it goes on in the background. */
export const childKinds = ["helper", "thrifty", "single", "scout", "errand"] as const;
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
/** What somebody does to the root agent when the program's code is touched for the `at`-th time: a model call, a tool, a hook. */
export interface PlannedAct {
  readonly at: number;
  readonly does: (typeof actNames)[number];
}

export interface PlannedHook {
  readonly hook: (typeof hookNames)[number];
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
  /** Used where a program is played by itself; processes that run many die at any moment. */
  readonly deaths: readonly PlannedDeath[];
}

const often = <Value>(weight: number, arbitrary: fc.Arbitrary<Value>) => ({ weight, arbitrary });

const simple: fc.Arbitrary<PlannedCall> = fc.record({
  tool: fc.constantFrom(...toolNames),
  does: fc.oneof(often(4, fc.constant<Deed>("succeed")), often(3, fc.constantFrom(...deeds))),
});
const roundsOf = (call: fc.Arbitrary<PlannedCall>, rounds: number, calls: number): fc.Arbitrary<PlannedRound[]> =>
  fc.array(fc.array(call, { minLength: 1, maxLength: calls }), { minLength: 1, maxLength: rounds });
const childOf = (rounds: fc.Arbitrary<PlannedRound[]>): fc.Arbitrary<PlannedCall> =>
  fc.record({ child: fc.constantFrom(...childKinds), rounds });
const inHand = fc.oneof(often(5, simple), often(1, childOf(roundsOf(simple, 1, 2))));
const inLead = fc.oneof(often(3, simple), often(2, childOf(roundsOf(inHand, 2, 2))));

/** Limits that bind at some place or other: every kind of them. */
const budgets: readonly Budget[] = [
  { maxSteps: 1 },
  { maxSteps: 2 },
  { maxToolCalls: 2 },
  { maxTokens: 6_000 },
  { maxTokens: 12_000, finalAnswer: true },
  { maxCost: 0.012 },
  { maxSeconds: 0.2 },
  { maxTreeSteps: 3 },
  { maxTreeSteps: 4, finalAnswer: true },
  { maxTreeToolCalls: 3 },
];
const budget = (share: number): fc.Arbitrary<Budget | null> =>
  fc.oneof(often(share, fc.constant(null)), often(1, fc.constantFrom(...budgets)));

const act: fc.Arbitrary<PlannedAct> = fc.record({
  at: fc.integer({ min: 1, max: 14 }),
  does: fc.constantFrom(...actNames),
});
const hook: fc.Arbitrary<PlannedHook> = fc.record({
  hook: fc.constantFrom(...hookNames),
  step: fc.integer({ min: 1, max: 3 }),
  does: fc.constantFrom("nothing", "add", "add", "deny", "generate", "stop", "throw"),
});
const death: fc.Arbitrary<PlannedDeath> = fc.record({
  point: fc.constantFrom(...faultPointNames),
  hit: fc.integer({ min: 1, max: 12 }),
});
const rarely = <Item>(share: number, item: fc.Arbitrary<Item>, maxLength: number): fc.Arbitrary<Item[]> =>
  fc.oneof(often(share, fc.constant<Item[]>([])), often(1, fc.array(item, { minLength: 1, maxLength })));

const program: fc.Arbitrary<Program> = fc.record({
  turns: fc.array(
    fc.record({
      rounds: roundsOf(inLead, 2, 3),
      sent: fc.constantFrom("after", "after", "queue", "queue", "supersede"),
      budget: budget(3),
    }),
    { minLength: 1, maxLength: 2 },
  ),
  life: budget(6),
  acts: rarely(1, act, 2),
  hooks: rarely(2, hook, 3),
  deaths: rarely(1, death, 2),
});

/** The same programs for the same seed; a longer list begins as a shorter one. */
export function drawPrograms(seed: number, count: number): Program[] {
  return fc.sample(program, { seed, numRuns: count });
}

export function budgetsOf({ turns, life }: Program): Budget[] {
  return [life, ...turns.map((turn) => turn.budget)].filter((one) => one !== null);
}

/** Every call of a program, those of its subagents included. */
export function callsIn(rounds: readonly PlannedRound[]): PlannedCall[] {
  return rounds.flat().flatMap((call) => ("child" in call ? [call, ...callsIn(call.rounds)] : [call]));
}
