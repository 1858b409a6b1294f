import { CorruptRecordError } from "../../errors/index.ts";
import { type Entry, JOURNAL_VERSION, type JournalRow, type Message, readEntries } from "../../state/index.ts";
import type { StoredRow } from "../rules/ports.ts";
import { integerOf, jsonOf, type Row, textColumn } from "../rules/stored-values.ts";
import type { AddedRow, RestoredRow } from "../rules/tables.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { SqliteMessages } from "./sqlite-messages.ts";
import type { Statement } from "./sqlite-statement.ts";

/** Number of trees whose last cursor is cached. */
const CAPACITY = 4000;
/** Replaces the integer keys in the row without entries that prevents the reuse of cursors. */
const NONE = 0;

interface LastCursor {
  /** The generation in which the cursor matches the file. */
  readonly generation: number;
  readonly cursor: number;
}

/** The journal's rows, one per batch, in the order of their cursors. */
export class SqliteJournal {
  readonly #connection: SqliteConnection;
  readonly #messages: SqliteMessages;
  /** By the integer key of the tree. */
  readonly #last = new Map<number, LastCursor>();
  readonly #statements: Readonly<
    Record<"add" | "last" | "ofAgent" | "ofTree" | "lastOfAgent" | "remove" | "removeOlder", Statement>
  >;

  constructor(connection: SqliteConnection, messages: SqliteMessages) {
    this.#connection = connection;
    this.#messages = messages;
    this.#statements = {
      // A null cursor becomes the next one.
      add: connection.prepare("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)"),
      last: connection.prepare("SELECT coalesce(max(cursor), 0) AS cursor FROM journal WHERE root = ?"),
      ofAgent: connection.prepare(
        "SELECT cursor, version, entries FROM journal WHERE agent = ? AND last_seq >= ? ORDER BY last_seq",
      ),
      ofTree: connection.prepare(
        `SELECT cursor, version, entries, agent_id FROM journal JOIN agents ON agents.id = journal.agent
         WHERE journal.root = ? AND cursor > ? ORDER BY cursor LIMIT ?`,
      ),
      lastOfAgent: connection.prepare(
        "SELECT cursor, version, entries FROM journal WHERE agent = ? ORDER BY last_seq DESC LIMIT 1",
      ),
      remove: connection.prepare("DELETE FROM journal WHERE root = ?"),
      removeOlder: connection.prepare("DELETE FROM journal WHERE root = ? AND cursor < ?"),
    };
  }

  /** Adds a batch with its messages, except those that are stored already. */
  add(slot: AgentSlot, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    const follows = this.lastCursor(slot.root);
    const cursor = this.#insert(slot, null, entries, messages);
    if (this.#last.size >= CAPACITY) this.#last.clear();
    this.#last.set(slot.root, { generation: this.#connection.generation, cursor });
    return { cursor, follows };
  }

  /** The cursors of its rows are never assigned again; call `invalidate` of the connection afterwards. */
  removeTree(root: number): void {
    const next = this.#statements.add.insert(null, NONE, NONE, 0, JOURNAL_VERSION, "[]");
    this.#statements.removeOlder.run(NONE, next);
    this.#statements.remove.run(root);
  }

  /** Adds the rows of a tree that has none, each under its own or a new cursor; returns the cursors. */
  restore(rows: readonly (RestoredRow & { readonly slot: AgentSlot })[]): number[] {
    return rows.map(({ row, slot, cursor = null }) => this.#insert(slot, cursor, row.entries, row.messages));
  }

  /** Starts with the row that contains `fromSeq`. */
  rowsFrom(slot: AgentSlot, fromSeq: number): JournalRow[] {
    const { agentId } = slot.record.value;
    const rows = this.#statements.ofAgent.all(slot.id, fromSeq).map((row) => journalRowOf(row, agentId));
    let next = Math.max(1, fromSeq);
    for (const { cursor, entries } of rows) {
      const [first = next] = entries.map(({ seq }) => seq);
      if (first > next) {
        throw new CorruptRecordError(
          `the journal of agent ${agentId} lacks entries ${next} to ${first - 1}, before row ${cursor}`,
        );
      }
      next = (entries.at(-1)?.seq ?? next) + 1;
    }
    return rows;
  }

  /** The agent's last row. */
  lastRow(slot: AgentSlot): JournalRow {
    const { agentId } = slot.record.value;
    const row = this.#statements.lastOfAgent.get(slot.id);
    if (row) return journalRowOf(row, agentId);
    throw new CorruptRecordError(`the journal lacks the last row of agent ${agentId}`);
  }

  /** 0 if the tree has no row. */
  lastCursor(root: number): number {
    const known = this.#last.get(root);
    if (known && this.#connection.isCurrent(known.generation)) return known.cursor;
    return integerOf(this.#statements.last.get(root) ?? {}, "cursor", "the last row of a tree");
  }

  treeRows(root: number, after: number, limit: number): JournalRow[] {
    return this.#statements.ofTree.all(root, after, limit).map((row) => journalRowOf(row, agentIdIn(row)));
  }

  storedRows(root: number): StoredRow[] {
    const messages = this.#messages.ofTree(root);
    return this.#statements.ofTree.all(root, 0, -1).map((row) => {
      const journalRow = journalRowOf(row, agentIdIn(row));
      return { ...journalRow, messages: messages.get(journalRow.cursor) ?? [] };
    });
  }

  #insert(slot: AgentSlot, at: number | null, entries: readonly Entry[], messages: readonly Message[]): number {
    const lastSeq = entries.at(-1)?.seq ?? 0;
    const text = JSON.stringify(entries);
    const cursor = this.#statements.add.insert(at, slot.root, slot.id, lastSeq, JOURNAL_VERSION, text);
    this.#messages.add(slot, cursor, messages);
    return cursor;
  }
}

function agentIdIn(row: Row): string {
  return textColumn(row, "agent_id", "a row of agents");
}

function journalRowOf(row: Row, agentId: string): JournalRow {
  const cursor = integerOf(row, "cursor", "a row of the journal");
  const where = `row ${cursor} of the journal (agent ${agentId})`;
  const version = integerOf(row, "version", where);
  const entries = readEntries(version, jsonOf(textColumn(row, "entries", where), where), where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}
