/**
 * What `runCase()`, judges and `simulateUser()` used, by test. `troupe/testing/matchers` runs each test in a storage of its own, so that tests that run at the
 * same time do not mix; a run outside of a test is not noted.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { EVAL_NOT_RUN, isEvalMoneySpent } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { StopReason } from "../state/index.ts";

/** The figures of one run, which a test reports in `task.meta.troupe`. */
export interface CaseFigures {
  /** `case`: a run that is tested. `judge`: a run that judges one. `user`: a person whom `simulateUser()` plays. */
  readonly kind: "case" | "judge" | "user";
  /** Id of its root agent, also in the store of `troupe eval --keep`. */
  readonly agentId: string;
  /** The definition of its root agent. */
  readonly agentName: string;
  /** Why its turn ended; the last one of a conversation. */
  readonly stopReason: StopReason;
  /** Steps of its root agent. */
  readonly steps: number;
  /** Calls of all its agents. */
  readonly toolCalls: number;
  /** Of the whole tree, input and output together. */
  readonly tokens: number;
  /** Dollars of the whole tree; `null` if a price is unknown. */
  readonly cost: number | null;
  /** Milliseconds until the end of its turn; the sum of the turns of a conversation. */
  readonly durationMs: number;
}

/** The storage is global, because the test file and its setup file may load two copies of this module. */
const storageKey = Symbol.for("troupe.testing.case-log");

function storage(): AsyncLocalStorage<CaseFigures[]> {
  const shared = globalThis as { [storageKey]?: AsyncLocalStorage<CaseFigures[]> };
  return (shared[storageKey] ??= new AsyncLocalStorage());
}

/** Notes a run for the test that it belongs to. */
export function noteCase(figures: CaseFigures): void {
  storage().getStore()?.push(figures);
}

/** Throws `InvalidInputError` if this is the first run of a test, and the money of `troupe eval --max-cost` is spent. */
export function assertMayStart(): void {
  const noted = storage().getStore()?.length ?? 0;
  if (noted === 0 && isEvalMoneySpent()) throw new InvalidInputError(EVAL_NOT_RUN);
}

/** Dollars of all runs of a test; `null` if a price is unknown. */
export function costOfRuns(runs: readonly Pick<CaseFigures, "cost">[]): number | null {
  return runs.reduce<number | null>((sum, { cost }) => (sum === null || cost === null ? null : sum + cost), 0);
}

/** Runs a test with a log of its own, and gives the log to `done` in the end; a test that has a log keeps it. */
export async function withCaseLog(test: () => Promise<void>, done: (log: CaseFigures[]) => void): Promise<void> {
  if (storage().getStore()) return await test();
  const log: CaseFigures[] = [];
  try {
    await storage().run(log, test);
  } finally {
    done(log);
  }
}
