export interface Summary {
  readonly count: number;
  readonly median: number | null;
  readonly p95: number | null;
  readonly max: number | null;
}

/** Summarizes values, such as milliseconds, rounded to whole numbers. */
export function summaryOf(values: readonly number[]): Summary {
  const sorted = values.map(Math.round).sort((left, right) => left - right);
  const at = (share: number): number | null =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
  return { count: sorted.length, median: at(0.5), p95: at(0.95), max: sorted.at(-1) ?? null };
}
