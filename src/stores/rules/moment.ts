import type { Timer } from "../../state/index.ts";

/** One moment by the two times of a store. */
export interface Moment {
  /** As people's clocks show it, in milliseconds since the epoch; it may jump. */
  readonly now: number;
  /**
   * The store's own time, in milliseconds: it goes on steadily, whoever sets a clock, and is the same for all processes of
   * one boot. Leases and working time are measured by it.
   */
  readonly steady: number;
}

/** Whether an alarm is due. */
export function isDue(timer: Timer, { now, steady }: Moment): boolean {
  return timer.dueAt <= (isBySteadyTime(timer) ? steady : now);
}

/** Working time, how long room is kept and when a queued call is looked at are told by the steady time, what people named by theirs. */
export function isBySteadyTime(timer: Timer): boolean {
  return timer.kind === "claim" || timer.kind === "job" || isOfWork(timer);
}

/** Whether it counts working time. */
export function isOfWork(timer: Timer): boolean {
  return timer.kind === "limit" && timer.limit === "maxActiveMs";
}
