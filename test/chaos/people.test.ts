import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { f20 } from "../../chaos/faults/f20.ts";
import { f21 } from "../../chaos/faults/f21.ts";
import { f22 } from "../../chaos/faults/f22.ts";
import { type ChaosReport, type ChaosScenario, failureOf } from "../../chaos/scenario.ts";

async function shortFormOf(scenario: ChaosScenario, rounds?: number): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), `troupe-${scenario.name}-`));
  const report = await scenario.run({ seed: 1, short: true, rounds, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
  return report;
}

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
