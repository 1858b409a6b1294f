import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set<string>();
// Ctrl-C during a round ends the process without closing anything.
process.once("exit", () => folders.forEach(clear));

function clear(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** A folder that is deleted when this process ends, at the latest. `remove` may be called again. */
export function temporaryFolder(): { readonly folder: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
  folders.add(folder);
  const remove = (): void => {
    folders.delete(folder);
    clear(folder);
  };
  return { folder, remove };
}
