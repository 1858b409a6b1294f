import { closeSync, mkdirSync, openSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds without a renewal after which a lock counts as left behind. */
const LOCK_MS = 30_000;
const RENEWAL_MS = 5_000;

/**
 * Fetches something into a folder of this machine. All processes of a test run call this at once: one of them does the work, the
 * others wait until `isDone`. Rejects with the error of the work. Two processes that take over the same stale lock may both work, so
 * the work must end with a rename.
 */
export async function onceAMachine(folder: string, isDone: () => boolean, work: () => Promise<void>): Promise<void> {
  if (isDone()) return;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (statSync(folder).uid !== process.getuid?.()) throw new Error(`${folder} belongs to another user`);
  const lock = join(folder, "lock");
  for (;;) {
    try {
      closeSync(openSync(lock, "wx"));
      break;
    } catch {
      const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > LOCK_MS) rmSync(lock, { force: true });
      await delay(100);
      if (isDone()) return;
    }
  }
  const renewal = setInterval(() => utimesSync(lock, new Date(), new Date()), RENEWAL_MS);
  try {
    if (!isDone()) await work();
  } finally {
    clearInterval(renewal);
    rmSync(lock, { force: true });
  }
}
