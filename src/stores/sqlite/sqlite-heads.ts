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
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement } from "./sqlite-statement.ts";

/** The cached data of an agent: its integer keys, and its rows with the generation in which each matches the file. */
export interface AgentSlot {
  readonly id: number;
  readonly root: number;
  readonly record: { generation: number; text: string; value: AgentRecord };
  head: { readonly generation: number; readonly value: Head } | undefined;
}

/** The rows that each commit of an agent changes. */
export class SqliteHeads {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<
    Record<"read" | "readOutcome" | "insert" | "move" | "moveAndTell" | "hold" | "holdAndTell", Statement>
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const state = "epoch = ?, seq = ?, at = ?, sign = ?, batch_id = ?, open_requests = ?";
    this.#statements = {
      read: connection.prepare(
        "SELECT epoch, holder, seq, at, sign, batch_id, open_requests, work FROM heads WHERE agent = ?",
      ),
      readOutcome: connection.prepare("SELECT outcome FROM heads WHERE agent = ?"),
      insert: connection.prepare(
        "INSERT INTO heads (agent, epoch, seq, at, sign, open_requests, work) VALUES (?, 0, 0, 0, 0, 0, 'none')",
      ),
      move: connection.prepare(`UPDATE heads SET ${state} WHERE agent = ?`),
      moveAndTell: connection.prepare(`UPDATE heads SET ${state}, outcome = ? WHERE agent = ?`),
      // The columns of an index, which most commits do not change.
      hold: connection.prepare(`UPDATE heads SET ${state}, holder = ?, work = ? WHERE agent = ?`),
      holdAndTell: connection.prepare(`UPDATE heads SET ${state}, holder = ?, work = ?, outcome = ? WHERE agent = ?`),
    };
  }

  /** Adds the head of a new agent. */
  add(slot: AgentSlot): void {
    this.#statements.insert.run(slot.id);
    slot.head = { generation: this.#connection.generation, value: freshHead };
  }

  read(slot: AgentSlot): Head {
    if (slot.head && this.#connection.isCurrent(slot.head.generation)) return slot.head.value;
    const where = `the head of agent ${slot.record.value.agentId}`;
    const row = this.#statements.read.get(slot.id);
    if (!row) throw new CorruptRecordError(`${where} is missing`);
    const value = headOf(row, where);
    slot.head = { generation: this.#connection.generation, value };
    return value;
  }

  put(slot: AgentSlot, head: Head, outcome?: Committed): void {
    const before = this.read(slot);
    const { epoch, holder, seq, at, sign, batchId, openRequests, work } = head;
    const state = [epoch, seq, at, sign, batchId, openRequests] as const;
    const told = outcome ? [outcomeText(outcome)] : [];
    const { move, moveAndTell, hold, holdAndTell } = this.#statements;
    if (holder === before.holder && work === before.work) {
      (outcome ? moveAndTell : move).run(...state, ...told, slot.id);
    } else {
      (outcome ? holdAndTell : hold).run(...state, holder, work, ...told, slot.id);
    }
    slot.head = { generation: this.#connection.generation, value: head };
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
  throw new CorruptRecordError(`${where}: the column work holds ${JSON.stringify(work)}; it is not changed`);
}

function outcomeText(outcome: Committed): string | null {
  const stored = storedOutcome(outcome);
  return stored ? JSON.stringify(stored) : null;
}
