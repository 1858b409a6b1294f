import type { CallState } from "./call-state.ts";
import type { Entry } from "./entry.ts";

/** How many children of one definition a turn may have at work at a time. */
export interface LineLimit {
  /** Name of their definition. */
  readonly childName: string;
  readonly maxConcurrent: number;
}

/**
 * Children of one definition that have a place: those that were started and have not ended, and those that are just being
 * asked for, where `entries` hold what is not decided yet. A refusal stands in the place of what it refused, so that a child
 * that never came to be has none. Those in the background have a line of their own.
 */
export function childrenAtWork(entries: readonly Entry[], childName: string): string[] {
  const atWork = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "child.spawned" && entry.definition.name === childName && !entry.background) {
      atWork.add(entry.childId);
    }
    if (entry.type === "child.ended") atWork.delete(entry.childId);
  }
  return [...atWork];
}

/**
 * Whether a call waits in line for a place. Nothing of it is under way then: whether the turn rests is up to those who have
 * the places, and each of them says so itself. With a place free it is under way, though nothing shows of it yet.
 */
export function isInLine(call: CallState, entries: readonly Entry[], limit: LineLimit | undefined): boolean {
  if (!limit || call.outcome !== null || call.childId !== null) return false;
  const { gate, approvedHash } = call;
  // What is still to be approved is about to open its request.
  if (gate?.verdict !== "allowed" || (gate.needsApproval && approvedHash === null)) return false;
  return childrenAtWork(entries, limit.childName).length >= limit.maxConcurrent;
}
