/** A share with the bounds of its confidence interval, each from 0 to 1. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** The 97.5 % quantile of the normal distribution, for intervals of 95 %. */
const Z = 1.959964;

/** The Wilson interval of a share at 95 %: unlike the usual one, it is right for few runs and for shares near 0 and 1. */
export function wilsonInterval(passed: number, runs: number): Interval {
  if (runs === 0) return { low: 0, high: 1 };
  const share = passed / runs;
  const scale = 1 + Z ** 2 / runs;
  const center = (share + Z ** 2 / (2 * runs)) / scale;
  const spread = (Z / scale) * Math.sqrt((share * (1 - share)) / runs + Z ** 2 / (4 * runs ** 2));
  return { low: passed === 0 ? 0 : center - spread, high: passed === runs ? 1 : center + spread };
}

/** Runs that passed, of all. */
export interface PassCount {
  readonly passed: number;
  readonly runs: number;
}

/** Fisher's exact test, two-sided: how likely shares differ at least as much by chance. */
export function fisherTest(one: PassCount, other: PassCount): number {
  const passed = one.passed + other.passed;
  const fewest = Math.max(0, passed - other.runs);
  const most = Math.min(one.runs, passed);
  /** Logarithms of the probabilities that `fewest`, `fewest + 1`, … of the first runs passed, up to a constant. */
  const logs = [0];
  for (let first = fewest; first < most; first += 1) {
    const more = (one.runs - first) * (passed - first);
    const less = (first + 1) * (other.runs - passed + first + 1);
    logs.push((logs.at(-1) ?? 0) + Math.log(more / less));
  }
  const largest = logs.reduce((found, log) => Math.max(found, log), 0);
  const observed = logs[one.passed - fewest] ?? 0;
  let [total, extreme] = [0, 0];
  for (const log of logs) {
    const probability = Math.exp(log - largest);
    total += probability;
    // Equal probabilities may differ in their last digits.
    if (log <= observed + 1e-7) extreme += probability;
  }
  return extreme / total;
}

function logChoose(from: number, count: number): number {
  let log = 0;
  for (let index = 1; index <= count; index += 1) log += Math.log((from - count + index) / index);
  return log;
}

/** Permutations that are tried at most; if there are more, as many random ones. */
const MOST_PERMUTATIONS = 10_000;
/** Random permutations of many values are fewer, but enough to find p < 0.05. */
const FEWEST_PERMUTATIONS = 1_000;
/** Values that random permutations draw in all. */
const MOST_DRAWN = 20_000_000;

/**
 * A permutation test of means, two-sided: how likely the means differ at least as much if all values come from one distribution. It assumes
 * nothing about the distribution. Random permutations are the same in each call.
 */
export function permutationTest(one: readonly number[], other: readonly number[]): number {
  if (one.length === 0 || other.length === 0) return 1;
  const values = [...one, ...other];
  const total = sumOf(values);
  const observed = differenceOf(sumOf(one));
  // Rounding must not make a permutation with the same values smaller.
  const least = observed - 1e-9 * Math.max(1, Math.abs(total));
  const isExact = logChoose(values.length, one.length) <= Math.log(MOST_PERMUTATIONS);
  let count = 0;
  let extreme = 0;
  for (const sum of isExact ? allSums(values, one.length) : randomSums(values, one.length)) {
    count += 1;
    if (differenceOf(sum) >= least) extreme += 1;
  }
  // The observed order is one of the permutations, so that no p-value is 0.
  return isExact ? extreme / count : (extreme + 1) / (count + 1);

  function differenceOf(sum: number): number {
    return Math.abs(sum / one.length - (total - sum) / other.length);
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The sums of all choices of `count` values. */
function* allSums(values: readonly number[], count: number): Generator<number> {
  if (count === 0) {
    yield 0;
    return;
  }
  for (let index = 0; index <= values.length - count; index += 1) {
    for (const rest of allSums(values.slice(index + 1), count - 1)) yield (values[index] ?? 0) + rest;
  }
}

function* randomSums(values: readonly number[], count: number): Generator<number> {
  let state = 1;
  const random = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const rounds = Math.min(MOST_PERMUTATIONS, Math.max(FEWEST_PERMUTATIONS, Math.floor(MOST_DRAWN / count)));
  // Each round draws from the order that the one before has left, which is a random one too.
  const pool = [...values];
  for (let round = 0; round < rounds; round += 1) {
    let sum = 0;
    for (let taken = 0; taken < count; taken += 1) {
      const index = taken + Math.floor(random() * (pool.length - taken));
      const value = pool[index] ?? 0;
      pool[index] = pool[taken] ?? 0;
      pool[taken] = value;
      sum += value;
    }
    yield sum;
  }
}
