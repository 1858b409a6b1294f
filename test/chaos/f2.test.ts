import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runFaults } from "../../chaos/faults/f2.ts";
import { failureOf } from "../../chaos/scenario.ts";

it("F2, a short form: processes killed after an effect, a result and a commit are carried on", {
  timeout: 180_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-f2-"));
  const options = { seed: 1, short: true, rounds: 1, folder, progress: () => undefined };
  const report = await runFaults("F2", options, ["tool.effect", "model.result", "commit.after"]);
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  expect(report["deaths"]).toBeGreaterThanOrEqual(3);
  rmSync(folder, { recursive: true, force: true });
});
