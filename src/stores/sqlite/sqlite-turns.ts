import { CorruptRecordError } from "../../errors/index.ts";
import { agentOfTurn, numberOfTurn, type TurnRecord, turnRecordSchema } from "../../state/index.ts";
import type { StoredTurn } from "../rules/ports.ts";
import { byChange, type TurnFilter, type TurnListCursor } from "../rules/queries.ts";
import { type Row, textColumn, textOrNullOf, wellFormed } from "../rules/stored-values.ts";
import type { KeyMeaning, TurnChange } from "../rules/tables.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { Statement, StoredValue } from "./sqlite-statement.ts";

const columns =
  "turn_id, number, tenant, session_id, owner_id, turn_key, hash, status, stop_reason, opened_at, changed_at";

/** The rows of turns; they are kept after the end of their turn. */
export class SqliteTurns {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<Record<"put" | "move" | "ofKey" | "ofAgent", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      put: connection.prepare(
        `INSERT OR REPLACE INTO turns (agent, ${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      ),
      move: connection.prepare(
        "UPDATE turns SET status = ?, stop_reason = ?, changed_at = ? WHERE agent = ? AND number = ?",
      ),
      ofKey: connection.prepare("SELECT turn_id, hash FROM turns WHERE agent = ? AND turn_key = ?"),
      ofAgent: connection.prepare(`SELECT ${columns} FROM turns WHERE agent = ? ORDER BY number`),
    };
  }

  put({ id }: AgentSlot, turn: StoredTurn): void {
    const { turnId, number, tenant, sessionId, ownerId, key, hash } = turn;
    const { status, stopReason, openedAt, changedAt } = turn;
    const owners = [turnId, number, tenant, sessionId, ownerId] as const;
    this.#statements.put.run(id, ...owners, key, hash, status, stopReason, openedAt, changedAt);
  }

  move({ id }: AgentSlot, turnId: string, { status, stopReason, changedAt }: TurnChange): void {
    this.#statements.move.run(status, stopReason, changedAt, id, numberOfTurn(turnId));
  }

  ofKey({ id }: AgentSlot, text: string): KeyMeaning | undefined {
    const row = this.#statements.ofKey.get(id, wellFormed(text, "turn key"));
    const where = `the turn of key ${text}`;
    return row && { turnId: textColumn(row, "turn_id", where), hash: textColumn(row, "hash", where) };
  }

  ofAgent({ id }: AgentSlot): StoredTurn[] {
    return this.#statements.ofAgent
      .all(id)
      .map((row) => ({ ...turnIn(row), hash: textOrNullOf(row, "hash", "a turn") }));
  }

  /** `agent`: the integer key of the filter's agent; `null` if it does not exist. */
  list(filter: TurnFilter, agent: number | null | undefined, limit: number, place?: TurnListCursor): TurnRecord[] {
    const lists = turnQueries(filter, agent, place).map(({ sql, values }) =>
      this.#connection
        .prepare(sql)
        .all(...values, limit)
        .map(turnIn),
    );
    const [only = [], ...others] = lists;
    return others.length === 0 ? only : lists.flat().sort(byChange).slice(0, limit);
  }
}

interface TurnQuery {
  readonly sql: string;
  /** Append the limit to the values. */
  readonly values: readonly StoredValue[];
}

/**
 * Each query reads one index, because no index contains both unfinished and ended turns. A plus prevents SQLite from using the index of a
 * column.
 */
export function turnQueries(
  { tenant, sessionId, ownerId, status }: TurnFilter,
  agent: number | null | undefined,
  place: TurnListCursor | undefined,
): TurnQuery[] {
  const query = (state?: "stop_reason IS NULL" | "stop_reason IS NOT NULL"): TurnQuery => {
    const conditions: string[] = state ? [state] : [];
    const values: StoredValue[] = [];
    const only = (condition: string, ...given: StoredValue[]): void => {
      conditions.push(condition);
      values.push(...given);
    };
    if (agent === undefined) only("tenant = ?", wellFormed(tenant, "tenant"));
    else only("agent = ?", agent);
    if (sessionId !== undefined) only(`${ownerId === undefined ? "" : "+"}session_id = ?`, sessionId);
    if (ownerId !== undefined) only("owner_id = ?", ownerId);
    if (status !== undefined) only("status = ?", status);
    if (place) {
      const { changedAt, turnId } = place;
      only("changed_at <= ? AND (changed_at < ? OR turn_id > ?)", changedAt, changedAt, turnId);
    }
    const sql = `SELECT ${columns} FROM turns WHERE ${conditions.join(" AND ")} ORDER BY changed_at DESC, turn_id LIMIT ?`;
    return { sql, values };
  };
  if (agent !== undefined) return [query()];
  const isOfUnfinished = status === "queued" || status === "open";
  if (status !== undefined) return [query(isOfUnfinished ? "stop_reason IS NULL" : "stop_reason IS NOT NULL")];
  return [query("stop_reason IS NULL"), query("stop_reason IS NOT NULL")];
}

function turnIn(row: Row): TurnRecord {
  const turnId = textColumn(row, "turn_id", "a turn");
  const { number, tenant, status } = row;
  const turn = turnRecordSchema.safeParse({
    turnId,
    number,
    tenant,
    status,
    agentId: agentOfTurn(turnId),
    sessionId: row["session_id"],
    ownerId: row["owner_id"],
    key: row["turn_key"],
    stopReason: row["stop_reason"],
    openedAt: row["opened_at"],
    changedAt: row["changed_at"],
  });
  if (turn.success) return turn.data;
  const [issue] = turn.error.issues;
  throw new CorruptRecordError(`turn ${turnId}: ${issue?.message} at ${issue?.path.join(".")}; it is not changed`);
}
