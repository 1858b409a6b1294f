import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { FaultPointName } from "../../chaos/fault-point-names.ts";
import { runF23 } from "../../chaos/faults/f23.ts";
import { runFaults } from "../../chaos/faults/f2.ts";
import { failureOf } from "../../chaos/scenario.ts";
import { inFull, rows } from "../support/full.ts";

it("F2, a short form: runs of processes killed at a fault point are continued", {
  timeout: 180_000,
}, async () => {
  const points = rows<FaultPointName>(["tool.effect", "model.result", "commit.after"], ["tool.effect"]);
  const folder = mkdtempSync(join(tmpdir(), "troupe-f2-"));
  const options = { seed: 1, short: true, rounds: 1, folder, progress: () => undefined };
  const report = await runFaults("F2", options, points);
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  expect(report["deaths"]).toBeGreaterThanOrEqual(points.length);
  rmSync(folder, { recursive: true, force: true });
});

inFull(() => {
  it("F23, a short form: turns interrupted in 1 to 8 parallel calls leave each call one result", {
    timeout: 180_000,
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-f23-"));
    const report = await runF23({ seed: 1, short: true, rounds: 8, folder, progress: () => undefined });
    expect(report.firstViolations).toEqual([]);
    expect(failureOf(report)).toBeUndefined();
    expect(report["cutOff"]).toBeGreaterThanOrEqual(8);
    rmSync(folder, { recursive: true, force: true });
  });
});
