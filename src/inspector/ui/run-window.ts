import type { LogStart, RunAgentRecord } from "../run-model/run-log.ts";
import type { RunState } from "../run-model/run-moments.ts";

/** How many entries a page holds: when there are more, the oldest are dropped, so many at once. */
export interface WindowSize {
  readonly most: number;
  readonly droppedAtOnce: number;
}
export const windowSize: WindowSize = { most: 250_000, droppedAtOnce: 50_000 };

/** A place from which a run can be read on: the state there, and what the log needs to know. */
export interface RunMark extends LogStart {
  readonly state: RunState | undefined;
}
export const runStart: RunMark = { count: 0, cursor: 0, startedAt: null, state: undefined };

/** The part of a run that a session holds. Default: the newest, with all before it as long as there is room. */
export interface RunWindow {
  readonly from: RunMark;
  /** In the order of the run; the first is its start. */
  readonly marks: readonly RunMark[];
  /** It ends where it is full, and follows no further. */
  readonly isPast: boolean;
  readonly agents: readonly RunAgentRecord[];
  /** How many entries were seen in all. */
  readonly seen: number;
}

export interface SessionOptions {
  /** How far the source's clock is ahead of this machine's; null: the run is over, its clock does not run. */
  readonly aheadMs: number | null;
  readonly size?: WindowSize | undefined;
  readonly window?: RunWindow | undefined;
}
