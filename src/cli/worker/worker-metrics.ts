import type { QueueCount } from "../../queues/index.ts";
import type { Runtime, RuntimeHealth, RuntimeMetrics } from "../../runtime/index.ts";
import type { Told } from "./endpoint.ts";

/** The state of a worker beside the counts of its runtime. */
interface WorkerState {
  /** When it became ready, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** False from the first moment of leaving. */
  readonly isReady: boolean;
  /** Bytes that the system has given to the process. */
  readonly residentBytes: number;
  /** By the last health check. */
  readonly isHealthy: boolean | null;
  /** Round trip of the canary job in milliseconds; null when it did not come back. */
  readonly canaryMs: number | null;
  readonly storesMs: number | null;
  readonly eventLoopDelayMs: number | null;
}

/** The metrics that `docs/deploy.md` explains. `counted` is null while Redis does not answer. */
function workerMetrics(counted: RuntimeMetrics | null, state: WorkerState): Metric[] {
  return [...stateMetrics(state), ...(counted === null ? [] : countedMetrics(counted))];
}

function stateMetrics(state: WorkerState): Metric[] {
  return [
    gauge("troupe_ready", "1 while the worker works, 0 while it leaves.", truth(state.isReady)),
    gauge("troupe_healthy", "1 when stores, queues and event loop do what they should.", truth(state.isHealthy)),
    gauge("troupe_canary_seconds", "Round trip of an empty job through the queues.", seconds(state.canaryMs)),
    gauge("troupe_stores_seconds", "How long the stores took to answer.", seconds(state.storesMs)),
    gauge("troupe_event_loop_delay_seconds", "How late a timer was.", seconds(state.eventLoopDelayMs)),
    gauge("process_resident_memory_bytes", "Memory of the process.", state.residentBytes),
    gauge("process_start_time_seconds", "When it was ready, since the epoch.", state.startedAt / 1_000),
  ];
}

function countedMetrics(metrics: RuntimeMetrics): Metric[] {
  return [
    gauge("troupe_live_agents", "Agents in the memory of this worker.", metrics.liveAgents),
    counter("troupe_turns_ended_total", "Turns that ended here.", metrics.turnsEnded),
    counter("troupe_turns_parked_total", "Turns that left memory while they waited.", metrics.parked),
    counter("troupe_tool_jobs_total", "Jobs of tools that ended here, failed ones included.", metrics.toolJobs),
    counter("troupe_wakes_total", "Times that an agent was woken here.", metrics.wakes),
    counter("troupe_unattended_total", "Agents with work that no process ran.", metrics.unattended),
    counter("troupe_rolled_back_total", "Trees that were found to have lost acknowledged writes.", metrics.rolledBack),
    counter("troupe_worker_deaths_total", "Jobs whose worker was found dead by this one.", metrics.deaths),
    {
      name: "troupe_queue_jobs",
      help: "Jobs of a queue, of all workers together.",
      type: "gauge",
      samples: metrics.queues.flatMap(jobsOf),
    },
    {
      name: "troupe_dead_letters",
      help: "Dead letters that are kept, of all workers together.",
      type: "gauge",
      samples: perQueue(metrics.queues, ({ dead }) => dead),
    },
    {
      name: "troupe_jobs_refused_total",
      help: "Jobs that this worker refused: not signed as they should be, or none of troupe's.",
      type: "counter",
      samples: perQueue(metrics.queues, ({ refused }) => refused),
    },
    gauge("troupe_heap_used_bytes", "Memory that objects take.", metrics.heapUsedBytes),
    gauge("troupe_heap_limit_bytes", "The most that they may take.", metrics.heapLimitBytes),
  ];
}

function jobsOf({ queue, waiting, active, delayed }: QueueCount): MetricSample[] {
  return Object.entries({ waiting, active, delayed }).map(([state, value]) => ({ labels: { queue, state }, value }));
}

function perQueue(queues: readonly QueueCount[], value: (count: QueueCount) => number): MetricSample[] {
  return queues.map((count) => ({ labels: { queue: count.queue }, value: value(count) }));
}

function gauge(name: string, help: string, value: number | null): Metric {
  return { name, help, type: "gauge", samples: [{ value }] };
}

function counter(name: string, help: string, value: number): Metric {
  return { name, help, type: "counter", samples: [{ value }] };
}

function truth(value: boolean | null): number | null {
  return value === null ? null : Number(value);
}

function seconds(milliseconds: number | null): number | null {
  return milliseconds === null ? null : milliseconds / 1_000;
}

/** A metric of Prometheus: one number, or several that differ in their labels. */
interface Metric {
  /** Letters, digits and `_`; counters end with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly MetricSample[];
}

interface MetricSample {
  readonly labels?: Readonly<Record<string, string>>;
  /** `null` if the value is unknown at the moment; the sample is then left out. */
  readonly value: number | null;
}

/** The text format of Prometheus, version 0.0.4. */
export function metricsText(metrics: readonly Metric[]): string {
  const lines = metrics.flatMap(({ name, help, type, samples }) => {
    const known = samples.flatMap((sample) => lineOf(name, sample));
    if (known.length === 0) return [];
    return [
      `# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
      `# TYPE ${name} ${type}`,
      ...known,
    ];
  });
  return `${lines.join("\n")}\n`;
}

function lineOf(name: string, { labels = {}, value }: MetricSample): string[] {
  if (value === null) return [];
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return [`${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}`];
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
}

/** Below the default scrape timeout of Prometheus, ten seconds. */
const healthMs = 4_000;

interface ToldOfWorker extends Told {
  /** Makes the worker not ready. */
  readonly leave: () => void;
}

/** Metrics, health and readiness of a worker. Each request checks its health anew; requests at the same time share a check. */
export function toldOf(runtime: Pick<Runtime, "health" | "metrics">, now: () => number = Date.now): ToldOfWorker {
  const startedAt = now();
  let isReady = true;
  let looking: Promise<RuntimeHealth> | undefined;
  const look = (): Promise<RuntimeHealth> => {
    looking ??= runtime.health({ timeoutMs: healthMs }).finally(() => {
      looking = undefined;
    });
    return looking;
  };
  return {
    leave() {
      isReady = false;
    },
    async metrics() {
      // A scrape must also work, and show it, while Redis is away.
      const [health, counted] = await Promise.all([look(), runtime.metrics().catch(() => null)]);
      const { isHealthy, queues, storesMs, eventLoopDelayMs } = health;
      const figures = { isHealthy, canaryMs: queues.roundTripMs, storesMs, eventLoopDelayMs };
      const residentBytes = process.memoryUsage.rss();
      return metricsText(workerMetrics(counted, { startedAt, isReady, residentBytes, ...figures }));
    },
    async health() {
      const { isHealthy, problems, storesMs, queues, eventLoopDelayMs } = await look();
      return { isGood: isHealthy, problems, details: { storesMs, canaryMs: queues.roundTripMs, eventLoopDelayMs } };
    },
    async readiness() {
      return { isGood: isReady, problems: isReady ? [] : ["the worker leaves"] };
    },
  };
}
