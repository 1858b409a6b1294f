import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type RuntimeMetrics, createRuntime } from "../../runtime/index.ts";
import type { CliContext } from "../cli-context.ts";
import { folderAt } from "../documents.ts";
import type { ExitCode } from "../failure.ts";
import { type AgentFile, loadAgentFile } from "../job/agent-file.ts";
import { teamOf } from "../job/ask-team.ts";
import { offlineSpeedOf } from "../job/offline-speed.ts";
import { newAskJob } from "../job/job.ts";
import { workUntilTold } from "../job/leaving.ts";
import { keptOpen, type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { formatDuration, formatNumberOf } from "../view/format.ts";
import { startEndpoint } from "../worker/endpoint.ts";
import { type QueuePlan, queueText, queuesOfDefinitions, workOfQueues } from "../worker/queue-plan.ts";
import { toldOf } from "../worker/worker-metrics.ts";

export interface WorkerOptions extends DefinitionOptions, StoreOptions {
  readonly queues?: QueuePlan | undefined;
  /** Maximum number of agents at work at the same time. */
  readonly concurrency?: number | undefined;
  readonly drainSeconds?: number | undefined;
  readonly metricsPort?: number | undefined;
  readonly metricsHost?: string | undefined;
}

export const usualConcurrency = 50;

/** Runs agents and tool jobs for all clients of the same stores until a signal ends it. */
export async function workerCommand(context: CliContext, options: WorkerOptions): Promise<ExitCode> {
  const { store, redis, prefix, concurrency = usualConcurrency, metricsPort, metricsHost } = options;
  const place = storeLocation(context, { store, redis, prefix });
  const { openQueues } = place;
  if (openQueues === undefined) {
    throw new InvalidInputError(
      "a worker needs the Redis or Postgres of its clients: give --redis URL or --store postgres://…, or set TROUPE_REDIS",
    );
  }
  if (metricsHost !== undefined && metricsPort === undefined) {
    throw new InvalidInputError("--metrics-host requires --metrics-port");
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
      // Readers of a server may connect shortly after their turn has started.
      streaming: "always",
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
    return await workUntilTold(context, {
      drainSeconds: options.drainSeconds,
      plan: (seconds) => `no new work; running work has ${seconds} s.`,
      atOnce: "other workers continue the running work.",
      late: "other workers continue it.",
      leave: async (timeoutMs) => {
        const from = performance.now();
        // The worker is no longer ready.
        told.leave();
        try {
          const before = await runtime.metrics().catch(() => null);
          const { left } = await runtime.drain({ timeoutMs });
          const metrics = await runtime.metrics().catch(() => before);
          return summaryLine(metrics, { left, tookMs: performance.now() - from });
        } finally {
          await endpoint?.close();
        }
      },
    });
  });
}

export interface DefinitionOptions {
  /** Agent file. */
  readonly agents?: string | undefined;
  /** File with MCP servers, whose tools the agents of the file get. */
  readonly mcp?: string | undefined;
  /** Works on questions of `ask` about one folder with one model. */
  readonly ask?: boolean | undefined;
  readonly files?: string | undefined;
  readonly model?: string | undefined;
  readonly maxReaders?: number | undefined;
}

/** The definitions of a worker: those of a file, the team of `ask`, or both. Throws `InvalidInputError` for neither. */
export async function definitionsOf(
  context: Pick<CliContext, "directory" | "environment" | "note">,
  { agents: file, mcp, ask, files, model, maxReaders }: DefinitionOptions,
): Promise<{ readonly agents: readonly AgentDefinition[]; readonly mayDecide: AgentFile["mayDecide"] }> {
  if (file === undefined && ask !== true) {
    throw new InvalidInputError("a worker needs agents: give --agents FILE, or --ask for questions of `ask`");
  }
  const strange =
    ask === true ? [] : Object.entries({ "--files": files, "--model": model, "--max-readers": maxReaders });
  const [misplaced] = strange.filter(([, value]) => value !== undefined);
  if (misplaced !== undefined) throw new InvalidInputError(`${misplaced[0]} requires --ask`);
  if (mcp !== undefined && file === undefined) throw new InvalidInputError("--mcp requires --agents");
  const { directory, environment } = context;
  const known = file === undefined ? undefined : await withMcpTools(context, await loadAgentFile(file, directory), mcp);
  const agents: AgentDefinition[] = [...(known?.agents ?? [])];
  if (ask === true) {
    const folder = files === undefined ? null : folderAt(files, directory);
    const job = newAskJob({ question: "", files: folder, model, maxReaders }, environment);
    agents.push(teamOf(job, { reach: "anywhere", tokensPerSecond: offlineSpeedOf(environment) }));
  }
  return { agents, mayDecide: known?.mayDecide };
}

export interface Readiness {
  /** Names of its definitions. */
  readonly names: readonly string[];
  readonly concurrency: number;
  readonly queuePlan: QueuePlan;
  /** Name to show to people. */
  readonly storeName: string;
  readonly metricsUrl: string | undefined;
}

/** The line about a worker's agents, queues and store. Printed when it is ready. */
export function readyLine({ names, concurrency, queuePlan, storeName, metricsUrl }: Readiness): string {
  const queues = Object.entries(queuePlan).map(queueText);
  return [
    `Worker ${process.pid} is ready on ${storeName}: ${names.join(", ")} (${formatNumberOf(concurrency, "agent")} at a time)`,
    queues.length === 0 ? "no queues of tools" : `queues ${queues.join(", ")}`,
    ...(metricsUrl === undefined ? [] : [`metrics at ${metricsUrl}/metrics`]),
  ].join("; ");
}

type Counted = Pick<RuntimeMetrics, "turnsEnded" | "parked" | "toolJobs" | "deaths">;

/** The line about a worker's finished work. `counted` is null if Redis did not respond. */
export function summaryLine(
  counted: Counted | null,
  { left, tookMs }: { readonly left: number; readonly tookMs: number },
): string {
  const rest = left === 0 ? "nothing was cut off" : `${left} cut off, which other workers continue`;
  return `Left after ${formatDuration(tookMs)}: ${[...(counted === null ? [] : [doneText(counted)]), rest].join("; ")}.`;
}

function doneText({ turnsEnded, parked, toolJobs, deaths }: Counted): string {
  return [
    `${formatNumberOf(turnsEnded, "turn")} ended`,
    `${parked} parked`,
    `${formatNumberOf(toolJobs, "tool job")} run`,
    ...(deaths === 0 ? [] : [`${formatNumberOf(deaths, "death")} of workers observed`]),
  ].join(", ");
}
