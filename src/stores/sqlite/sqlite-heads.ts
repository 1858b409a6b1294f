import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import {
  integerOf,
  parsed,
  plainOutcome,
  type Row,
  type StoredOutcome,
  storedOutcome,
  storedOutcomeSchema,
  textOrNullOf,
} from "../rules/stored-values.ts";
import { freshHead, type Head, type Work } from "../rules/tables.ts";
import { placesOfTree } from "./sqlite-accounts.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement } from "./sqlite-statement.ts";

const CAPACITY = 4000;

/** A value with the text it was read from or written as. */
interface Cached<T> {
  /** The generation in which it was last known to match the file. */
  generation: number;
  text: string;
  value: T;
}

/** A cached head, with the agent's place in the journal. */
interface KeptHead {
  readonly generation: number;
  readonly value: Head;
  /** Cursor of the agent's last row (0: none). */
  readonly cursor: number;
  /** Cursor of the last row whose messages are in the table of places. */
  readonly placed: number;
}

/** The end of a tree's rows in the journal. */
export interface TreeEnd {
  /** Cursor of the last row (0: none). */
  readonly cursor: number;
  /** How many rows the tree has. */
  readonly rows: number;
}

/** The messages of an agent's last rows that are in no table of places. */
export interface LateMessages {
  /** Of the head for which they are known. */
  readonly cursor: number;
  readonly placed: number;
  readonly rows: number;
  /** The cursor of their row, by message id. */
  readonly cursors: Map<string, number>;
}

/**
 * The cached state of an agent between transactions. An agent that was removed and created again may have another key.
 */
export interface AgentSlot {
  readonly id: number;
  readonly tree: number;
  /** Of its head. */
  readonly place: number;
  readonly record: Cached<AgentRecord>;
  head: KeptHead | undefined;
  late: LateMessages | undefined;
  /** Cursor of its last row when a message was last looked for by its id. */
  soughtAt: number;
}

