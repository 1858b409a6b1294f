import type { SQLInputValue, StatementSync } from "node:sqlite";
import { CorruptRecordError } from "../../errors/index.ts";
import { type AgentRequest, agentRequestSchema } from "../../state/index.ts";
import type { RequestFilter } from "../rules/queries.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { parsed, type Row, textOf, wellFormed } from "./sqlite-row.ts";
import type { AgentSlot } from "./sqlite-slot.ts";

/** What a filter's agent and root are in the file; null for those that are not there. */
export interface RequestPlace {
  readonly agent?: number | null | undefined;
  readonly tree?: number | null | undefined;
}

/** The rows of requests; they stay after they were decided. */
export class SqliteRequests {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<Record<"find" | "put" | "open", StatementSync>>;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      find: connection.prepare("SELECT request_id, request FROM requests WHERE agent = ? AND request_id = ?"),
      put: connection.prepare(
        `INSERT INTO requests (agent, request_id, tenant, tree, turn_id, status, opened_at, request)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (agent, request_id) DO UPDATE SET status = excluded.status, request = excluded.request`,
      ),
      open: connection.prepare(
        "SELECT request_id, request FROM requests WHERE agent = ? AND turn_id = ? AND status = 'open'",
      ),
    };
  }

  find(slot: AgentSlot, requestId: string): AgentRequest | undefined {
    const row = this.#statements.find.get(slot.id, wellFormed(requestId, "request id"));
    return row && requestIn(row);
  }

  put(slot: AgentSlot, request: AgentRequest): void {
    const { requestId, tenant, turnId, status, openedAt } = request;
    const id = wellFormed(requestId, "request id");
    const turn = wellFormed(turnId, "turn id");
    this.#statements.put.run(slot.id, id, tenant, slot.tree, turn, status, openedAt, JSON.stringify(request));
  }

  openOf(slot: AgentSlot, turnId: string): AgentRequest[] {
    return this.#statements.open.all(slot.id, wellFormed(turnId, "turn id")).map(requestIn);
  }

  list(
    filter: RequestFilter,
    { agent, tree }: RequestPlace,
    after: AgentRequest | undefined,
    limit: number,
  ): AgentRequest[] {
    const conditions = ["tenant = ?"];
    const values: SQLInputValue[] = [wellFormed(filter.tenant, "tenant")];
    const only = (condition: string, ...given: SQLInputValue[]): void => {
      conditions.push(condition);
      values.push(...given);
    };
    if (agent !== undefined) only("agent = ?", agent);
    if (tree !== undefined) only("tree = ?", tree);
    if (filter.turnId !== undefined) only("turn_id = ?", wellFormed(filter.turnId, "turn id"));
    // Written out, so that the index over the open ones is used.
    if (filter.status === "open") only("status = 'open'");
    else if (filter.status !== undefined) only("status = ?", filter.status);
    if (after) only("(opened_at, request_id) > (?, ?)", after.openedAt, after.requestId);
    const sql = `SELECT request_id, request FROM requests WHERE ${conditions.join(" AND ")}
      ORDER BY opened_at, request_id LIMIT ?`;
    return this.#connection
      .prepare(sql)
      .all(...values, limit)
      .map(requestIn);
  }
}

function requestIn(row: Row): AgentRequest {
  const id = textOf(row, "request_id", "a request");
  const where = `request ${id}`;
  const request = parsed(agentRequestSchema, textOf(row, "request", where), where);
  if (request.requestId === id) return request;
  throw new CorruptRecordError(`the row of request ${id} holds request ${request.requestId}; it is left as it is`);
}
