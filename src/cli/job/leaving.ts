import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { timingOf, watchLeaving } from "./interrupts.ts";

/** Below the 30 seconds after which Kubernetes and others kill. */
export const usualDrainSeconds = 25;

/** Time reserved for ending the process, in milliseconds; at most a fifth of the total. */
const mostPartingMs = 1_000;

interface Leaving {
  /** Another reason to leave than a signal; resolves with its name. */
  readonly until?: Promise<string> | undefined;
  /** Total time to leave. */
  readonly drainSeconds: number | undefined;
  /** Printed at the first signal, after "Leaving on SIGTERM: ". */
  readonly plan: (seconds: number) => string;
  /** Printed after "Left at once; ". */
  readonly atOnce: string;
  /** Printed on timeout, after "before all work had stopped; ". */
  readonly late: string;
  /** Stops all work within this many milliseconds; returns the last line. */
  readonly leave: (ms: number) => Promise<string>;
}

/** Works until a signal or another reason to leave, then leaves within its time; leaves at once at a second signal. */
export async function workUntilTold(context: CliContext, leaving: Leaving): Promise<ExitCode> {
  const { out, note } = context;
  const { until, drainSeconds = usualDrainSeconds, plan, atOnce, late, leave } = leaving;
  const told = Promise.withResolvers<string>();
  void until?.then(told.resolve);
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
  // Waiting for work alone would not keep the process alive.
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
    // Unref'd, so that it ends the process only if something else keeps it alive.
    end.unref();
  }
}
