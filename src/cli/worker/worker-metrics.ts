import type { QueueCount } from "../../queues/index.ts";
import type { Runtime, RuntimeHealth, RuntimeMetrics } from "../../runtime/index.ts";
import type { Told } from "./endpoint.ts";

/** The state of a worker, in addition to its runtime's counts. */
interface WorkerState {
  /** Time when it became ready, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** False as soon as the worker starts to leave. */
  readonly isReady: boolean;
  /** Resident memory of the process in bytes. */
  readonly residentBytes: number;
  /** Result of the last health check. */
  readonly isHealthy: boolean | null;
  /** Round trip of the canary job in milliseconds; null if it did not return. */
  readonly canaryMs: number | null;
  readonly storesMs: number | null;
  readonly eventLoopDelayMs: number | null;
}

/** The metrics of `docs/deploy.md`. `counted` is null while Redis does not respond. */
function workerMetrics(counted: RuntimeMetrics | null, state: WorkerState): Metric[] {
  return [...stateMetrics(state), ...(counted === null ? [] : countedMetrics(counted))];
}

function stateMetrics(state: WorkerState): Metric[] {
  return [
    gauge("troupe_ready", "1 while the worker works, 0 while it leaves.", truth(state.isReady)),
    gauge("troupe_healthy", "1 while stores, queues and event loop work.", truth(state.isHealthy)),
    gauge("troupe_canary_seconds", "Round trip of an empty job through the queues.", seconds(state.canaryMs)),
    gauge("troupe_stores_seconds", "Response time of the stores.", seconds(state.storesMs)),
    gauge("troupe_event_loop_delay_seconds", "Delay of a timer.", seconds(state.eventLoopDelayMs)),
    gauge("process_resident_memory_bytes", "Memory of the process.", state.residentBytes),
    gauge("process_start_time_seconds", "Time when the worker became ready, since the epoch.", state.startedAt / 1_000),
  ];
}

function countedMetrics(metrics: RuntimeMetrics): Metric[] {
  return [
    gauge("troupe_live_agents", "Agents in the memory of this worker.", metrics.liveAgents),
    counter("troupe_turns_ended_total", "Turns that ended in this worker.", metrics.turnsEnded),
    counter("troupe_turns_parked_total", "Turns that left memory while they waited.", metrics.parked),
    counter("troupe_tool_jobs_total", "Tool jobs that ended in this worker, including failed ones.", metrics.toolJobs),
    counter("troupe_wakes_total", "Times that an agent was woken in this worker.", metrics.wakes),
    counter("troupe_unattended_total", "Agents with work and without a process.", metrics.unattended),
    counter("troupe_rolled_back_total", "Trees that had lost acknowledged writes.", metrics.rolledBack),
    counter("troupe_worker_deaths_total", "Jobs whose worker was found dead by this one.", metrics.deaths),
    {
      name: "troupe_queue_jobs",
      help: "Jobs of a queue, of all workers together.",
      type: "gauge",
      samples: metrics.queues.flatMap(jobsOf),
    },
    {
      name: "troupe_dead_letters",
      help: "Stored dead letters, of all workers together.",
      type: "gauge",
      samples: perQueue(metrics.queues, ({ dead }) => dead),
    },
    {
      name: "troupe_jobs_refused_total",
      help: "Jobs that this worker refused: without a valid signature, or not from troupe.",
      type: "counter",
      samples: perQueue(metrics.queues, ({ refused }) => refused),
    },
    gauge("troupe_heap_used_bytes", "Memory used by objects.", metrics.heapUsedBytes),
    gauge("troupe_heap_limit_bytes", "Limit of the memory used by objects.", metrics.heapLimitBytes),
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

/** A metric of Prometheus: one value, or several with different labels. */
interface Metric {
  /** Letters, digits and `_`; counters end with `_total`. */
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly samples: readonly MetricSample[];
}

interface MetricSample {
  readonly labels?: Readonly<Record<string, string>>;
  /** `null` for an unknown value; the sample is then omitted. */
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
  /** Marks the worker as not ready. */
  readonly leave: () => void;
}

/** Metrics, health and readiness of a worker. Each request checks its health; concurrent requests share a check. */
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
      // A scrape must also succeed while Redis is unavailable, and report it.
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
