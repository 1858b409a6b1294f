import { setTimeout as delay } from "node:timers/promises";
import type { QueueCount, QueueHealth, Queues } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";

const DEFAULT_HEALTH_MS = 5_000;
/** If the event loop is blocked for longer than this, in milliseconds, the process counts as unhealthy. */
const LONGEST_DELAY_MS = 1_000;

export interface HealthOptions {
  /** Time limit for each check, in whole milliseconds; a check without an answer counts as failed. Default 5,000. */
  readonly timeoutMs?: number | undefined;
}

/** The result of `runtime.health()`. */
export interface RuntimeHealth {
  /** Whether no problem was found. */
  readonly isHealthy: boolean;
  /** Descriptions of the problems; empty if there are none. */
  readonly problems: readonly string[];
  /** How long the stores took to answer, in milliseconds; `null` if they did not. */
  readonly storesMs: number | null;
  /** Result of the canary job that was sent through the queues. */
  readonly queues: QueueHealth;
  /**
   * Agents whose turn cannot continue because their stored records are unreadable, with the reason and the time at which this
   * process noticed it. They do not make the process unhealthy, because no other process could continue them either.
   */
  readonly damaged: readonly { readonly agentId: string; readonly message: string; readonly since: number }[];
  /**
   * Schedules that are due for more than a minute because this process does not have their definition, and no other process has opened their
   * turns. They do not make the process unhealthy: what is missing is a process with the definition.
   */
  readonly overdueSchedules: readonly { readonly key: string; readonly definition: string; readonly dueAt: number }[];
  /** How late an immediately due timer fired, in milliseconds. */
  readonly eventLoopDelayMs: number;
}

/** Counters since the runtime was created, and current values. */
export interface RuntimeMetrics {
  /** Agents that are currently in the memory of this process. */
  readonly liveAgents: number;
  /** Turns that were passivated while they waited. */
  readonly parked: number;
  /** Turns that ended in this process. */
  readonly turnsEnded: number;
  /** Jobs of tools that ended in this process, with any outcome. */
  readonly toolJobs: number;
  /** Wakes that ended in this process. */
  readonly wakes: number;
  /** Agents that were found without a process running them. */
  readonly unattended: number;
  /** How many times this process found a tree that had lost acknowledged writes. */
  readonly rolledBack: number;
  /** Jobs whose worker this process found dead. */
  readonly deaths: number;
  /** Dead letters kept in the queues below. */
  readonly deadLetters: number;
  /** The queues that this process has used. */
  readonly queues: readonly QueueCount[];
  /** Bytes in use. */
  readonly heapUsedBytes: number;
  /** Maximum heap size of this process, in bytes. */
  readonly heapLimitBytes: number;
}

/** The components of a runtime that are checked. */
export interface WatchedRuntime {
  readonly stores: Pick<Stores, "nextTimerAt">;
  readonly queues: Pick<Queues, "health" | "counts">;
  readonly isOpen: boolean;
  readonly outage: { readonly problems: readonly string[] };
  readonly damage: { readonly damaged: RuntimeHealth["damaged"] };
  readonly live: { all(): readonly unknown[]; readonly passivation: { readonly parkedCount: number } };
  readonly counted: Pick<RuntimeMetrics, "turnsEnded" | "toolJobs" | "wakes" | "unattended" | "rolledBack">;
}

/** Never throws: each failure becomes a problem. */
export async function healthOf(
  core: WatchedRuntime,
  overdueSchedules: RuntimeHealth["overdueSchedules"],
  options: HealthOptions = {},
): Promise<RuntimeHealth> {
  const { timeoutMs = DEFAULT_HEALTH_MS } = options;
  const [storesMs, queues, eventLoopDelayMs] = await Promise.all([
    storesAnswer(core, timeoutMs),
    core.queues.health({ timeoutMs }).catch((error: unknown) => failed(error)),
    eventLoopDelay(),
  ]);
  const problems = [
    ...(typeof storesMs === "string" ? [storesMs] : []),
    ...core.outage.problems,
    ...queues.problems.map((problem) => `queues: ${problem}`),
    ...(eventLoopDelayMs > LONGEST_DELAY_MS ? [`the event loop is delayed by ${eventLoopDelayMs} ms`] : []),
    ...(core.isOpen ? [] : ["the runtime is shutting down"]),
  ];
  const answered = typeof storesMs === "number" ? storesMs : null;
  const { damaged } = core.damage;
  const isHealthy = problems.length === 0;
  return { isHealthy, problems, storesMs: answered, queues, damaged, overdueSchedules, eventLoopDelayMs };
}

/** How long the stores took in milliseconds, or the reason why they did not answer. */
async function storesAnswer(core: WatchedRuntime, timeoutMs: number): Promise<number | string> {
  const from = performance.now();
  const over = new AbortController();
  const silence = `the stores did not answer within ${timeoutMs} ms`;
  const late = delay(timeoutMs, silence, { signal: over.signal });
  const asked = core.stores.nextTimerAt().then(
    () => Math.round(performance.now() - from),
    (error: unknown) => `the stores do not answer: ${String(error)}`,
  );
  try {
    return await Promise.race([asked, late]);
  } finally {
    over.abort();
  }
}

function failed(error: unknown): QueueHealth {
  return { isHealthy: false, roundTripMs: null, problems: [String(error)] };
}

async function eventLoopDelay(): Promise<number> {
  const from = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  return Math.round(performance.now() - from);
}

export async function metricsOf(core: WatchedRuntime): Promise<RuntimeMetrics> {
  const queues = await core.queues.counts();
  const heap = process.getBuiltinModule("node:v8").getHeapStatistics();
  return {
    liveAgents: core.live.all().length,
    parked: core.live.passivation.parkedCount,
    ...core.counted,
    deaths: queues.reduce((sum, { deaths }) => sum + deaths, 0),
    deadLetters: queues.reduce((sum, { dead }) => sum + dead, 0),
    queues,
    heapUsedBytes: heap.used_heap_size,
    heapLimitBytes: heap.heap_size_limit,
  };
}
