import type { AgentRecord, Checkpoint, Entry, Lifecycle, OwnedFields } from "../../state/index.ts";

/** The part of a record that its owner writes, as it follows from a record and the entries after it. */
export function ownedFieldsOf(record: AgentRecord): OwnedFields {
  const { status, turnCount, lastActivity, error, checkpoint } = record;
  return { status, turnCount, lastActivity, error, checkpoint };
}

/** The fields after one more entry; the same object when it changes nothing that a record keeps. */
export function nextOwnedFields(
  owned: OwnedFields,
  entry: Entry,
  agent: { readonly lifecycle: Lifecycle; checkpoint(): Checkpoint["agent"] },
): OwnedFields {
  switch (entry.type) {
    case "agent.started":
    case "agent.paused":
    case "agent.resumed":
    case "agent.shutdown":
      return { ...owned, status: agent.lifecycle, lastActivity: entry.at };
    case "turn.ended":
      return {
        status: agent.lifecycle,
        turnCount: entry.number,
        lastActivity: entry.at,
        error: entry.error,
        checkpoint: { version: 1, seq: entry.seq, agent: agent.checkpoint() },
      };
    default:
      return owned;
  }
}
