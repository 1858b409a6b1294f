import { CorruptRecordError } from "../../errors/index.ts";
import { type Message, messageSchema } from "../../state/index.ts";
import { integerOf, parsed, type Row, textColumn, wellFormed } from "../rules/stored-values.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { Statement } from "./sqlite-statement.ts";

/** The messages of agents, each with the cursor of its journal row; `id` grows with the cursors of an agent. */
export class SqliteMessages {
  readonly #statements: Readonly<Record<"add" | "newest" | "find" | "ofTree" | "clear", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      add: connection.prepare(
        `INSERT INTO messages (agent, message_id, cursor, message) VALUES (?, ?, ?, ?)
         ON CONFLICT (agent, message_id) DO NOTHING`,
      ),
      newest: connection.prepare("SELECT message FROM messages WHERE agent = ? ORDER BY id DESC LIMIT ?"),
      find: connection.prepare("SELECT message FROM messages WHERE agent = ? AND message_id = ?"),
      ofTree: connection.prepare(
        `SELECT agent_id, cursor, message FROM agents JOIN messages ON messages.agent = agents.id
         WHERE root = ? ORDER BY agents.id, messages.id`,
      ),
      clear: connection.prepare("DELETE FROM messages WHERE agent = ?"),
    };
  }

  /** A message whose id is stored already is not changed. */
  add({ id: agent }: AgentSlot, cursor: number, messages: readonly Message[]): void {
    for (const message of messages) {
      this.#statements.add.run(agent, wellFormed(message.id, "message id"), cursor, JSON.stringify(message));
    }
  }

  /** Deletes them all. */
  clear({ id }: AgentSlot): void {
    this.#statements.clear.run(id);
  }

  /** The newest messages, oldest first. */
  newest(slot: AgentSlot, count = -1): Message[] {
    const { agentId } = slot.record.value;
    const rows = this.#statements.newest.all(slot.id, count).toReversed();
    return rows.map((row) => messageIn(row, agentId));
  }

  byId(slot: AgentSlot, ids: readonly string[]): Message[] {
    return ids.flatMap((id) => {
      const row = this.#statements.find.get(slot.id, wellFormed(id, "message id"));
      if (!row) return [];
      const { agentId } = slot.record.value;
      const message = messageIn(row, agentId);
      if (message.id === id) return message;
      throw new CorruptRecordError(
        `the row of message ${id} of agent ${agentId} holds message ${message.id}; it is not changed`,
      );
    });
  }

  /** Grouped by the cursors of their rows. */
  ofTree(root: number): ReadonlyMap<number, readonly Message[]> {
    const rows = this.#statements.ofTree.all(root);
    const byCursor = Map.groupBy(rows, (row) => integerOf(row, "cursor", "a message of the tree"));
    return new Map(
      [...byCursor].map(([cursor, ofRow]) => [
        cursor,
        ofRow.map((row) => messageIn(row, textColumn(row, "agent_id", "a message of the tree"))),
      ]),
    );
  }
}

function messageIn(row: Row, agentId: string): Message {
  const where = `a message of agent ${agentId}`;
  return parsed(messageSchema, textColumn(row, "message", where), where);
}
