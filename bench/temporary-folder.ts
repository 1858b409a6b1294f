import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folders = new Set<string>();
// Ctrl-C in the middle of a round ends the process without closing anything.
process.once("exit", () => folders.forEach(clear));

function clear(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** A folder that is gone at the latest when this process ends. `remove` may be called again. */
export function temporaryFolder(): { readonly folder: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "troupe-bench-"));
  folders.add(folder);
  const remove = (): void => {
    folders.delete(folder);
    clear(folder);
  };
  return { folder, remove };
}
