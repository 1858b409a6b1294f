/** A quantile of recorded values. */
export interface Quantile {
  /** The recorded value below which this share of the values lies. */
  readonly value: number;
  /**
   * The quantile of all such runs is at most this value, with 95 % confidence: itself one of the recorded values. `null` if there are too
   * few for such a bound: it takes 5 for p50, 29 for p90 and 299 for p99.
   */
  readonly upTo: number | null;
}

/** The distribution of one figure over recorded runs. */
export interface Distribution {
  /** How many values there are. */
  readonly runs: number;
  /** The smallest value. */
  readonly min: number;
  /** Half of the values are at most this. */
  readonly p50: Quantile;
  /** `null` with fewer than 10 values. */
  readonly p90: Quantile | null;
  /** `null` with fewer than 100 values. */
  readonly p99: Quantile | null;
  /** The largest value. */
  readonly max: number;
}

/** A share of runs, with its confidence interval. */
export interface Share {
  /** How many runs count. */
  readonly runs: number;
  /** Of how many. */
  readonly of: number;
  /** `runs / of`; `null` without runs. */
  readonly share: number | null;
  /** Lower end of the interval of 95 % confidence (Wilson's): 0 to 1. */
  readonly from: number;
  /** Its upper end. */
  readonly to: number;
}

/** `undefined` without values. */
export function distributionOf(values: readonly number[]): Distribution | undefined {
  const sorted = values.toSorted((one, other) => one - other);
  const [min] = sorted;
  const max = sorted.at(-1);
  if (min === undefined || max === undefined) return undefined;
  const quantile = (part: number): Quantile => ({
    value: sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? max,
    upTo: upperBound(sorted, part),
  });
  return {
    runs: sorted.length,
    min,
    p50: quantile(0.5),
    p90: sorted.length < 10 ? null : quantile(0.9),
    p99: sorted.length < 100 ? null : quantile(0.99),
    max,
  };
}

const CONFIDENCE = 0.95;

/**
 * The smallest of the sorted values that is at least the quantile with 95 % confidence, for any distribution of the values: the k-th is below
 * the quantile only if at least k of n independent values are, which has a binomial probability.
 */
function upperBound(sorted: readonly number[], part: number): number | null {
  const count = sorted.length;
  let logProbability = count * Math.log1p(-part);
  let below = 0;
  for (let index = 0; index < count; index += 1) {
    below += Math.exp(logProbability);
    if (below >= CONFIDENCE) return sorted[index] ?? null;
    logProbability += Math.log((count - index) / (index + 1)) + Math.log(part / (1 - part));
  }
  return null;
}

/** The 97.5 % quantile of the normal distribution. */
const Z = 1.959_964;

/** A share with Wilson's interval of 95 % confidence. */
export function shareOf(runs: number, of: number): Share {
  if (of === 0) return { runs, of, share: null, from: 0, to: 1 };
  const share = runs / of;
  const middle = share + (Z * Z) / (2 * of);
  const spread = Z * Math.sqrt((share * (1 - share)) / of + (Z * Z) / (4 * of * of));
  const scale = 1 + (Z * Z) / of;
  return {
    runs,
    of,
    share,
    from: runs === 0 ? 0 : Math.max(0, (middle - spread) / scale),
    to: runs === of ? 1 : Math.min(1, (middle + spread) / scale),
  };
}
