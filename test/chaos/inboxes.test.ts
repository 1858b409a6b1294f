import { expect, it } from "vitest";
import { runInboxes } from "../../chaos/faults/f13.ts";
import { failureOf } from "../../chaos/scenario.ts";
import { amount } from "../support/full.ts";

it("F13, a short form: inboxes that are read twice, late, repeatedly and in another order", {
  timeout: 120_000,
}, async () => {
  const rounds = amount(40, 10);
  const report = await runInboxes({ seed: 1, short: true, rounds, folder: "", progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  for (const name of ["dropped", "doubled", "late", "reordered"]) expect(report[name]).toBeGreaterThan(amount(40, 5));
});
