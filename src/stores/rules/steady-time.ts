import type { ProcessIdentity } from "./outcomes.ts";
import { kernelOf } from "./process-identity.ts";
import type { ProcessRow } from "./tables.ts";

/**
 * What makes steady time of a new process' `elapsed()`. Processes of one boot share their offset, so that they agree at
 * every moment, whatever became of the clock between their starts. The first of a boot begins with the clock as it is set,
 * but never before a time that was noted already: steady time does not go back over a restart.
 */
export function clockOffsetFor(
  known: readonly ProcessRow[],
  { bootId }: ProcessIdentity,
  now: number,
  elapsed: number,
): number {
  const latest = known.reduce((last, { heartbeatAt }) => Math.max(last, heartbeatAt), 0);
  const ofBoot = known.filter((row) => kernelOf(row.bootId) === kernelOf(bootId));
  const shared = ofBoot.find(({ clockOffset }) => isSameClock(ofBoot, clockOffset, elapsed))?.clockOffset;
  return shared ?? Math.max(now, latest) - elapsed;
}

/** A clock by which a process of this boot gave its sign in the future is another one: an injected clock, say. */
function isSameClock(rows: readonly ProcessRow[], clockOffset: number, elapsed: number): boolean {
  return rows.every((row) => row.clockOffset !== clockOffset || row.heartbeatAt <= elapsed + clockOffset);
}
