import { anyRule, type Door, optionsOf } from "../../base/index.ts";
import { type LeftBehind, leavingMsOf } from "./leaving.ts";

export const DEFAULT_DRAIN_MS = 25_000;

export interface RuntimeDrainOptions {
  /** Whole milliseconds from 0 to 2^31-1 within which all is over. Default 25,000: less than most who stop a process wait. */
  readonly timeoutMs?: number | undefined;
}

export interface DrainReport {
  /** Jobs that had not ended when the time was over, and agents of which a model call or a tool was cut off. */
  readonly left: number;
  /** Agents that could not be given back, or whose last steps could not be stored. */
  readonly leftBehind: readonly LeftBehind[];
}

/** The time is looked at where its default is known. */
const drainDoor: Door<RuntimeDrainOptions> = { rules: { timeoutMs: anyRule }, instead: { ms: "timeoutMs" } };

/** Throws `InvalidInputError` for what is no time. */
export function drainMsOf(given?: RuntimeDrainOptions): number {
  const { timeoutMs = DEFAULT_DRAIN_MS } = optionsOf<RuntimeDrainOptions>(given, "drain()", drainDoor);
  return leavingMsOf("drain", timeoutMs);
}
