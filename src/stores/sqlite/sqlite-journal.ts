import type { StatementSync } from "node:sqlite";
import { z } from "zod";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type Entry,
  JOURNAL_VERSION,
  type JournalRow,
  type Message,
  messageSchema,
  readEntries,
} from "../../state/index.ts";
import type { StoredRow } from "../rules/ports.ts";
import { integerOf, jsonOf, parsed, type Row, textOf, textOrNullOf, wellFormed } from "../rules/stored-values.ts";
import type { AgentSlot } from "./sqlite-agents.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";

const messagesSchema = z.array(messageSchema);

/**
 * The journal's rows, one per batch, in the order of their cursors; messages are stored in the row that brought them.
 */
export class SqliteJournal {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<
    Record<
      | "add"
      | "addPlace"
      | "last"
      | "entries"
      | "messages"
      | "place"
      | "ofTree"
      | "lastOfTree"
      | "wholeTree"
      | "emptyRows"
      | "emptyPlaces",
      StatementSync
    >
  >;
  /** Cursor of the last row in the file, in a generation. */
  #last = { generation: 0, cursor: 0 };

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      add: connection.prepare("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?)"),
      addPlace: connection.prepare("INSERT INTO messages VALUES (?, ?, ?) ON CONFLICT DO NOTHING"),
      last: connection.prepare(
        "SELECT max((SELECT cursor FROM last_removed), coalesce(max(cursor), 0)) AS cursor FROM journal",
      ),
      entries: connection.prepare(
        "SELECT cursor, previous, last_seq, version, entries FROM journal WHERE cursor = ? AND agent = ?",
      ),
      messages: connection.prepare("SELECT previous, messages FROM journal WHERE cursor = ? AND agent = ?"),
      place: connection.prepare("SELECT cursor FROM messages WHERE agent = ? AND message_id = ?"),
      ofTree: connection.prepare(
        `SELECT cursor, version, entries, agent_id FROM journal JOIN agents ON agents.id = journal.agent
         WHERE journal.tree = ? AND cursor > ? ORDER BY cursor LIMIT ?`,
      ),
      lastOfTree: connection.prepare("SELECT coalesce(max(cursor), 0) AS cursor FROM journal WHERE tree = ?"),
      wholeTree: connection.prepare(
        `SELECT cursor, version, entries, messages, agent_id FROM journal JOIN agents ON agents.id = journal.agent
         WHERE journal.tree = ? ORDER BY cursor`,
      ),
      emptyRows: connection.prepare(
        "UPDATE journal SET messages = NULL WHERE cursor IN (SELECT cursor FROM messages WHERE agent = ?)",
      ),
      emptyPlaces: connection.prepare("DELETE FROM messages WHERE agent = ?"),
    };
  }

  forget(): void {
    this.#last = { generation: 0, cursor: 0 };
  }

  /** `previous`: cursor of the agent's last row, 0 if it has none. Returns the row's cursor; by default a new one. */
  add(
    slot: AgentSlot,
    previous: number,
    batch: { readonly entries: readonly Entry[]; readonly messages: readonly Message[] },
    cursor: number = this.#nextCursor(),
  ): number {
    const fresh = batch.messages.filter(({ id }) => this.#addPlace(slot, id, cursor));
    const messages = fresh.length > 0 ? JSON.stringify(fresh) : null;
    const entries = JSON.stringify(batch.entries);
    const lastSeq = batch.entries.at(-1)?.seq ?? 0;
    this.#statements.add.run(cursor, slot.tree, slot.id, previous, lastSeq, JOURNAL_VERSION, entries, messages);
    return cursor;
  }

  /** From the row that holds `fromSeq` on. */
  rowsFrom(slot: AgentSlot, lastCursor: number, fromSeq: number): JournalRow[] {
    const rows: JournalRow[] = [];
    for (const row of this.#back(slot, lastCursor, this.#statements.entries)) {
      if (integerOf(row, "last_seq", "a row of the journal") < fromSeq) break;
      rows.push(journalRowOf(row, slot.record.value.agentId));
    }
    return rows.toReversed();
  }

  entriesAt(slot: AgentSlot, cursor: number): readonly Entry[] {
    return journalRowOf(this.#rowAt(slot, cursor, this.#statements.entries), slot.record.value.agentId).entries;
  }

  treeRows(tree: number, afterCursor: number, limit: number): JournalRow[] {
    const rows = this.#statements.ofTree.all(tree, afterCursor, limit);
    return rows.map((row) => journalRowOf(row, textOf(row, "agent_id", "a row of agents")));
  }

  /** 0 if the tree has no rows. */
  lastOfTree(tree: number): number {
    return integerOf(this.#statements.lastOfTree.get(tree) ?? {}, "cursor", "the last row of a tree");
  }

  storedRows(tree: number): StoredRow[] {
    return this.#statements.wholeTree.all(tree).map((row) => {
      const agentId = textOf(row, "agent_id", "a row of agents");
      return { ...journalRowOf(row, agentId), messages: messagesOf(row, agentId) };
    });
  }

  /** Deletes the messages from the agent's rows. */
  clearMessages(slot: AgentSlot): void {
    this.#statements.emptyRows.run(slot.id);
    this.#statements.emptyPlaces.run(slot.id);
  }

  messages(slot: AgentSlot, lastCursor: number, newest = Number.POSITIVE_INFINITY): Message[] {
    const parts: Message[][] = [];
    let missing = newest;
    if (missing > 0) {
      for (const row of this.#back(slot, lastCursor, this.#statements.messages)) {
        const messages = messagesOf(row, slot.record.value.agentId).slice(-missing);
        parts.push(messages);
        missing -= messages.length;
        if (missing <= 0) break;
      }
    }
    return parts.toReversed().flat();
  }

  messagesById(slot: AgentSlot, ids: readonly string[]): Message[] {
    const rows = new Map<number, Message[]>();
    return ids.flatMap((id) => {
      const place = this.#statements.place.get(slot.id, wellFormed(id, "message id"));
      if (!place) return [];
      const cursor = integerOf(place, "cursor", `the place of message ${id}`);
      let messages = rows.get(cursor);
      if (!messages) {
        messages = messagesOf(this.#rowAt(slot, cursor, this.#statements.messages), slot.record.value.agentId);
        rows.set(cursor, messages);
      }
      return messages.find((message) => message.id === id) ?? [];
    });
  }

  /** The agent's rows, last one first. */
  *#back(slot: AgentSlot, lastCursor: number, statement: StatementSync): Generator<Row> {
    for (let cursor = lastCursor; cursor > 0; ) {
      const row = this.#rowAt(slot, cursor, statement);
      yield row;
      const previous = integerOf(row, "previous", `row ${cursor} of the journal`);
      if (previous < 0 || previous >= cursor) {
        throw new CorruptRecordError(`row ${cursor} of the journal names row ${previous} as the one before it`);
      }
      cursor = previous;
    }
  }

  #rowAt(slot: AgentSlot, cursor: number, statement: StatementSync): Row {
    const row = statement.get(cursor, slot.id);
    if (row) return row;
    throw new CorruptRecordError(`the journal lacks row ${cursor} of agent ${slot.record.value.agentId}`);
  }

  #addPlace(slot: AgentSlot, messageId: string, cursor: number): boolean {
    const id = wellFormed(messageId, "message id");
    return Number(this.#statements.addPlace.run(slot.id, id, cursor).changes) > 0;
  }

  /** Only in a transaction. Cursors of removed rows are not used again. */
  #nextCursor(): number {
    const { generation } = this.#connection;
    if (this.#last.generation !== generation) {
      const row = this.#statements.last.get() ?? {};
      this.#last = { generation, cursor: integerOf(row, "cursor", "the last row of the journal") };
    }
    this.#last.cursor += 1;
    return this.#last.cursor;
  }
}

function journalRowOf(row: Row, agentId: string): JournalRow {
  const cursor = integerOf(row, "cursor", "a row of the journal");
  const where = `row ${cursor} of the journal (agent ${agentId})`;
  const version = integerOf(row, "version", where);
  const entries = readEntries(version, jsonOf(textOf(row, "entries", where), where), where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}

function messagesOf(row: Row, agentId: string): Message[] {
  const where = `the messages of agent ${agentId}`;
  const text = textOrNullOf(row, "messages", where);
  return text === null ? [] : parsed(messagesSchema, text, where);
}
