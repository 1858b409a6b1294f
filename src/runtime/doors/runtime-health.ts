import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { getHeapStatistics } from "node:v8";
import type { QueueCount, QueueHealth, Queues } from "../../queues/index.ts";
import type { Stores } from "../../stores/index.ts";

const DEFAULT_HEALTH_MS = 5_000;
/** An event loop that is held up longer than this answers nobody in time, in milliseconds. */
const LONGEST_DELAY_MS = 1_000;

export interface HealthOptions {
  /** After which what has not answered counts as failed, in whole milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
}

export interface RuntimeHealth {
  readonly isHealthy: boolean;
  /** What is wrong, in words; empty when all is well. */
  readonly problems: readonly string[];
  /** How long the stores took to answer, in milliseconds; null when they did not. */
  readonly storesMs: number | null;
  /** The canary that went through the queues. */
  readonly queues: QueueHealth;
  /**
   * Agents whose turn cannot go on, because something that is stored of them cannot be read: which, why, and since when it is
   * known here. They make no process unhealthy: another process could not carry them on either.
   */
  readonly damaged: readonly { readonly agentId: string; readonly message: string; readonly since: number }[];
  /** How late a timer was that was due at once, in milliseconds. */
  readonly eventLoopDelayMs: number;
}

/** What is counted since the runtime was created, and how things stand now. */
export interface RuntimeMetrics {
  /** Agents in the memory of this process now. */
  readonly liveAgents: number;
  /** Turns that left memory while they waited. */
  readonly parked: number;
  /** Turns that ended here. */
  readonly turnsEnded: number;
  /** Jobs of tools that ended here, whatever came of them. */
  readonly toolJobs: number;
  /** Wakes that ended here. */
  readonly wakes: number;
  /** Agents that were found with nobody attending to them. */
  readonly unattended: number;
  /** How often a tree was found here of which the stores have lost writes that they had acknowledged. */
  readonly rolledBack: number;
  /** Jobs whose worker was found dead by this process. */
  readonly deaths: number;
  /** Dead letters that are kept in the queues below. */
  readonly deadLetters: number;
  /** The queues that this process has used. */
  readonly queues: readonly QueueCount[];
  /** Bytes in use, and the most that may be. */
  readonly heapUsedBytes: number;
  readonly heapLimitBytes: number;
}

/** What is looked at. */
export interface WatchedRuntime {
  readonly stores: Pick<Stores, "nextTimerAt">;
  readonly queues: Pick<Queues, "health" | "counts">;
  readonly isOpen: boolean;
  readonly outage: { readonly problems: readonly string[] };
  readonly damage: { readonly damaged: RuntimeHealth["damaged"] };
  readonly live: { all(): readonly unknown[]; readonly passivation: { readonly parkedCount: number } };
  readonly work: {
    readonly counted: Pick<RuntimeMetrics, "turnsEnded" | "toolJobs" | "wakes" | "unattended" | "rolledBack">;
  };
}

/** Never throws: what fails is a problem. */
export async function healthOf(core: WatchedRuntime, options: HealthOptions = {}): Promise<RuntimeHealth> {
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
    ...(eventLoopDelayMs > LONGEST_DELAY_MS ? [`the event loop is held up by ${eventLoopDelayMs} ms`] : []),
    ...(core.isOpen ? [] : ["the runtime is leaving"]),
  ];
  const answered = typeof storesMs === "number" ? storesMs : null;
  const { damaged } = core.damage;
  return { isHealthy: problems.length === 0, problems, storesMs: answered, queues, damaged, eventLoopDelayMs };
}

/** How long the stores took, or why they did not answer, in words. */
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
  const heap = getHeapStatistics();
  return {
    liveAgents: core.live.all().length,
    parked: core.live.passivation.parkedCount,
    ...core.work.counted,
    deaths: queues.reduce((sum, { deaths }) => sum + deaths, 0),
    deadLetters: queues.reduce((sum, { dead }) => sum + dead, 0),
    queues,
    heapUsedBytes: heap.used_heap_size,
    heapLimitBytes: heap.heap_size_limit,
  };
}
