import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { type ChaosReport, type ChaosScenario, failureOf } from "../../chaos/scenario.ts";

/** Runs a chaos scenario in its short form, which must pass; its folder is kept if it fails. */
export async function shortFormOf(scenario: ChaosScenario, rounds?: number): Promise<ChaosReport> {
  const folder = mkdtempSync(join(tmpdir(), `troupe-${scenario.name}-`));
  const report = await scenario.run({ seed: 1, short: true, rounds, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
  return report;
}
