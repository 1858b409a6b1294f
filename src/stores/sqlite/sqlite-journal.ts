import { type Entry, JOURNAL_VERSION, type JournalRow, type Message, readEntries } from "../../state/index.ts";
import type { StoredRow } from "../rules/ports.ts";
import { textOfEntries, textOfMessages, wholeEntries } from "../rules/short-forms.ts";
import { integerOf, jsonOf, type Row, textOf } from "../rules/stored-values.ts";
import type { AddedRow, RestoredRow } from "../rules/tables.ts";
import type { SqliteAgents } from "./sqlite-agents.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import { messagesOf, packed, rowAt, rowsBack, type SqliteMessages, unpacked } from "./sqlite-messages.ts";
import { ROWS_BETWEEN_MARKS } from "./sqlite-schema.ts";
import type { Statement } from "./sqlite-statement.ts";

/** Rows of a tree that are in the index, each followed by the rows before it up to the next one of the index. */
const chain = `WITH RECURSIVE chain (cursor, before) AS (
  SELECT cursor, before FROM journal WHERE cursor IN (SELECT value FROM json_each($ends))
  UNION ALL
  SELECT journal.cursor, journal.before FROM chain JOIN journal ON journal.cursor = chain.before
  WHERE journal.cursor > $after AND journal.cursor < chain.cursor AND journal.number % ${ROWS_BETWEEN_MARKS} <> 0
)`;

/**
 * The journal's rows, one per batch, in the order of their cursors; messages are stored in the row that brought them.
 */
export class SqliteJournal {
  readonly #connection: SqliteConnection;
  readonly #agents: SqliteAgents;
  readonly #messages: SqliteMessages;
  readonly #statements: Readonly<
    Record<
      "add" | "last" | "entries" | "marks" | "rows" | "wholeRows" | "noteCursor" | "remove" | "removeAll",
      Statement
    >
  >;
  /** Cursor of the last row in the file, in a generation. */
  #last = { generation: 0, cursor: 0 };

