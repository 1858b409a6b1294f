import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { job } from "../../chaos/faults/job.ts";
import { failureOf } from "../../chaos/scenario.ts";

it("JOB, a short form: the main job, killed at a random time, is resumed", { timeout: 180_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-job-"));
  const report = await job.run({ seed: 1, short: true, rounds: 1, folder, progress: () => undefined });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
});
