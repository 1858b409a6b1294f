import { abortable, type LightSignal } from "../base/index.ts";
import type { Host } from "./host.ts";

interface TimeLimit {
  readonly ms: number;
  readonly signal: LightSignal;
  /** Makes the error for work that takes longer. */
  readonly late: () => Error;
}

/** The result of work that code of others does. Rejects when the signal aborts, and when the time is over. */
export async function inTime<Result>(
  { clock }: Pick<Host, "clock">,
  work: Promise<Result>,
  { ms, signal, late }: TimeLimit,
): Promise<Result> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const cancel = clock.setDelay(ms, () => reject(late()));
  try {
    return await abortable(Promise.race([work, over]), signal);
  } finally {
    cancel();
  }
}

/** Longest time that the asynchronous checks of a schema may take, in milliseconds. */
export const LONGEST_CHECK_MS = 60_000;