  constructor(connection: SqliteConnection, agents: SqliteAgents, messages: SqliteMessages) {
    this.#connection = connection;
    this.#agents = agents;
    this.#messages = messages;
    // Only the rows that are asked for are read whole.
    const found = `FROM (SELECT cursor AS at FROM chain ORDER BY cursor LIMIT $limit)
      CROSS JOIN journal ON journal.cursor = at JOIN agents ON agents.id = journal.agent`;
    this.#statements = {
      add: connection.prepare("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      last: connection.prepare(
        "SELECT max((SELECT cursor FROM last_removed), coalesce(max(cursor), 0)) AS cursor FROM journal",
      ),
      entries: connection.prepare(
        "SELECT cursor, previous, last_seq, version, entries FROM journal WHERE cursor = ? AND agent = ?",
      ),
      marks: connection.prepare(
        `SELECT cursor FROM journal WHERE tree = ? AND cursor > ? AND number % ${ROWS_BETWEEN_MARKS} = 0
         ORDER BY cursor LIMIT ?`,
      ),
      rows: connection.prepare(`${chain} SELECT journal.cursor, version, entries, agent_id ${found}`),
      wholeRows: connection.prepare(`${chain} SELECT journal.cursor, version, entries, messages, agent_id ${found}`),
      noteCursor: connection.prepare(
        "UPDATE last_removed SET cursor = max(cursor, (SELECT coalesce(max(cursor), 0) FROM journal))",
      ),
      remove: connection.prepare(`${chain} DELETE FROM journal WHERE cursor IN (SELECT cursor FROM chain)`),
      removeAll: connection.prepare("DELETE FROM journal WHERE tree = ?"),
    };
  }

  forget(): void {
    this.#last = { generation: 0, cursor: 0 };
  }

  /** A batch with its messages, except those that are stored already. The agent's head must be written next. */
  add(slot: AgentSlot, entries: readonly Entry[], messages: readonly Message[]): AddedRow {
    const end = this.#agents.heads.end(slot.tree);
    const fresh = this.#messages.fresh(slot, messages);
    const cursor = this.#nextCursor();
    const { cursor: previous } = this.#agents.heads.read(slot);
    this.#insert(slot, { cursor, previous, before: end.cursor, number: end.rows + 1 }, entries, fresh.text);
    this.#messages.added(slot, cursor, fresh);
    this.#agents.heads.setEnd(slot, { cursor, rows: end.rows + 1 });
    return { cursor, follows: end.cursor };
  }

  /** Adds the rows of a tree that has none, each under its cursor or a new one; returns the cursors. */
  restore(rows: readonly (RestoredRow & { readonly slot: AgentSlot })[]): number[] {
    // By their keys, because the cache of slots may be emptied meanwhile.
    const ends = new Map<number, { readonly slot: AgentSlot; cursor: number; readonly places: Map<string, number> }>();
    let before = 0;
    const cursors = rows.map(({ row, slot, cursor = this.#nextCursor() }, index) => {
      const end = ends.get(slot.id) ?? { slot, cursor: 0, places: new Map<string, number>() };
      const messages = row.messages.filter(({ id }) => !end.places.has(id));
      for (const { id } of messages) end.places.set(id, cursor);
      const text = messages.length > 0 ? textOfMessages(messages) : null;
      this.#insert(slot, { cursor, previous: end.cursor, before, number: index + 1 }, row.entries, text);
      ends.set(slot.id, Object.assign(end, { cursor }));
      before = cursor;
      return cursor;
    });
    for (const { slot, cursor, places } of ends.values()) {
      this.#messages.restore(slot, [...places]);
      this.#agents.heads.place(slot, cursor);
    }
    const [first] = ends.values();
    if (first) this.#agents.heads.writeEnd(first.slot.tree, { cursor: before, rows: rows.length });
    return cursors;
  }

  /** From the row that holds `fromSeq` on. */
  rowsFrom(slot: AgentSlot, fromSeq: number): JournalRow[] {
    const rows: JournalRow[] = [];
    for (const { row } of rowsBack(slot, this.#agents.heads.read(slot).cursor, this.#statements.entries)) {
      if (integerOf(row, "last_seq", "a row of the journal") < fromSeq) break;
      rows.push(journalRowOf(row, slot.record.value.agentId));
    }
    return rows.toReversed();
  }

  entriesAt(slot: AgentSlot, cursor: number): readonly Entry[] {
    return journalRowOf(rowAt(slot, cursor, this.#statements.entries), slot.record.value.agentId).entries;
  }

  treeRows(tree: number, after: number, limit: number): JournalRow[] {
    const ends = this.#endsOf(tree, after, limit);
    if (ends.length === 0) return [];
    const rows = this.#statements.rows.all({ ends: JSON.stringify(ends), after, limit });
    return rows.map((row) => journalRowOf(row, textOf(row, "agent_id", "a row of agents"))).sort(byCursor);
  }

  storedRows(tree: number): StoredRow[] {
    const ends = this.#endsOf(tree, 0, Number.MAX_SAFE_INTEGER);
    const rows = this.#statements.wholeRows.all({ ends: JSON.stringify(ends), after: 0, limit: -1 });
    const whole = rows.map((row) => {
      const agentId = textOf(row, "agent_id", "a row of agents");
      return { ...journalRowOf(row, agentId), messages: messagesOf(row, agentId) };
    });
    return whole.sort(byCursor);
  }

  removeTree(tree: number): void {
    this.#statements.noteCursor.change();
    const { rows } = this.#agents.heads.end(tree);
    const ends = this.#endsOf(tree, 0, Number.MAX_SAFE_INTEGER);
    const removed = this.#statements.remove.change({ ends: JSON.stringify(ends), after: 0 });
    // In a damaged file not all rows are reached.
    if (removed !== rows) this.#statements.removeAll.run(tree);
  }

  /** Cursors of rows from which the `limit` rows after `after` are reached, each back to the one before. */
  #endsOf(tree: number, after: number, limit: number): number[] {
    const { cursor: last } = this.#agents.heads.end(tree);
    if (last <= after || limit === 0) return [];
    // The first one may be the only row that it leads to.
    const most = Math.ceil((limit - 1) / ROWS_BETWEEN_MARKS) + 1;
    const marks = this.#statements.marks.all(tree, after, most).map((row) => integerOf(row, "cursor", "a tree's row"));
    return marks.length < most && marks.at(-1) !== last ? [...marks, last] : marks;
  }

  #insert(slot: AgentSlot, place: RowPlace, entries: readonly Entry[], messages: string | null): void {
    const { cursor, previous, before, number } = place;
    const lastSeq = entries.at(-1)?.seq ?? 0;
    const of = [slot.tree, slot.id, previous, before, number, lastSeq, JOURNAL_VERSION] as const;
    const { agentId } = slot.record.value;
    const texts = [packed(textOfEntries(entries), agentId), messages && packed(messages, agentId)] as const;
    this.#statements.add.run(cursor, ...of, ...texts);
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

interface RowPlace {
  readonly cursor: number;
  /** Cursors of the rows before it, of its agent and of its tree (0: none). */
  readonly previous: number;
  readonly before: number;
  /** Counted within its tree, from 1. */
  readonly number: number;
}

/** They mostly come in this order. */
function byCursor(one: JournalRow, other: JournalRow): number {
  return one.cursor - other.cursor;
}

function journalRowOf(row: Row, agentId: string): JournalRow {
  const cursor = integerOf(row, "cursor", "a row of the journal");
  const where = `row ${cursor} of the journal (agent ${agentId})`;
  const version = integerOf(row, "version", where);
  const stored = wholeEntries(jsonOf(unpacked(textOf(row, "entries", where), agentId), where));
  const entries = readEntries(version, stored, where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}
