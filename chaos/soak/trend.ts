/** One sample of a process after a number of turns. */
export interface Sample {
  readonly turns: number;
  /** Heap after a full garbage collection. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Number of open sockets, timers and files, by kind. */
  readonly handles: Readonly<Record<string, number>>;
}

/** Share of samples that count as warm-up, while caches fill and code is compiled. */
const WARM_UP = 0.3;
const MEGABYTE = 1_000_000;

/**
 * Growth of a process in megabytes per 1,000 turns, from the first half after the warm-up to the second. Fixed-size caches
 * fill and are emptied, so memory is a sawtooth. Real growth raises both its minima and its maxima, so the smaller of both
 * increases is used. `null` with fewer than four samples.
 */
export function slopeOf(samples: readonly Sample[], of: (sample: Sample) => number): number | null {
  const settled = settledOf(samples);
  if (settled.length < 4) return null;
  const half = Math.floor(settled.length / 2);
  const [before, after] = [settled.slice(0, half), settled.slice(half)];
  const turns = mean(after.map((sample) => sample.turns)) - mean(before.map((sample) => sample.turns));
  const growth = (end: (...values: number[]) => number): number => end(...after.map(of)) - end(...before.map(of));
  const slope = Math.min(growth(Math.min), growth(Math.max)) / MEGABYTE / (turns / 1_000);
  return Math.round(slope * 1_000) / 1_000;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function settledOf(samples: readonly Sample[]): readonly Sample[] {
  return samples.slice(Math.floor(samples.length * WARM_UP));
}

/** Kinds of handles that are more numerous in each later sample than in any earlier one. */
export function growingHandles(samples: readonly Sample[]): string[] {
  const settled = settledOf(samples);
  const half = Math.floor(settled.length / 2);
  if (half < 2) return [];
  const kinds = new Set(settled.flatMap(({ handles }) => Object.keys(handles)));
  const countsOf = (part: readonly Sample[], kind: string): number[] => part.map(({ handles }) => handles[kind] ?? 0);
  return [...kinds].flatMap((kind) => {
    const before = Math.max(...countsOf(settled.slice(0, half), kind));
    const after = Math.min(...countsOf(settled.slice(half), kind));
    return after > before ? [`${kind}: from at most ${before} to at least ${after}`] : [];
  });
}
