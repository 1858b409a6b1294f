import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runBudgets } from "../../chaos/faults/budgets.ts";
import { failureOf } from "../../chaos/scenario.ts";
import { amount } from "../support/full.ts";

it("F14 and F16, a short form: calls that reserve, wait and settle in random order, on memory and on SQLite", {
  timeout: 120_000,
}, async () => {
  const rounds = amount(100, 20);
  const folder = mkdtempSync(join(tmpdir(), "troupe-budgets-"));
  const report = await runBudgets({ seed: 1, short: true, rounds, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  expect(report).toMatchObject({ plans: 2 * (rounds + rounds / 10), reservedAtRest: 0 });
  expect(report["waits"]).toBeGreaterThan(2 * rounds);
  expect(report["refusals"]).toBeGreaterThan(2 * rounds);
  rmSync(folder, { recursive: true, force: true });
});
