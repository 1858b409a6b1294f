import { z } from "zod";
import { CorruptRecordError } from "../../errors/index.ts";
import { type Message, messageSchema } from "../../state/index.ts";
import { textOfMessages, wholeMessages } from "../rules/short-forms.ts";
import { fitting, integerOf, jsonOf, type Row, textOrNullOf, wellFormed } from "../rules/stored-values.ts";
import type { SqliteAgents } from "./sqlite-agents.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot, LateMessages } from "./sqlite-heads.ts";
import type { Statement } from "./sqlite-statement.ts";

const messagesSchema = z.array(messageSchema);

/** How many of an agent's last rows are read to find a message; the places of those before are in a table. */
const MOST_LATE_ROWS = 32;
/** Characters of messages in one row from which on its places are stored with the next row. */
const LONG_ROW = 16_384;

/**
 * Where the messages of the journal's rows are. Those of an agent's last rows are found by reading these rows, so that
 * most commits do not write places; then the places of all of them are written at once.
 */
export class SqliteMessages {
  readonly #connection: SqliteConnection;
  readonly #agents: SqliteAgents;
  readonly #statements: Readonly<
    Record<"messages" | "seek" | "find" | "addPlaces" | "emptyRow" | "emptyRows" | "emptyPlaces", Statement>
  >;

