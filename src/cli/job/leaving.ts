import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { timingOf, watchLeaving } from "./interrupts.ts";

/** Below the 30 seconds after which Kubernetes and others kill. */
export const usualDrainSeconds = 25;

/** Time kept for the end of the process, in milliseconds; a fifth of all time if that is less. */
const mostPartingMs = 1_000;

interface Leaving {
  /** All time to leave. */
  readonly drainSeconds: number | undefined;
  /** Said on the first signal, after "Leaving on SIGTERM: ". */
  readonly plan: (seconds: number) => string;
  /** Said after "Left at once; ". */
  readonly atOnce: string;
  /** Said when the time is over, after "before all work had stopped; ". */
  readonly late: string;
  /** Brings all work to rest within so many milliseconds; returns the last line. */
  readonly leave: (ms: number) => Promise<string>;
}

/** Works until a signal, then leaves within its time; a second signal leaves at once. */
export async function workUntilTold(context: CliContext, leaving: Leaving): Promise<ExitCode> {
  const { out, note } = context;
  const { drainSeconds = usualDrainSeconds, plan, atOnce, late, leave } = leaving;
  const told = Promise.withResolvers<NodeJS.Signals>();
  const stopWatching = watchLeaving(
    process,
    {
      leave: told.resolve,
      leaveAtOnce(exitCode) {
        note(`Left at once; ${atOnce}`);
        process.exit(exitCode);
      },
    },
    timingOf(context),
  );
  // Waiting for work does not keep the process alive by itself.
  const alive = setInterval(() => {}, 60_000);
  const signal = await told.promise;
  out(`Leaving on ${signal}: ${plan(drainSeconds)} A second signal leaves at once.`);
  const drainMs = drainSeconds * 1_000;
  const end = setTimeout(() => {
    note(`Left after ${drainSeconds} s, before all work had stopped; ${late}`);
    process.exit(exitCodes.success);
  }, drainMs);
  try {
    out(await leave(Math.round(drainMs - Math.min(mostPartingMs, drainMs / 5))));
    return exitCodes.success;
  } finally {
    clearInterval(alive);
    stopWatching();
    // If something else keeps the process alive, this timer still ends it.
    end.unref();
  }
}