/** The short rows that every commit rewrites. */
export class SqliteHeads {
  readonly #connection: SqliteConnection;
  readonly #ends = new Map<number, TreeEnd & { readonly generation: number }>();
  readonly #statements: Readonly<
    Record<
      | "read"
      | "readOutcome"
      | "insert"
      | "update"
      | "updateAndHold"
      | "place"
      | "placed"
      | "move"
      | "moveAndHold"
      | "moveTree"
      | "moveTreeAndHold"
      | "end"
      | "moveEnd",
      Statement
    >
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const state = "epoch = ?, seq = ?, at = ?, sign = ?, batch_id = ?, open_requests = ?";
    const moved = `${state}, cursor = ?, outcome = ?`;
    const end = "tree_cursor = ?, tree_rows = ?";
    // These two columns are in an index, which stays untouched while they do not change.
    const hold = "holder = ?, work = ?";
    const head = "epoch, holder, seq, at, sign, batch_id, open_requests, cursor, placed, work";
    this.#statements = {
      read: connection.prepare(`SELECT ${head} FROM standings WHERE place = ? AND agent = ?`),
      readOutcome: connection.prepare("SELECT outcome FROM standings WHERE place = ?"),
      insert: connection.prepare(
        `INSERT INTO standings (place, agent, epoch, seq, at, sign, open_requests, cursor, placed, tree_cursor, tree_rows, work)
         VALUES (?, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'none')`,
      ),
      update: connection.prepare(`UPDATE standings SET ${state} WHERE place = ?`, ["state"]),
      updateAndHold: connection.prepare(`UPDATE standings SET ${state}, ${hold} WHERE place = ?`, ["state", "hold"]),
      place: connection.prepare("UPDATE standings SET cursor = ?, placed = ? WHERE place = ?"),
      placed: connection.prepare("UPDATE standings SET placed = ? WHERE place = ?"),
      move: connection.prepare(`UPDATE standings SET ${moved} WHERE place = ?`, ["state", "cursor", "outcome"]),
      moveAndHold: connection.prepare(`UPDATE standings SET ${moved}, ${hold} WHERE place = ?`, [
        "state",
        "cursor",
        "outcome",
        "hold",
      ]),
      moveTree: connection.prepare(`UPDATE standings SET ${moved}, ${end} WHERE place = ?`, [
        "state",
        "cursor",
        "outcome",
        "end",
      ]),
      moveTreeAndHold: connection.prepare(`UPDATE standings SET ${moved}, ${end}, ${hold} WHERE place = ?`, [
        "state",
        "cursor",
        "outcome",
        "end",
        "hold",
      ]),
      end: connection.prepare("SELECT tree_cursor, tree_rows FROM standings WHERE place = ?"),
      moveEnd: connection.prepare(`UPDATE standings SET ${end} WHERE place = ?`, ["end"]),
    };
  }

  forget(): void {
    this.#ends.clear();
  }

  forgetTree(tree: number): void {
    this.#ends.delete(tree);
  }

  /** For a new agent. */
  add(slot: AgentSlot): void {
    this.#connection.noteRow(rowName(slot));
    this.#statements.insert.run(slot.place, slot.id);
    slot.head = { generation: this.#connection.generation, value: freshHead, cursor: 0, placed: 0 };
    if (isFirst(slot)) this.#keepEnd(slot.tree, { cursor: 0, rows: 0 });
  }

  read(slot: AgentSlot): KeptHead {
    const { generation, isInTransaction } = this.#connection;
    if (slot.head && isInTransaction && slot.head.generation === generation) return slot.head;
    const where = `the head of agent ${slot.record.value.agentId}`;
    const { read } = this.#statements;
    const isLater = this.#connection.isLater(rowName(slot));
    const row = isLater ? read.get(slot.place, slot.id) : read.getAside(slot.place, slot.id);
    if (!row) throw new CorruptRecordError(`${where} is missing`);
    const [cursor, placed] = [integerOf(row, "cursor", where), integerOf(row, "placed", where)];
    slot.head = { generation, value: headOf(row, where), cursor, placed };
    return slot.head;
  }

  put(slot: AgentSlot, head: Head, outcome?: Committed): void {
    const { generation } = this.#connection;
    this.#connection.noteRow(rowName(slot));
    const { epoch, holder, seq, at, sign, batchId, openRequests, work } = head;
    const before = this.read(slot);
    let { cursor } = before;
    const { placed } = before;
    const { update, updateAndHold, move, moveAndHold, moveTree, moveTreeAndHold } = this.#statements;
    const isHeldAlike = holder === before.value.holder && work === before.value.work;
    const state = [epoch, seq, at, sign, batchId, openRequests] as const;
    const hold = isHeldAlike ? [] : [holder, work];
    if (outcome) {
      if (outcome.cursor > 0) cursor = outcome.cursor;
      const moved = [...state, cursor, outcomeText(outcome)] as const;
      if (isFirst(slot)) {
        const end = this.end(slot.tree);
        (isHeldAlike ? moveTree : moveTreeAndHold).run(...moved, end.cursor, end.rows, ...hold, slot.place);
      } else (isHeldAlike ? move : moveAndHold).run(...moved, ...hold, slot.place);
    } else {
      (isHeldAlike ? update : updateAndHold).run(...state, ...hold, slot.place);
    }
    slot.head = { generation, value: head, cursor, placed };
  }

  /** Sets the agent's last row after rows were restored; the places of their messages are stored. */
  place(slot: AgentSlot, cursor: number): void {
    this.#connection.noteRow(rowName(slot));
    this.#statements.place.run(cursor, cursor, slot.place);
    slot.head = undefined;
  }

  /** Notes that the places of the messages up to this row are stored, or that there are no such messages. */
  setPlaced(slot: AgentSlot, placed: number): void {
    this.#connection.noteRow(rowName(slot));
    this.#statements.placed.run(placed, slot.place);
    slot.head = { ...this.read(slot), placed };
  }

  end(tree: number): TreeEnd {
    const { generation, isInTransaction } = this.#connection;
    const known = this.#ends.get(tree);
    if (known && isInTransaction && known.generation === generation) return known;
    const where = `the end of tree ${tree}`;
    const row = this.#statements.end.get(placesOfTree(tree).first);
    const end = row
      ? { cursor: integerOf(row, "tree_cursor", where), rows: integerOf(row, "tree_rows", where) }
      : { cursor: 0, rows: 0 };
    this.#keepEnd(tree, end);
    return end;
  }

  /** After a new row of this agent. That of the tree's first agent is written together with its head. */
  setEnd(slot: AgentSlot, end: TreeEnd): void {
    if (!isFirst(slot)) this.writeEnd(slot.tree, end);
    this.#keepEnd(slot.tree, end);
  }

  writeEnd(tree: number, end: TreeEnd): void {
    this.#statements.moveEnd.run(end.cursor, end.rows, placesOfTree(tree).first);
    this.#keepEnd(tree, end);
  }

  #keepEnd(tree: number, end: TreeEnd): void {
    if (this.#ends.size >= CAPACITY) this.#ends.clear();
    this.#ends.set(tree, { ...end, generation: this.#connection.generation });
  }

  outcome(slot: AgentSlot): StoredOutcome {
    const where = `the last outcome of agent ${slot.record.value.agentId}`;
    const row = this.#statements.readOutcome.get(slot.place);
    const text = row ? textOrNullOf(row, "outcome", where) : null;
    return text === null ? plainOutcome : parsed(storedOutcomeSchema, text, where);
  }
}

function rowName({ id }: AgentSlot): string {
  return `head ${id}`;
}

/** Whether its head is the first of its tree's rows. */
function isFirst({ tree, place }: AgentSlot): boolean {
  return place === placesOfTree(tree).first;
}

function headOf(row: Row, where: string): Head {
  return {
    epoch: integerOf(row, "epoch", where),
    holder: textOrNullOf(row, "holder", where),
    seq: integerOf(row, "seq", where),
    at: integerOf(row, "at", where),
    sign: integerOf(row, "sign", where),
    batchId: textOrNullOf(row, "batch_id", where),
    openRequests: integerOf(row, "open_requests", where),
    work: workOf(row, where),
  };
}

function workOf(row: Row, where: string): Work {
  const work = textOrNullOf(row, "work", where);
  if (work === "none" || work === "open" || work === "parked") return work;
  throw new CorruptRecordError(`${where}: the column work holds ${JSON.stringify(work)}; it is left as it is`);
}

function outcomeText(outcome: Committed): string | null {
  const stored = storedOutcome(outcome);
  return stored ? JSON.stringify(stored) : null;
}
