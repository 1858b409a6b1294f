import { setTimeout as delay } from "node:timers/promises";
import type { Stores } from "../../src/index.ts";

/** What a worker weighs after a collection of garbage. */
export interface Weight {
  readonly pid: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly liveAgents: number;
}

/** Of heap, after a collection of garbage. */
export interface Heap {
  readonly medianMegabytes: number;
  readonly mostMegabytes: number;
}

/**
 * What one agent takes while it waits: workers that have it in memory, beside those that do not. Both work on what it waits
 * for, so that only the difference is its own, as far as it is more than their garbage and caches make.
 */
export interface AgentWeight {
  /** How often all workers were weighed, and in how many of these times one of them had the agent. */
  readonly weighed: number;
  readonly held: number;
  /** Of workers that had it; `null` if none was seen to. */
  readonly holder: Heap | null;
  /** Of the others. */
  readonly others: Heap | null;
  /** Between the medians: below 0 if the holder had less than the others. `null` if one of them is not known. */
  readonly differenceMegabytes: number | null;
  /** Resident memory of the holder, the most. */
  readonly holderMostRssMegabytes: number | null;
}

const EVERY_MS = 1_000;

/** Weighs all workers every second until `isOver`. */
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
