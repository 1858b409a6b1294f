import { statSync } from "node:fs";

/** Changes when a file is written, replaced, created or removed, and not when only its permissions change. */
export function fingerprintOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "absent" : `${stats.ino}:${stats.mtimeMs}:${stats.size}`;
}
