import type { QueueCount } from "../../queues/index.ts";
import type { RuntimeMetrics } from "../../runtime/index.ts";
import type { Metric, MetricSample } from "./metrics-text.ts";

/** What is known of a worker beside what its runtime counts. */
export interface WorkerState {
  /** From when it has been ready, in milliseconds since the epoch. */
  readonly startedAt: number;
  /** False from the first moment of leaving. */
  readonly isReady: boolean;
  /** Bytes that the system has given to the process. */
  readonly residentBytes: number;
  /** As the last look at `/healthz` found, or the look that the scrape has made. */
  readonly isHealthy: boolean | null;
  /** How long the canary took, in milliseconds; null when it did not come back. */
  readonly canaryMs: number | null;
  readonly storesMs: number | null;
  readonly eventLoopDelayMs: number | null;
}

/** What a worker tells, by the names that `docs/deploy.md` explains. `counted` is null while Redis does not answer. */
export function workerMetrics(counted: RuntimeMetrics | null, state: WorkerState): Metric[] {
  return [...stateMetrics(state), ...(counted === null ? [] : countedMetrics(counted))];
}

function stateMetrics(state: WorkerState): Metric[] {
  return [
    gauge("troupe_ready", "1 while the worker works, 0 while it leaves.", truth(state.isReady)),
    gauge("troupe_healthy", "1 when stores, queues and event loop do what they should.", truth(state.isHealthy)),
    gauge("troupe_canary_seconds", "How long a job of no content took through the queues.", seconds(state.canaryMs)),
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
    counter("troupe_tool_jobs_total", "Jobs of tools that ended here, whatever came of them.", metrics.toolJobs),
    counter("troupe_wakes_total", "Times that an agent was taken up here.", metrics.wakes),
    counter("troupe_unattended_total", "Agents that were found with nobody attending to them.", metrics.unattended),
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