  constructor(connection: SqliteConnection, agents: SqliteAgents) {
    this.#connection = connection;
    this.#agents = agents;
    this.#statements = {
      messages: connection.prepare("SELECT previous, messages FROM journal WHERE cursor = ? AND agent = ?"),
      seek: connection.prepare(
        `WITH RECURSIVE back (cursor, previous, messages) AS (
           SELECT cursor, previous, messages FROM journal WHERE cursor = $last AND agent = $agent
           UNION ALL
           SELECT journal.cursor, journal.previous, journal.messages FROM back JOIN journal ON journal.cursor = back.previous
           WHERE back.previous > $placed AND back.previous < back.cursor AND journal.agent = $agent
         ) SELECT cursor, messages FROM back WHERE instr(messages, $part) > 0`,
      ),
      find: connection.prepare("SELECT cursor FROM messages WHERE agent = ? AND message_id = ?"),
      addPlaces: connection.prepare(
        `INSERT INTO messages SELECT ?, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)
         WHERE true ON CONFLICT DO NOTHING`,
      ),
      emptyRow: connection.prepare("UPDATE journal SET messages = NULL WHERE cursor = ?"),
      emptyRows: connection.prepare(
        "UPDATE journal SET messages = NULL WHERE cursor IN (SELECT cursor FROM messages WHERE agent = ?)",
      ),
      emptyPlaces: connection.prepare("DELETE FROM messages WHERE agent = ?"),
    };
  }

  /**
   * The JSON text of those messages whose id is not stored yet, for the agent's next row; null if there are none. Call
   * `added` once the row is there.
   */
  fresh(slot: AgentSlot, messages: readonly Message[]): { readonly text: string | null; readonly ids: string[] } {
    if (messages.length === 0) return { text: null, ids: [] };
    const late = this.#late(slot);
    const ids = new Set<string>();
    const fresh = messages.filter(({ id }) => {
      if (ids.has(id) || late.cursors.has(wellFormed(id, "message id")) || this.#isPlaced(slot, id)) return false;
      ids.add(id);
      return true;
    });
    return { text: fresh.length > 0 ? textOfMessages(fresh) : null, ids: [...ids] };
  }

  /** Must be called after a row was added, before the agent's head is written. */
  added(slot: AgentSlot, cursor: number, { text, ids }: ReturnType<SqliteMessages["fresh"]>): void {
    const { cursor: previous } = this.#agents.heads.read(slot);
    const known = this.#late(slot);
    const isFull = known.rows >= MOST_LATE_ROWS;
    const late = isFull ? this.#place(slot, known) : known;
    // The same map: when this is undone, all that is cached of the agent is forgotten.
    const { cursors } = late;
    for (const id of ids) cursors.set(id, cursor);
    const rows = late.rows + (text !== null && text.length > LONG_ROW ? MOST_LATE_ROWS : 1);
    slot.late = { cursor, placed: isFull ? previous : late.placed, rows, cursors };
  }

  /** Stores the places of messages in rows of an agent that were just restored, up to its last row. */
  restore(slot: AgentSlot, places: readonly (readonly [id: string, cursor: number])[]): void {
    this.#connection.noteRow(placesName(slot));
    if (places.length > 0) this.#statements.addPlaces.run(slot.id, JSON.stringify(places));
  }

  /** Deletes the messages from the agent's rows. */
  clear(slot: AgentSlot): void {
    for (const cursor of new Set(this.#late(slot).cursors.values())) this.#statements.emptyRow.run(cursor);
    this.#connection.noteRow(placesName(slot));
    this.#statements.emptyRows.run(slot.id);
    this.#statements.emptyPlaces.run(slot.id);
    const { cursor } = this.#agents.heads.read(slot);
    this.#agents.heads.setPlaced(slot, cursor);
    slot.late = undefined;
  }

  /** The newest messages, oldest first. */
  newest(slot: AgentSlot, count = Number.POSITIVE_INFINITY): Message[] {
    const parts: Message[][] = [];
    let missing = count;
    if (missing > 0) {
      for (const { row } of rowsBack(slot, this.#agents.heads.read(slot).cursor, this.#statements.messages)) {
        const messages = messagesOf(row, slot.record.value.agentId).slice(-missing);
        parts.push(messages);
        missing -= messages.length;
        if (missing <= 0) break;
      }
    }
    return parts.toReversed().flat();
  }

  byId(slot: AgentSlot, ids: readonly string[]): Message[] {
    const rows = new Map<number, Message[]>();
    const late = this.#isAskedAgain(slot) ? this.#late(slot).cursors : this.#sought(slot, ids);
    return ids.flatMap((id) => {
      const cursor = late.get(wellFormed(id, "message id")) ?? this.#placeOf(slot, id);
      if (cursor === undefined) return [];
      let messages = rows.get(cursor);
      if (!messages) {
        messages = messagesOf(rowAt(slot, cursor, this.#statements.messages), slot.record.value.agentId);
        rows.set(cursor, messages);
      }
      return messages.find((message) => message.id === id) ?? [];
    });
  }

  /** Whether the agent's last rows are known, or were looked through since the last one came. */
  #isAskedAgain(slot: AgentSlot): boolean {
    const { cursor } = this.#agents.heads.read(slot);
    const isAskedAgain = slot.late?.cursor === cursor || slot.soughtAt === cursor;
    slot.soughtAt = cursor;
    return isAskedAgain;
  }

  /**
   * The rows of these messages, if they are among the agent's last ones: only rows whose text has an id are read. If one is in
   * none of them, all are, since a damaged row is not to look like a message that does not exist.
   */
  #sought(slot: AgentSlot, ids: readonly string[]): Map<string, number> {
    const { cursor: last, placed } = this.#agents.heads.read(slot);
    const { agentId } = slot.record.value;
    const found = new Map<string, number>();
    for (const id of ids) {
      if (found.has(id) || (placed > 0 && this.#placeOf(slot, id) !== undefined)) continue;
      const part = packed(JSON.stringify(wellFormed(id, "message id")), agentId);
      for (const row of this.#statements.seek.iterate({ agent: slot.id, last, placed, part })) {
        const cursor = integerOf(row, "cursor", `a row of agent ${agentId}`);
        for (const message of messagesOf(row, agentId)) found.set(message.id, cursor);
        if (found.has(id)) break;
      }
      if (!found.has(id)) return this.#late(slot).cursors;
    }
    return found;
  }

  #late(slot: AgentSlot): LateMessages {
    const { cursor, placed } = this.#agents.heads.read(slot);
    // Rows do not change while the agent's last one is the same, so what was read of them stays true.
    if (slot.late?.cursor === cursor && slot.late.placed === placed) return slot.late;
    const cursors = new Map<string, number>();
    let rows = 0;
    for (const { row, cursor: at } of rowsBack(slot, cursor, this.#statements.messages)) {
      if (at <= placed) break;
      for (const { id } of messagesOf(row, slot.record.value.agentId)) cursors.set(id, at);
      rows += 1;
    }
    slot.late = { cursor, placed, rows, cursors };
    return slot.late;
  }

  /** Stores the places of all messages so far. */
  #place(slot: AgentSlot, late: LateMessages): LateMessages {
    this.#connection.noteRow(placesName(slot));
    if (late.cursors.size > 0) this.#statements.addPlaces.run(slot.id, JSON.stringify([...late.cursors]));
    this.#agents.heads.setPlaced(slot, late.cursor);
    return { ...late, rows: 0, cursors: new Map() };
  }

  #isPlaced(slot: AgentSlot, id: string): boolean {
    return this.#agents.heads.read(slot).placed > 0 && this.#placeOf(slot, id) !== undefined;
  }

  #placeOf(slot: AgentSlot, id: string): number | undefined {
    const { find } = this.#statements;
    const isLater = this.#connection.isLater(placesName(slot));
    const place = isLater ? find.get(slot.id, id) : find.getAside(slot.id, id);
    return place && integerOf(place, "cursor", `the place of message ${id}`);
  }
}

function placesName({ id }: AgentSlot): string {
  return `places ${id}`;
}

/** The agent's rows, last one first. */
export function* rowsBack(
  slot: AgentSlot,
  lastCursor: number,
  statement: Statement,
): Generator<{ readonly row: Row; readonly cursor: number }> {
  for (let cursor = lastCursor; cursor > 0; ) {
    const row = rowAt(slot, cursor, statement);
    yield { row, cursor };
    const previous = integerOf(row, "previous", `row ${cursor} of the journal`);
    if (previous < 0 || previous >= cursor) {
      throw new CorruptRecordError(`row ${cursor} of the journal names row ${previous} as the one before it`);
    }
    cursor = previous;
  }
}

export function rowAt(slot: AgentSlot, cursor: number, statement: Statement): Row {
  const row = statement.get(cursor, slot.id);
  if (row) return row;
  throw new CorruptRecordError(`the journal lacks row ${cursor} of agent ${slot.record.value.agentId}`);
}

export function messagesOf(row: Row, agentId: string): Message[] {
  const where = `the messages of agent ${agentId}`;
  const text = textOrNullOf(row, "messages", where);
  return text === null ? [] : fitting(messagesSchema, wholeMessages(jsonOf(unpacked(text, agentId), where)), where);
}

/** Stands for the agent's id, which is a third of most rows; JSON text holds no such character. */
const OWN_ID = "\u0001";
/** A shorter id is left as it is, because it is also a part of words. */
const LONG_ID = 8;

/** JSON text of an agent's row, as it is stored. */
export function packed(text: string, agentId: string): string {
  return agentId.length < LONG_ID ? text : text.replaceAll(JSON.stringify(agentId).slice(1, -1), OWN_ID);
}

export function unpacked(text: string, agentId: string): string {
  return text.split(OWN_ID).join(JSON.stringify(agentId).slice(1, -1));
}
