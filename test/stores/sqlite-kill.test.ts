import { dirname } from "node:path";
import { expect, test } from "vitest";
import { f31 } from "../../chaos/faults/f31.ts";
import { amount } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

test("writers killed mid-write, two at a time, next to one that stays, and a full disk lose no acknowledged write (F31)", async () => {
  const rounds = amount(3, 1);
  const folder = dirname(temporaryFile());
  const report = await f31.run({ seed: 31, short: true, rounds, folder, progress: () => {} });
  expect(report.firstViolations).toEqual([]);
  // The process that stays while others come and go is killed too.
  expect(report).toMatchObject({ name: "F31", violations: 0, killed: 2 * rounds + 1 });
  expect(report["visits"]).toBeGreaterThan(0);
  expect(report.succeeded).toBe(report.operations);
  expect(report.operations).toBeGreaterThan(amount(50, 10));
}, 120_000);
