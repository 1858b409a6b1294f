import type { AgentRecord } from "../../state/index.ts";

/** Where an agent stands when a mark is set or taken away on it, or above it. */
export interface MarkSituation {
  /** Shut down: it finds its marks at its next start. */
  readonly isAsleep: boolean;
  /** A turn of it is open, begun or not. */
  readonly hasOpenTurn: boolean;
  /** The open turn has its abort mark. */
  readonly isEnding: boolean;
  /** It has a pause mark of its own. */
  readonly isPaused: boolean;
  /** Whether a pause mark above it holds it: before the command, and after it. */
  readonly heldAbove: { readonly before: boolean; readonly after: boolean };
}

/**
 * What a command asks of one agent. `pause`, `resume`: of the one that it names. `hold`: of those below a paused one. `end`:
 * the open turn of the one that it names; `endBelow`: of those that work for it. `none`: they stand below, and are only
 * held no longer.
 */
export type MarkAsk = "pause" | "hold" | "resume" | "end" | "endBelow" | "none";

export interface MarkEffect {
  readonly isPaused: boolean;
  /** Its open turn gets an abort mark. */
  readonly isEnded: boolean;
  /** What it is told, in this order. */
  readonly told: readonly ("pause" | "abort" | "resume")[];
}

/**
 * The whole rule of marks, for one agent:
 * 1. A pause mark on an agent or above it holds the agent. Who is held no longer is told to go on, whichever command took the
 *    mark away: an agent that nobody tells stays as it is for ever.
 * 2. What ends a turn takes the agent's own pause away, since one that is held begins nothing, not even its end.
 * 3. Without an open turn there is nothing to end, and nothing is told.
 */
export function markEffect(at: MarkSituation, ask: MarkAsk): MarkEffect {
  const isEnded = at.hasOpenTurn && (ask === "endBelow" || (ask === "end" && !at.isEnding));
  const isPaused = ask === "pause" || (at.isPaused && ask !== "resume" && !isEnded);
  const wasHeld = at.isPaused || at.heldAbove.before;
  const isFreed = wasHeld && !(isPaused || at.heldAbove.after);
  const isTold = !at.isAsleep;
  const told: MarkEffect["told"][number][] = [];
  if (isTold && (ask === "pause" || ask === "hold")) told.push("pause");
  if (isEnded) told.push("abort");
  if (isTold && isFreed) told.push("resume");
  return { isPaused, isEnded, told };
}

export function situationOf(
  { status, openTurnId, abort, pause }: Pick<AgentRecord, "status" | "openTurnId" | "abort" | "pause">,
  heldAbove: MarkSituation["heldAbove"],
): MarkSituation {
  return {
    isAsleep: status === "shutdown",
    hasOpenTurn: openTurnId !== null,
    isEnding: openTurnId !== null && abort?.turnId === openTurnId,
    isPaused: pause !== null,
    heldAbove,
  };
}
