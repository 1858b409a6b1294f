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

/** Units for which more is better. */
export function isRate(unit: Unit): boolean {
  return rates.some((rate) => rate === unit);
}

/** Number of samples per side. Warm-up samples are checked like the others but not counted. */
export interface Plan {
  readonly warmUps: number;
  readonly rounds: number;
}

export interface Sample {
  /** In the study's unit. */
  readonly value: number;
  /** Processor milliseconds per unit of work, of this process or of the process that did the work. */
  readonly processorMs: number;
}

/** A side that is ready to work. */
export interface Station {
  /** Does the work once. Throws if the outcome is wrong, so that no side can be fast by skipping work. */
  sample(): Promise<Sample>;
  close(): Promise<void>;
}

/** An implementation of a study's work: bare or troupe. */
export interface Side {
  /** Name for messages, such as `bare` or `turn 1, memory`. */
  readonly name: string;
  prepare(server: ModelProcess): Promise<Station>;
}

/** One line of the result: `ratio = ours / bare`. A side in several pairs is measured once per round. */
export interface Pair {
  /** `memory`, `sqlite`, `redis`, or `none` where nothing is stored. */
  readonly stores: string;
  /** Distinguishes several measurements of one study. */
  readonly variant?: string;
  /** Default: the study's. */
  readonly unit?: Unit;
  /** Name of the side that replaces ours: another library, or `bare` against itself. */
  readonly contender?: string;
  /** The amount of work on each side, if the study varies it: the count that its title names. */
  readonly at?: { readonly ours: number; readonly bare: number };
  readonly ours: Side;
  readonly bare: Side;
}

/** A measurement: pairs of sides that do the same work in the same rounds. */
export interface Study {
  readonly name: string;
  /** For people, one line. */
  readonly title: string;
  readonly unit: Unit;
  plan(quick: boolean): Plan;
  /** Loads the sides, which may be expensive. */
  pairs(quick: boolean): Promise<readonly Pair[]>;
}

/** Compares the bare sides with themselves. The distance of their ratios from 1 is the noise of the machine. */
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

/** Wall-clock and processor time of some work, in milliseconds. */
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
