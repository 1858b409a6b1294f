import * as fc from "fast-check";
import type { Budget } from "../../src/index.ts";
import { hookNames } from "../../src/state/index.ts";
import { faultPointNames } from "../fault-point-names.ts";
import {
  actNames,
  childKinds,
  type Deed,
  deeds,
  type PlannedAct,
  type PlannedCall,
  type PlannedDeath,
  type PlannedHook,
  type PlannedRound,
  type Program,
  toolNames,
} from "./program.ts";

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
const inLead = fc.oneof(often(2, simple), often(1, childOf(roundsOf(inHand, 2, 2))));

/** All kinds of limits, small enough to be reached. */
const budgets: readonly Budget[] = [
  { maxSteps: 1 },
  { maxSteps: 2 },
  { maxToolCalls: 2 },
  { maxToolCalls: 4 },
  { maxTokens: 6_000 },
  { maxTokens: 12_000, finalAnswer: true },
  { maxCost: 0.012 },
  { maxSeconds: 0.2 },
  { maxTreeSteps: 3 },
  { maxTreeSteps: 4, finalAnswer: true },
  { maxTreeToolCalls: 3 },
  { maxTreeToolCalls: 5 },
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

export const anyProgram: fc.Arbitrary<Program> = fc.record({
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
  isWatched: fc.boolean(),
  isReopened: fc.boolean(),
  deaths: rarely(1, death, 2),
});

/** Draws the same programs for the same seed. A longer list begins with the shorter one. */
export function drawPrograms(seed: number, count: number): Program[] {
  return fc.sample(anyProgram, { seed, numRuns: count });
}
