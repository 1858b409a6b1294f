import type { StatementSync } from "node:sqlite";
import { CorruptRecordError } from "../../errors/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { integerOf, parsed, type Row, textOrNullOf } from "./sqlite-row.ts";
import type { AgentSlot, KeptHead } from "./sqlite-slot.ts";
import { plainOutcome, type StoredOutcome, storedOutcome, storedOutcomeSchema } from "../rules/stored-outcome.ts";
import type { Head, Work } from "../rules/tables.ts";

/** The short rows that every commit rewrites. */
export class SqliteHeads {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<
    Record<"read" | "readOutcome" | "insert" | "update" | "hold" | "place" | "move", StatementSync>
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const state = "epoch = ?, seq = ?, at = ?, sign = ?, batch_id = ?, open_requests = ?";
    this.#statements = {
      read: connection.prepare(
        "SELECT epoch, holder, seq, at, sign, batch_id, open_requests, cursor, work FROM heads WHERE agent = ?",
      ),
      readOutcome: connection.prepare("SELECT outcome FROM heads WHERE agent = ?"),
      insert: connection.prepare("INSERT INTO heads VALUES (?, 0, NULL, 0, 0, 0, NULL, 0, 0, NULL, 'none')"),
      update: connection.prepare(`UPDATE heads SET ${state} WHERE agent = ?`),
      // The index of those at work holds these two: it is left alone while they stay as they are.
      hold: connection.prepare("UPDATE heads SET holder = ?, work = ? WHERE agent = ?"),
      place: connection.prepare("UPDATE heads SET cursor = ? WHERE agent = ?"),
      move: connection.prepare(`UPDATE heads SET ${state}, cursor = ?, outcome = ? WHERE agent = ?`),
    };
  }

  /** For an agent that was just made. */
  add(agent: number): void {
    this.#statements.insert.run(agent);
  }

  read(slot: AgentSlot): KeptHead {
    const { generation, isInTransaction } = this.#connection;
    if (slot.head && isInTransaction && slot.head.generation === generation) return slot.head;
    const where = `the head of agent ${slot.record.value.agentId}`;
    const row = this.#statements.read.get(slot.id);
    if (!row) throw new CorruptRecordError(`${where} is missing`);
    slot.head = { generation, value: headOf(row, where), cursor: integerOf(row, "cursor", where) };
    return slot.head;
  }

  put(slot: AgentSlot, head: Head, outcome?: Committed): void {
    const { generation } = this.#connection;
    const { epoch, holder, seq, at, sign, batchId, openRequests, work } = head;
    const before = this.read(slot);
    let { cursor } = before;
    if (outcome) {
      if (outcome.cursor > 0) cursor = outcome.cursor;
      this.#statements.move.run(epoch, seq, at, sign, batchId, openRequests, cursor, textOf(outcome), slot.id);
    } else {
      this.#statements.update.run(epoch, seq, at, sign, batchId, openRequests, slot.id);
    }
    if (holder !== before.value.holder || work !== before.value.work) this.#statements.hold.run(holder, work, slot.id);
    slot.head = { generation, value: head, cursor };
  }

  /** Names the agent's last row, where rows came otherwise than by a commit. */
  place(slot: AgentSlot, cursor: number): void {
    this.#statements.place.run(cursor, slot.id);
    slot.head = undefined;
  }

  outcome(slot: AgentSlot): StoredOutcome {
    const where = `the last outcome of agent ${slot.record.value.agentId}`;
    const row = this.#statements.readOutcome.get(slot.id);
    const text = row ? textOrNullOf(row, "outcome", where) : null;
    return text === null ? plainOutcome : parsed(storedOutcomeSchema, text, where);
  }
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

function textOf(outcome: Committed): string | null {
  const stored = storedOutcome(outcome);
  return stored ? JSON.stringify(stored) : null;
}
