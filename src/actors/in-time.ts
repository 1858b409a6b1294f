import { abortable } from "../base/index.ts";
import type { Host } from "./host.ts";

interface TimeLimit<Result> {
  readonly ms: number;
  readonly signal: AbortSignal;
  /** Returns the result of work that takes longer, or throws its error. */
  readonly late: () => Result;
}

const timeOver = Symbol("the time is over");

/** The result of foreign code's work. Rejects when the signal aborts. */
export async function inTime<Result>(
  { clock }: Pick<Host, "clock">,
  work: Promise<Result>,
  { ms, signal, late }: TimeLimit<Result>,
): Promise<Result> {
  const { promise: over, resolve } = Promise.withResolvers<typeof timeOver>();
  const cancel = clock.setDelay(ms, () => resolve(timeOver));
  try {
    const first = await abortable(Promise.race([work, over]), signal);
    return first === timeOver ? late() : first;
  } finally {
    cancel();
  }
}

/** Time limit for the asynchronous checks of a schema, in milliseconds. */
export const LONGEST_CHECK_MS = 60_000;
