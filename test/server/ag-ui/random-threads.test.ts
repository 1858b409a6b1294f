// The official client checks the order of events. Over random programs it reports no fault and ends with the stored messages.
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { randomCases } from "../../support/full.ts";
import { emptyTally } from "../../support/random-world.ts";
import { RandomThread, threadPlan } from "./random-thread.ts";

const cases = randomCases(1_000, 24);
const casesOfPart = 25;
const firstSeed = Number(process.env["TROUPE_SEED"] ?? 20_261_123);
const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => ({
  part,
  numRuns: Math.min(casesOfPart, cases - part * casesOfPart),
}));

const tally = emptyTally();
const warnings: unknown[] = [];

beforeEach(() => {
  // The client logs dropped and unexpected messages there, and each refusal as an error.
  vi.spyOn(console, "warn").mockImplementation((...said: unknown[]) => void warnings.push(said));
  vi.spyOn(console, "error").mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
});

it.each(parts)("part $part of $numRuns programs", async ({ part, numRuns }) => {
  const property = fc.asyncProperty(threadPlan, async (plan) => {
    expect(await new RandomThread(structuredClone(plan), tally).play()).toEqual([]);
  });
  const limits = { interruptAfterTimeLimit: 150_000, markInterruptAsFailure: true };
  await fc.assert(property, { numRuns, seed: firstSeed + part, ...limits });
  expect(warnings).toEqual([]);
});

it("the cases contained some work", () => {
  const { acted, outcomes } = tally;
  for (const outcome of ["success", "interrupt", "error"]) expect(outcomes[outcome] ?? 0).toBeGreaterThan(cases / 8);
  expect(acted["compared"] ?? 0).toBeGreaterThan(2 * cases);
  expect(acted["went on"] ?? 0).toBeGreaterThan(cases / 4);
  expect(acted["twice"] ?? 0).toBeGreaterThan(cases / 4);
});
