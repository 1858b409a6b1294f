// Two runs of the same tests. `npm test` is the quick one: it runs each rule once on each adapter. `npm run test:full` runs
// everything: every row of the long tables, every point of a crash, every variant of the stores, and the files `*.full.test.ts`.

/** True in the full run. */
export const isFull = process.env["TROUPE_FULL"] === "1";

/** The rows of a table: all of them in the full run; in the quick run those that `quick` names or chooses. */
export function rows<Row>(
  all: readonly Row[],
  quick: readonly NoInfer<Row>[] | ((row: Row, index: number) => boolean),
): readonly Row[] {
  if (isFull) return all;
  const chosen = typeof quick === "function" ? all.filter(quick) : quick;
  if (chosen.length === 0) throw new Error("the quick run would leave this table empty");
  return chosen;
}

/** For `rows`: the quick run uses the first row. */
export const first = (_row: unknown, index: number): boolean => index === 0;

/** For `rows`: the quick run uses the first row, and then every n-th row. */
export const every =
  (distance: number) =>
  (_row: unknown, index: number): boolean =>
    index % distance === 0;

/**
 * The rows of a table that combines several columns: in the quick run enough that each value of each column occurs. The rows are
 * chosen far apart, so that they do not all share the first value of a column.
 */
export function combinedRows<Row extends object>(all: readonly Row[]): readonly Row[] {
  const seen = new Set<string>();
  const apart = all.map((_row, index) => all[(index * stride) % all.length] as Row);
  const chosen = new Set(
    apart.filter((row) => {
      const values = Object.entries(row).map(([column, value]) => `${column}: ${JSON.stringify(value)}`);
      const isNew = values.some((value) => !seen.has(value));
      for (const value of values) seen.add(value);
      return isNew;
    }),
  );
  return rows(all, (row) => chosen.has(row));
}

/** A prime: a table whose length is not a multiple of it is visited completely. */
const stride = 7_919;

/** The number of random cases, rounds or objects: `full` in the full run, `quick` in the quick one. */
export function amount(full: number, quick: number): number {
  return isFull ? full : quick;
}

/** The same, unless `TROUPE_CASES` requests more. */
export function randomCases(full: number, quick: number): number {
  return Number(process.env["TROUPE_CASES"] ?? amount(full, quick));
}

/** Tests that act at the first, second, third … hit of a point, until it is no longer hit. */
export const sweep = {
  told: isFull ? "every hit" : "the first hits",
  most: amount(Number.POSITIVE_INFINITY, 2),
} as const;

/** Defines tests that run in the full run only. */
export function inFull(define: () => void): void {
  if (isFull) define();
}
