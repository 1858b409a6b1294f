import * as fc from "fast-check";
import { expect, it } from "vitest";
import { far } from "./under-way.ts";
import { randomCases } from "./full.ts";
import { RandomPlay } from "./random-play.ts";
import { turnPlan } from "./random-turns.ts";
import { emptyTally } from "./random-world.ts";
import { describeRuntimes, type VariantName, variantNames } from "./runtimes.ts";

/** The number of cases of all suites together; 10,000 is the full count. */
const allCases = randomCases(600, 100);
/** The seed of the first part; each other part has its own. Fixed, so that a run can be repeated. */
const firstSeed = Number(process.env["TROUPE_SEED"] ?? 20_261_121);
const seedsApart = 100_000;

/** The number of cases that run on the stores of one test. */
const casesOfPart = 50;

export interface LegalTurns {
  readonly variant: VariantName;
  /** The suite's share of all cases, up to 1. */
  readonly part: number;
}

/** The property over random programs: the model's prompts are legal, and every turn ends. */
export function describeLegalTurns(shares: readonly LegalTurns[]): void {
  for (const { variant, part } of shares) describeShare(variant, Math.ceil(allCases * part));
}

function describeShare(variant: VariantName, cases: number): void {
  const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => ({
    part,
    numRuns: Math.min(casesOfPart, cases - part * casesOfPart),
  }));
  const tally = emptyTally();
  describeRuntimes(
    "random turns",
    (stage) => {
      it.each(parts)("F23: every prompt is legal, part $part of $numRuns cases", async ({ part, numRuns }) => {
        const look = stage().look();
        let number = 0;
        const property = fc.asyncProperty(turnPlan, async (plan) => {
          const agentId = `root-${number}`;
          const through = number % 2 === 0 ? undefined : far;
          number += 1;
          expect(await new RandomPlay(stage(), look, plan, { agentId, tally, through }).play()).toEqual([]);
        });
        const seed = firstSeed + seedsApart * variantNames.indexOf(variant) + part;
        // When the time is over, a failing case is reported as far as it was shrunk. An incomplete run fails.
        const limits = { interruptAfterTimeLimit: 170_000, markInterruptAsFailure: true };
        await fc.assert(property, { numRuns, seed, ...limits });
      });

      it("the cases contained some work", () => {
        const { cases, modelCalls, rounds, widest, ended, outcomes } = tally;
        expect(modelCalls).toBeGreaterThan(2 * cases);
        expect(rounds).toBeGreaterThan(cases);
        expect(ended["completed"] ?? 0).toBeGreaterThan(cases / 2);
        expect(outcomes["success"] ?? 0).toBeGreaterThan(cases);
        expect(widest).toBeGreaterThan(5);
      });
    },
    [variant],
  );
}
