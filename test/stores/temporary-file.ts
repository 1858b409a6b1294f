import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A path in a temporary folder, which is removed after the test. */
export function temporaryFile(name = "troupe.db"): string {
  const folder = mkdtempSync(join(tmpdir(), "troupe-stores-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}
