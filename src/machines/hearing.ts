import type { Entry, EntryType } from "../state/index.ts";

/**
 * Which entries of its address a machine reacts to. The others change nothing in it, and sending them would cost as much
 * as a transition; live and in the fold they are passed over alike.
 */
const ofAgent: ReadonlySet<EntryType> = new Set<EntryType>([
  "agent.starting",
  "agent.started",
  "agent.pausing",
  "agent.paused",
  "agent.resumed",
  "agent.shutdown",
  "turn.started",
  "turn.ended",
  "child.spawned",
  "child.ended",
  "child.reported",
  "intent.refused",
  "budget.freed",
  "request.opened",
  "request.decided",
  "context.compacted",
  "conversation.cleared",
]);

const notOfTurn: ReadonlySet<EntryType> = new Set<EntryType>([
  "agent.starting",
  "agent.started",
  "agent.pausing",
  "agent.paused",
  "agent.shutdown",
  "artifact.saved",
  "budget.warning",
  "call.expired",
  "call.gated",
  "turn.waiting",
  "conversation.cleared",
  "warning",
]);

export function agentHears(entry: Entry): boolean {
  return ofAgent.has(entry.type);
}

export function turnHears(entry: Entry): boolean {
  return !notOfTurn.has(entry.type);
}
