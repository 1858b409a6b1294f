import type { ModelProcess } from "./model-process.ts";

const rates = ["turns/s", "requests/s"] as const;
export type Unit =
  | (typeof rates)[number]
  | "ms/turn"
  | "ms/minute"
  | "ms"
  | "µs"
  | "ms/child"
  | "KB/agent"
  | "KB/stream"
  | "MB"
  | "bytes/turn"
  | "per step";

/** Of all other units less is better. */
export function isRate(unit: Unit): boolean {
  return rates.some((rate) => rate === unit);
}

/** How often each side does its work. Warm-up samples are checked like the others and not counted. */
export interface Plan {
  readonly warmUps: number;
  readonly rounds: number;
}

export interface Sample {
  /** In the study's unit. */
  readonly value: number;
  /** Processor time of this process, or of the one the work was done in, per unit of work, in milliseconds. */
  readonly processorMs: number;
}

/** A side that is ready to work. */
export interface Station {
  /** Does the work once. Throws if the outcome is not the expected one, so that no side gets faster by leaving work out. */
  sample(): Promise<Sample>;
  close(): Promise<void>;
}

/** One who does the work of a study: a bare way of doing it, or ours. */
export interface Side {
  /** For messages, for instance `bare` or `turn 1, memory`. */
  readonly name: string;
  prepare(server: ModelProcess): Promise<Station>;
}

/** One line of the result: `ratio = ours / bare`. Sides that stand in several pairs are measured once a round. */
export interface Pair {
  /** `memory`, `sqlite`, `redis`, or `none` where nothing is stored. */
  readonly stores: string;
  /** Tells apart what a study measures in several ways. */
  readonly variant?: string;
  /** Default: the study's. */
  readonly unit?: Unit;
  /** Name of the side that replaces ours, if another does: another library, or `bare` against itself. */
  readonly contender?: string;
  /** How much work there is on either side, where that is what is varied: the count that the study's title names. */
  readonly at?: { readonly ours: number; readonly bare: number };
  readonly ours: Side;
  readonly bare: Side;
}

/** Something that is measured: pairs of sides that do the same work in the same rounds. */
export interface Study {
  readonly name: string;
  /** For people, one line. */
  readonly title: string;
  readonly unit: Unit;
  plan(quick: boolean): Plan;
  /** Loads what takes part, which may be heavy. */
  pairs(quick: boolean): Promise<readonly Pair[]>;
}

/** The bare sides against themselves: as far as their ratios are from 1, so noisy is this machine. */
export function againstThemselves(pairs: readonly Pair[]): readonly Pair[] {
  const seen = new Set<Side>();
  const alike: Pair[] = [];
  for (const { bare, ...pair } of pairs) {
    if (seen.has(bare)) continue;
    seen.add(bare);
    const again: Side = { name: `${bare.name}, again`, prepare: (server) => bare.prepare(server) };
    alike.push({ ...pair, stores: "none", ours: again, bare });
  }
  return alike;
}

/** Wall and processor time of some work, in milliseconds. */
export async function timed<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly result: T; readonly elapsedMs: number; readonly processorMs: number }> {
  const processor = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const elapsedMs = performance.now() - start;
  const { user, system } = process.cpuUsage(processor);
  return { result, elapsedMs, processorMs: (user + system) / 1000 };
}
