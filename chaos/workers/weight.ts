import { setTimeout as delay } from "node:timers/promises";
import type { Stores } from "../../src/index.ts";
import type { WorkerPool } from "./pool.ts";

/** What a worker weighs after a collection of garbage. */
export interface Weight {
  readonly pid: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly liveAgents: number;
}

/** What one agent takes while it waits: workers that have it in memory, beside those that do not. */
export interface AgentWeight {
  /** How often all workers were weighed, and in how many of these times one of them had the agent. */
  readonly weighed: number;
  readonly held: number;
  /** Of heap, of whoever had it: the median and the most. */
  readonly holderMegabytes: readonly number[];
  /** The same of the others, which work on all that it waits for too. */
  readonly otherMegabytes: readonly number[];
  /** Resident memory of whoever had it, the most. */
  readonly holderRssMegabytes: number;
}

const EVERY_MS = 2_000;

/** Weighs all workers every other second until `isOver`. */
export async function weighAgent(
  { pool, stores }: { readonly pool: WorkerPool; readonly stores: Stores },
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
  const heapOf = (weights: readonly Weight[]): number[] => {
    const sorted = weights.map(({ heapBytes }) => megabytes(heapBytes)).sort((left, right) => left - right);
    return [sorted[Math.floor(sorted.length / 2)] ?? 0, sorted.at(-1) ?? 0];
  };
  return {
    weighed,
    held,
    holderMegabytes: heapOf(holders),
    otherMegabytes: heapOf(others),
    holderRssMegabytes: Math.max(0, ...holders.map(({ rssBytes }) => megabytes(rssBytes))),
  };
}

function megabytes(bytes: number): number {
  return Math.round(bytes / 100_000) / 10;
}
