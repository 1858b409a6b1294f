import { expect, it } from "vitest";
import { f20 } from "../../chaos/faults/f20.ts";
import { f21 } from "../../chaos/faults/f21.ts";
import { f22 } from "../../chaos/faults/f22.ts";
import { shortFormOf } from "../support/chaos-forms.ts";

it("F20, a short form: of 2 to 8 people who decide at once one wins, through either of two clients of one file", {
  timeout: 180_000,
}, async () => {
  const report = await shortFormOf(f20);
  expect(report.operations).toBe(150);
  expect(report["wonBy"]).toEqual({ mine: expect.toSatisfy(isSome), theirs: expect.toSatisfy(isSome) });
});

it("F21, a short form: processes killed between approval and run", { timeout: 180_000 }, async () => {
  const report = await shortFormOf(f21, 6);
  expect(report["deathsInBetween"]).toBeGreaterThanOrEqual(6);
});

it("F22, a short form: two approvals of one turn in both orders, with every verdict, and a kill in each turn", {
  timeout: 180_000,
}, async () => {
  const report = await shortFormOf(f22);
  expect(report["deaths"]).toBeGreaterThanOrEqual(18);
});

function isSome(count: number): boolean {
  return count > 20;
}
