import type { Pair, Side, Unit } from "../study.ts";

/** One curve of a study of growth: the cost of one contender at each amount of work. */
export interface Curve {
  readonly stores: Pair["stores"];
  readonly contender?: string;
  /** Distinguishes several measurements of one study. */
  readonly variant?: string;
  /** Default: the study's. */
  readonly unit?: Unit;
  /** Default: the study's. The others are compared with the first. */
  readonly points?: readonly number[];
  readonly sideAt: (count: number) => Side;
}

/** Compares each later point of each curve with its first. `noun` is the counted item, such as `children`. */
export function growthPairs(noun: string, points: readonly number[], curves: readonly Curve[]): readonly Pair[] {
  return curves.flatMap(({ sideAt, points: own = points, variant, ...curve }) => {
    const [first = 1, ...later] = own;
    const bare = sideAt(first);
    return later.map((count): Pair => {
      const amount = `${noun} ${count.toLocaleString("en-US")}`;
      return {
        ...curve,
        variant: variant === undefined ? amount : `${variant}, ${amount}`,
        at: { ours: count, bare: first },
        ours: sideAt(count),
        bare,
      };
    });
  });
}
