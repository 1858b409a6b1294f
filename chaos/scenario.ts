/** Kinds of stores on which a scenario can run. */
export const storeKinds = ["sqlite", "redis", "postgres", "memory"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** Options of a scenario's run. */
export interface ChaosOptions {
  /** Determines all random choices; the same seed draws the same. Printed in the report. */
  readonly seed: number;
  /** Run only a small part, for CI. */
  readonly short: boolean;
  /** Overrides the scenario's number of rounds. Each scenario defines its rounds. */
  readonly rounds: number | undefined;
  /** Duration of a scenario that can run indefinitely, instead of a number of rounds. */
  readonly minutes?: number | undefined;
  /** Kind of stores, for scenarios with a choice. Default: SQLite. */
  readonly stores?: StoreKind | undefined;
  /** An empty folder for the scenario; kept if there are violations. */
  readonly folder: string;
  /** Reports progress to a person. */
  readonly progress: (text: string) => void;
}

/** The result of a scenario. `violations` is their number; the first of them are listed in words. */
export interface ChaosReport {
  readonly name: string;
  /** Number of operations, such as turns, commits or jobs. */
  readonly operations: number;
  /** How many of them had the expected outcome. */
  readonly succeeded: number;
  readonly violations: number;
  readonly seed: number;
  readonly firstViolations: readonly string[];
  readonly [figure: string]: unknown;
}

export interface ChaosScenario {
  readonly name: string;
  /** One line: the fault, and what must hold. */
  readonly title: string;
  /** The stores it can run on, its default first. `undefined` for a scenario without a choice, which needs only Node. */
  readonly on?: readonly StoreKind[] | undefined;
  run(options: ChaosOptions): Promise<ChaosReport>;
}

/** Fewer successes than this prove nothing (guarantees, harness). */
export const LEAST_SUCCESS = 0.95;

/** Why the run failed; `undefined` if it succeeded. */
export function failureOf({ operations, succeeded, violations }: ChaosReport): string | undefined {
  if (violations > 0) return `${violations} violations`;
  if (operations === 0) return "nothing was tried";
  if (succeeded >= operations * LEAST_SUCCESS) return undefined;
  return `only ${succeeded} of ${operations} operations succeeded: fewer than ${LEAST_SUCCESS * 100} % prove nothing`;
}

const SHOWN_VIOLATIONS = 20;

export function reportOf(
  { name, seed }: { readonly name: string; readonly seed: number },
  counts: { readonly operations: number; readonly succeeded: number; readonly violations: readonly string[] },
  figures: Readonly<Record<string, unknown>> = {},
): ChaosReport {
  const { operations, succeeded, violations } = counts;
  const firstViolations = violations.slice(0, SHOWN_VIOLATIONS);
  return { name, operations, succeeded, violations: violations.length, seed, ...figures, firstViolations };
}
