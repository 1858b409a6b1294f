import type { Runtime, RuntimeHealth } from "../../runtime/index.ts";
import type { Told } from "./endpoint.ts";
import { metricsText } from "./metrics-text.ts";
import { workerMetrics } from "./worker-metrics.ts";

/** Below the ten seconds after which Prometheus gives up a scrape by default. */
const healthMs = 4_000;

export interface ToldOfWorker extends Told {
  /** From now on it is not ready any more. */
  readonly leave: () => void;
}

/** What a worker tells of itself. Health is looked for anew at each question: what was well a minute ago proves nothing. */
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
      // That Redis is away is what a scrape is for, too.
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
