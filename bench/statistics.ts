/** The quantile of the values for a share, with linear interpolation. Throws for an empty list. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const position = (sorted.length - 1) * share;
  const lower = sorted[Math.floor(position)];
  const upper = sorted[Math.ceil(position)];
  if (lower === undefined || upper === undefined) throw new Error("No values, so no quantile.");
  return lower + (upper - lower) * (position - Math.floor(position));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/**
 * The interval that contains the median of the distribution with a probability of about 95 %, for any distribution (ranks,
 * by the binomial distribution). Few values give a wide interval; fewer than six give their full range.
 */
export function medianInterval(values: readonly number[]): { readonly low: number; readonly high: number } {
  const reach = 1.96 / (2 * Math.sqrt(values.length));
  return { low: quantile(values, Math.max(0, 0.5 - reach)), high: quantile(values, Math.min(1, 0.5 + reach)) };
}
