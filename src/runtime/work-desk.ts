import type { TroupeError } from "../errors/index.ts";
import type { JobOutcome, JobRun, WakeJob, WorkOptions } from "../queues/index.ts";
import type { Part } from "./roles.ts";
import { onDeadJob, runToolJob, type ToolJobPlace } from "./tool-jobs.ts";

export interface WorkDeskOptions {
  readonly part: Part;
  readonly place: ToolJobPlace;
  /** Takes an agent up and sees it through until it rests. */
  readonly wake: (job: WakeJob, run: JobRun) => Promise<JobOutcome>;
}

/** What this process does with jobs, by its part. Begins nothing where there is nothing to do. */
export async function beginWork({ part, place, wake }: WorkDeskOptions): Promise<void> {
  const { role, queues, isDistributed, agents, toolQueues } = part;
  const hasTools = Object.keys(toolQueues).length > 0;
  if (role === "client" || !(isDistributed || hasTools)) return;
  const work: WorkOptions = {
    wakes: isDistributed ? { concurrency: agents, run: wake } : undefined,
    tools: hasTools ? { queues: toolQueues, run: (job, run) => runToolJob(place, job, run) } : undefined,
    onDead: (job, cause) => onDeadJob(place, job, cause),
    onFault: warn,
  };
  await queues.work(work);
}

function warn(error: TroupeError): void {
  process.emitWarning(`queues: ${String(error)}`);
}
