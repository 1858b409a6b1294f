import { collectDefinitions } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { createRuntime, type Runtime } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { keptOpen, type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { type DefinitionOptions, definitionsOf } from "../worker/definitions.ts";
import { type Endpoint, startEndpoint } from "../worker/endpoint.ts";
import { watchLeaving } from "../worker/leaving.ts";
import { type QueuePlan, queuesOfDefinitions, workOfQueues } from "../worker/queue-plan.ts";
import { readyLine, summaryLine } from "../worker/worker-lines.ts";
import { toldOf } from "../worker/worker-told.ts";

export interface WorkerOptions extends DefinitionOptions, Omit<StoreOptions, "store"> {
  readonly queues?: QueuePlan | undefined;
  /** Agents that are at work at a time. */
  readonly concurrency?: number | undefined;
  readonly drainSeconds?: number | undefined;
  readonly metricsPort?: number | undefined;
  readonly metricsHost?: string | undefined;
}

/** Below the 30 seconds that Kubernetes and others wait before they kill. */
export const usualDrainSeconds = 25;
export const usualConcurrency = 50;

/** For what comes after the drain, the end of the process above all, in milliseconds; a fifth of the time where that is less. */
const mostPartingMs = 1_000;

/** Works on agents and on the queues of tools, for any client of the same Redis, until it is told to leave. */
export async function workerCommand(context: CliContext, options: WorkerOptions): Promise<ExitCode> {
  const { redis, prefix, concurrency = usualConcurrency, metricsPort, metricsHost } = options;
  const place = storePlace(context, { redis, prefix });
  const { openQueues } = place;
  if (openQueues === undefined) {
    throw new InvalidInputError(
      "a worker and those that it works for meet in Redis: give --redis URL, or set TROUPE_REDIS",
    );
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
  /** From now on it is not ready for work any more. */
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
        note("Left at once; what was at work is carried on by others.");
        process.exit(exitCode);
      },
    },
    () => performance.now(),
  );
  // Nothing that waits for work keeps a process alive.
  const alive = setInterval(() => {}, 60_000);
  const signal = await told.promise;
  const from = performance.now();
  const seconds = drainMs / 1_000;
  out(`Leaving on ${signal}: nothing new is begun; what is at work has ${seconds} s. A second signal leaves at once.`);
  work.leave();
  const late = setTimeout(() => {
    note(`Left after ${seconds} s, before all was at rest; what was at work is carried on by others.`);
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
    // Should something keep the process alive all the same, it ends in time.
    late.unref();
  }
}
