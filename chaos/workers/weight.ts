import { setTimeout as delay } from "node:timers/promises";
import type { Stores } from "../../src/index.ts";

/** Memory of a worker after garbage collection. */
export interface Weight {
  readonly pid: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly liveAgents: number;
}

/** Heap after garbage collection. */
export interface Heap {
  readonly medianMegabytes: number;
  readonly mostMegabytes: number;
}

/**
 * The memory of one waiting agent: workers that have it loaded, compared with workers that do not. Both run the work that
 * the agent waits for, so the difference is the agent's memory, within the noise of garbage and caches.
 */
export interface AgentWeight {
  /** Number of measurements, and in how many of them a worker had the agent. */
  readonly weighed: number;
  readonly held: number;
  /** Heap of workers with the agent; `null` if there was none. */
  readonly holder: Heap | null;
  /** Heap of the other workers. */
  readonly others: Heap | null;
  /** Difference of the medians; negative if the holder had less than the others. `null` if one is unknown. */
  readonly differenceMegabytes: number | null;
  /** Largest resident memory of the holder. */
  readonly holderMostRssMegabytes: number | null;
}

const EVERY_MS = 1_000;

/** Measures all workers every second until `isOver`. */
export async function weighAgent(
  { pool, stores }: { readonly pool: { weigh(): Promise<Weight[]> }; readonly stores: Stores },
  agentId: string,
  isOver: AbortSignal,
): Promise<AgentWeight> {
  const holders: Weight[] = [];
  const others: Weight[] = [];
  let [weighed, held] = [0, 0];
  for (;;) {
    await delay(EVERY_MS, undefined, { signal: isOver }).catch(() => undefined);
    if (isOver.aborted) break;
    const holder = await stores.holder({ tenant: "default", agentId });
    const weights = await pool.weigh();
    weighed += 1;
    if (holder) held += 1;
    for (const weight of weights) (weight.pid === holder?.process.pid ? holders : others).push(weight);
  }
  const [holder, other] = [heapOf(holders), heapOf(others)];
  return {
    weighed,
    held,
    holder,
    others: other,
    differenceMegabytes: holder && other && rounded(holder.medianMegabytes - other.medianMegabytes),
    holderMostRssMegabytes: holder && Math.max(...holders.map(({ rssBytes }) => megabytes(rssBytes))),
  };
}

function heapOf(weights: readonly Weight[]): Heap | null {
  const sorted = weights.map(({ heapBytes }) => megabytes(heapBytes)).sort((left, right) => left - right);
  const [median, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  return median === undefined || most === undefined ? null : { medianMegabytes: median, mostMegabytes: most };
}

function megabytes(bytes: number): number {
  return rounded(bytes / 1_000_000);
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}
