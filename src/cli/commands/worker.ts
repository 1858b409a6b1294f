import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { askTeam, folderAt } from "../../demo/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type RuntimeMetrics, createRuntime, type Runtime } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type AgentFile, loadAgentFile } from "../job/agent-file.ts";
import { watchLeaving } from "../job/interrupts.ts";
import { newAskJob } from "../job/job.ts";
import { keptOpen, type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { formatDuration, formatNumberOf } from "../view/format.ts";
import { type Endpoint, startEndpoint } from "../worker/endpoint.ts";
import { type QueuePlan, queueText, queuesOfDefinitions, workOfQueues } from "../worker/queue-plan.ts";
import { toldOf } from "../worker/worker-metrics.ts";

export interface WorkerOptions extends DefinitionOptions, Omit<StoreOptions, "store"> {
  readonly queues?: QueuePlan | undefined;
  /** Most agents at work at the same time. */
  readonly concurrency?: number | undefined;
  readonly drainSeconds?: number | undefined;
  readonly metricsPort?: number | undefined;
  readonly metricsHost?: string | undefined;
}

/** Below the 30 seconds after which Kubernetes and others kill. */
export const usualDrainSeconds = 25;
export const usualConcurrency = 50;

/** Time kept for the end of the process after the drain, in milliseconds; a fifth of all time if that is less. */
const mostPartingMs = 1_000;

/** Works on agents and tool queues for any client of the same Redis until a signal ends it. */
export async function workerCommand(context: CliContext, options: WorkerOptions): Promise<ExitCode> {
  const { redis, prefix, concurrency = usualConcurrency, metricsPort, metricsHost } = options;
  const place = storePlace(context, { redis, prefix });
  const { openQueues } = place;
  if (openQueues === undefined) {
    throw new InvalidInputError("a worker needs the Redis of its clients: give --redis URL, or set TROUPE_REDIS");
  }
  if (metricsHost !== undefined && metricsPort === undefined) {
    throw new InvalidInputError("--metrics-host says where --metrics-port is; give that too");
  }
  const { agents, mayDecide } = await definitionsOf(context, options);
  const definitions = collectDefinitions(agents);
  const queuePlan = workOfQueues(options.queues, queuesOfDefinitions(definitions.values()));
  return await withStore(place, "open", async (stores) => {
    const runtime = await createRuntime({
      agents,
      stores: keptOpen(stores),
      queues: await openQueues(),
      role: "worker",
      work: { agents: concurrency, queues: queuePlan },
      mayDecide,
      showCosts: true,
    });
    const told = toldOf(runtime);
    const endpoint =
      metricsPort === undefined
        ? undefined
        : await startEndpoint(told, { port: metricsPort, host: metricsHost }).catch(async (error: unknown) => {
            await runtime.shutdown();
            throw error;
          });
    const names = [...definitions.keys()];
    context.out(readyLine({ names, concurrency, queuePlan, storeName: place.name, metricsUrl: endpoint?.url }));
    const drainMs = (options.drainSeconds ?? usualDrainSeconds) * 1_000;
    return await workUntilTold(context, { runtime, endpoint, drainMs, leave: told.leave });
  });
}

interface AtWork {
  readonly runtime: Runtime;
  readonly endpoint: Endpoint | undefined;
  readonly drainMs: number;
  /** Makes the worker not ready. */
  readonly leave: () => void;
}

async function workUntilTold({ out, note }: CliContext, work: AtWork): Promise<ExitCode> {
  const { runtime, endpoint, drainMs } = work;
  const told = Promise.withResolvers<NodeJS.Signals>();
  const stopWatching = watchLeaving(
    process,
    {
      leave: told.resolve,
      leaveAtOnce(exitCode) {
        note("Left at once; other workers carry on what was at work.");
        process.exit(exitCode);
      },
    },
    () => performance.now(),
  );
  // Waiting for work does not keep the process alive by itself.
  const alive = setInterval(() => {}, 60_000);
  const signal = await told.promise;
  const from = performance.now();
  const seconds = drainMs / 1_000;
  out(`Leaving on ${signal}: no new work; what is at work has ${seconds} s. A second signal leaves at once.`);
  work.leave();
  const late = setTimeout(() => {
    note(`Left after ${seconds} s, before all work had stopped; other workers carry it on.`);
    process.exit(exitCodes.success);
  }, drainMs);
  try {
    const before = await runtime.metrics().catch(() => null);
    const partingMs = Math.min(mostPartingMs, drainMs / 5);
    const { left } = await runtime.drain({ timeoutMs: Math.round(drainMs - partingMs) });
    const metrics = await runtime.metrics().catch(() => before);
    out(summaryLine(metrics, { left, tookMs: performance.now() - from }));
    return exitCodes.success;
  } finally {
    await endpoint?.close();
    clearInterval(alive);
    stopWatching();
    // If something else keeps the process alive, this timer still ends it.
    late.unref();
  }
}

export interface DefinitionOptions {
  /** Agent file. */
  readonly agents?: string | undefined;
  /** Works on questions of `ask` about one folder with one model. */
  readonly ask?: boolean | undefined;
  readonly files?: string | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

/** The definitions that a worker knows: those of a file, the team of `ask`, or both. Throws `InvalidInputError` for neither. */
export async function definitionsOf(
  { directory, environment }: Pick<CliContext, "directory" | "environment">,
  { agents: file, ask, files, model, maxReaders }: DefinitionOptions,
): Promise<{ readonly agents: readonly AgentDefinition[]; readonly mayDecide: AgentFile["mayDecide"] }> {
  if (file === undefined && ask !== true) {
    throw new InvalidInputError("a worker has to know agents: give --agents FILE, or --ask for questions of `ask`");
  }
  const strange =
    ask === true ? [] : Object.entries({ "--files": files, "--model": model, "--max-readers": maxReaders });
  const [misplaced] = strange.filter(([, value]) => value !== undefined);
  if (misplaced !== undefined)
    throw new InvalidInputError(`${misplaced[0]} is for --ask; give that too, or leave it out`);
  const known = file === undefined ? undefined : await loadAgentFile(file, directory);
  const agents: AgentDefinition[] = [...(known?.agents ?? [])];
  if (ask === true) {
    const folder = files === undefined ? null : folderAt(files, directory);
    const job = newAskJob({ question: "", files: folder, model, maxReaders }, environment);
    agents.push(askTeam(job, environment, "anywhere"));
  }
  return { agents, mayDecide: known?.mayDecide };
}

export interface Readiness {
  /** Definitions that it knows. */
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly queuePlan: QueuePlan;
  /** Name to show to people. */
  readonly storeName: string;
  readonly metricsUrl: string | undefined;
}

/** The line that says what a worker works on and where. Printed when it is ready. */
export function readyLine({ names, concurrency, queuePlan, storeName, metricsUrl }: Readiness): string {
  const queues = Object.entries(queuePlan).map(queueText);
  return [
    `Worker ${process.pid} is ready on ${storeName}: ${names.join(", ")} (${formatNumberOf(concurrency, "agent")} at a time)`,
    queues.length === 0 ? "no queues of tools" : `queues ${queues.join(", ")}`,
    ...(metricsUrl === undefined ? [] : [`metrics at ${metricsUrl}/metrics`]),
  ].join("; ");
}

type Counted = Pick<RuntimeMetrics, "turnsEnded" | "parked" | "toolJobs" | "deaths">;

/** The line that says what a worker has done. `counted` is null if Redis did not answer. */
export function summaryLine(
  counted: Counted | null,
  { left, tookMs }: { readonly left: number; readonly tookMs: number },
): string {
  const rest = left === 0 ? "nothing was cut off" : `${left} cut off, which others carry on`;
  return `Left after ${formatDuration(tookMs)}: ${[...(counted === null ? [] : [doneText(counted)]), rest].join("; ")}.`;
}

function doneText({ turnsEnded, parked, toolJobs, deaths }: Counted): string {
  return [
    `${formatNumberOf(turnsEnded, "turn")} ended`,
    `${parked} parked`,
    `${formatNumberOf(toolJobs, "tool job")} run`,
    ...(deaths === 0 ? [] : [`${formatNumberOf(deaths, "death")} of workers seen`]),
  ].join(", ");
}
