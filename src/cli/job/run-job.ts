import { createRuntime } from "../../runtime/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import type { ExitCode } from "../exit-codes.ts";
import { createReporter, type ViewOptions } from "../view/create-reporter.ts";
import { followJob } from "./follow-job.ts";
import { startInspection } from "./inspection.ts";
import type { Job, JobOptions } from "./job.ts";
import { keptOpen } from "./store-place.ts";
import { whereOf } from "./where.ts";

/** Runs or carries on one job, shows it, and gives the exit code. The stores stay open. */
export async function runJob(context: CliContext, stores: Stores, job: Job, options: JobOptions): Promise<ExitCode> {
  const where = await whereOf(context, job, options);
  const inspector = options.inspect === true ? await startInspection(context.note) : undefined;
  const runtime = await createRuntime({
    agents: job.agents,
    stores: keptOpen(stores),
    mayDecide: job.mayDecide,
    // Costs are in the tables, and `show` tells them later of what runs now.
    showCosts: true,
    onInspect: inspector?.onInspect,
    ...where.part,
  });
  inspector?.watch(runtime);
  const accounts = () => runtime.accounts(job.rootAgentId);
  const reporter = createReporter(context, options, { rootAgentId: job.rootAgentId, accounts });
  const following = { runtime, job, reporter, where };
  const restore = (): void => reporter.close();
  // Nothing else runs any more when a process crashes or is made to leave.
  process.once("exit", restore);
  // The runtime's own timers let a process end; somebody waits for this job.
  const alive = setInterval(() => {}, 60_000);
  try {
    return await followJob(context, { ...following, isInteractive: isInteractive(context, options) });
  } finally {
    clearInterval(alive);
    reporter.close();
    process.off("exit", restore);
    await runtime.shutdown();
    await inspector?.close();
  }
}

/** Whether a person sits at both ends of this process and wants to see more than an answer. */
export function isInteractive(
  { stdin, stdout }: Pick<CliContext, "stdin" | "stdout">,
  { json, quiet }: ViewOptions,
): boolean {
  return stdin.isTTY && stdout.isTTY && json !== true && quiet !== true;
}
