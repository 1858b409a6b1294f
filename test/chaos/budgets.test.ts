import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runBudgets } from "../../chaos/faults/budgets.ts";
import { failureOf } from "../../chaos/scenario.ts";

it("F14 and F16, a short form: calls that reserve, wait and settle in random order, on memory and on SQLite", {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-budgets-"));
  const report = await runBudgets({ seed: 1, short: true, rounds: 100, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  expect(report).toMatchObject({ plans: 220, reservedAtRest: 0 });
  expect(report["waits"]).toBeGreaterThan(200);
  expect(report["refusals"]).toBeGreaterThan(200);
  rmSync(folder, { recursive: true, force: true });
});
