/** Where the truth of a run lies. */
export const storeKinds = ["sqlite", "redis", "memory"] as const;
export type StoreKind = (typeof storeKinds)[number];

/** How a scenario is to be run. */
export interface ChaosOptions {
  /** Prints and decides all that is drawn; the same seed draws the same. */
  readonly seed: number;
  /** A small part of it, for CI. */
  readonly short: boolean;
  /** Overrides the scenario's own count of rounds; what a round is, the scenario says. */
  readonly rounds: number | undefined;
  /** How long a scenario runs that could run for ever; it takes the place of rounds. */
  readonly minutes?: number | undefined;
  /** Where the stores are, for a scenario that has a choice. Default: SQLite. */
  readonly stores?: StoreKind | undefined;
  /** An empty folder of the scenario's own; kept when something was violated. */
  readonly folder: string;
  /** Tells a person how far it is. */
  readonly progress: (text: string) => void;
}

/** What a scenario has found. `violations` counts; the first of them are told in words. */
export interface ChaosReport {
  readonly name: string;
  /** What was tried: turns, commits, jobs. */
  readonly operations: number;
  /** How many of them came to the end they should come to. */
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
  /** The stores it can run on, its default first. `undefined` for a scenario without a choice, which needs nothing but Node. */
  readonly on?: readonly StoreKind[] | undefined;
  run(options: ChaosOptions): Promise<ChaosReport>;
}

/** Fewer successes than this prove nothing (guarantees, harness). */
export const LEAST_SUCCESS = 0.95;

/** Why the run failed; undefined when it proves what it should. */
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
