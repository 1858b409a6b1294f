import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runAborts } from "../../chaos/faults/f18.ts";
import { failureOf } from "../../chaos/scenario.ts";

it("F18, a short form: a tree spread over three processes is aborted by a fourth", {
  timeout: 180_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-f18-"));
  const options = { seed: 1, short: true, rounds: 2, folder, progress: () => undefined };
  const report = await runAborts(options, { width: 3, depth: 2 });
  expect(report.firstViolations).toEqual([]);
  expect(failureOf(report)).toBeUndefined();
  rmSync(folder, { recursive: true, force: true });
});
