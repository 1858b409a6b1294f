import type { AgentKey, AgentRecord, AgentRequest, TurnRecord } from "../../state/index.ts";
import type { AgentFilter, AgentListCursor, RequestFilter, TurnFilter, TurnListCursor } from "../rules/queries.ts";
import { integerOf, textColumn } from "../rules/stored-values.ts";
import { prepared, type Query } from "../../postgres/index.ts";
import { recordIn, requestIn } from "./postgres-loads.ts";
import { columnsOfTurns, inSchema, turnIn } from "./postgres-reader.ts";
import { columnsOf, columnText, textOfColumn, treeOf } from "./postgres-text.ts";

/** Lists over all trees. The cost of each grows with the size of its result, because each reads one index in its order. */
export class PostgresLists {
  readonly #schema: string;

  constructor(schema: string) {
    this.#schema = schema;
  }

  async agents(query: Query, filter: AgentFilter, limit: number, place?: AgentListCursor): Promise<AgentRecord[]> {
    const { tenant, rootAgentId, sessionId, ownerId, rootsOnly, after, order } = filter;
    const isNewest = order === "newest";
    const list = new ListQuery(this.#schema);
    list.only("tenant = ?::text", columnText(tenant, "tenant"));
    if (rootAgentId !== undefined) list.ofTree(tenant, rootAgentId);
    if (sessionId !== undefined) list.only("session_id = ?::text", columnText(sessionId, "session id"));
    if (ownerId !== undefined) list.only("owner_id = ?::text", columnText(ownerId, "owner id"));
    if (!isNewest && after !== undefined) list.only("agent_id > ?::text", columnText(after, "agent id"));
    if (place) {
      const { createdAt, agentId } = place;
      list.only(
        "created_at <= ?::bigint AND (created_at < ?::bigint OR agent_id > ?::text)",
        createdAt,
        createdAt,
        columnText(agentId, "agent id"),
      );
    }
    if (rootsOnly) list.only("parent IS NULL");
    const sorting = isNewest ? "created_at DESC, agent_id" : "agent_id";
    const rows = await list.rows(query, "agent_id, record AS body FROM $agents", `ORDER BY ${sorting}`, limit);
    const records = rows.map((row) =>
      recordIn(row, { tenant, agentId: textOfColumn(textColumn(row, "agent_id", "an agent")) }),
    );
    return rootAgentId === undefined ? records : records.filter((record) => record.rootAgentId === rootAgentId);
  }

  async requests(
    query: Query,
    filter: RequestFilter,
    after: AgentRequest | undefined,
    limit: number,
  ): Promise<AgentRequest[]> {
    const { tenant, rootAgentId, agentId, turnId, ownerId, status } = filter;
    const list = new ListQuery(this.#schema);
    list.only("tenant = ?::text", columnText(tenant, "tenant"));
    if (agentId !== undefined) {
      list.ofTree(tenant, agentId);
      list.only("agent_id = ?::text", columnText(agentId, "agent id"));
    }
    if (rootAgentId !== undefined) list.ofTree(tenant, rootAgentId);
    if (turnId !== undefined) list.only("turn_id = ?::text", columnText(turnId, "turn id"));
    if (ownerId !== undefined) list.only("owner_id = ?::text", columnText(ownerId, "owner id"));
    // A literal, so that Postgres uses an index of open requests.
    if (status === "open") list.only("status = 'open'");
    else if (status !== undefined) list.only("status = ?::text", status);
    if (after) {
      list.only(
        "(opened_at, request_id) > (?::bigint, ?::text)",
        after.openedAt,
        columnText(after.requestId, "request id"),
      );
    }
    const columns = "request_id AS sub, request AS body FROM $requests";
    const rows = await list.rows(query, columns, "ORDER BY opened_at, request_id", limit);
    const found = rows.map((row) => requestIn(row));
    return rootAgentId === undefined ? found : found.filter((request) => request.rootAgentId === rootAgentId);
  }

  /** No index contains both unfinished and ended turns, so both are read and merged. */
  async turns(query: Query, filter: TurnFilter, limit: number, place?: TurnListCursor): Promise<TurnRecord[]> {
    const { tenant, agentId, sessionId, ownerId, status } = filter;
    const list = new ListQuery(this.#schema);
    list.only("tenant = ?::text", columnText(tenant, "tenant"));
    if (agentId !== undefined) {
      list.ofTree(tenant, agentId);
      list.only("agent_id = ?::text", columnText(agentId, "agent id"));
    }
    if (sessionId !== undefined) list.only("session_id = ?::text", columnText(sessionId, "session id"));
    if (ownerId !== undefined) list.only("owner_id = ?::text", columnText(ownerId, "owner id"));
    if (status !== undefined) list.only("status = ?::text", status);
    if (place) {
      const { changedAt, turnId } = place;
      list.only(
        "changed_at <= ?::bigint AND (changed_at < ?::bigint OR turn_id > ?::text)",
        changedAt,
        changedAt,
        columnText(turnId, "turn id"),
      );
    }
    const isOfUnfinished = status === "queued" || status === "open";
    const states = ["stop_reason IS NULL", "stop_reason IS NOT NULL"];
    const wanted = status === undefined ? states : states.slice(isOfUnfinished ? 0 : 1, isOfUnfinished ? 1 : 2);
    const rows = await list.union(query, { columns: `${columnsOfTurns} FROM $turns`, each: wanted, limit });
    return rows.map((row) => turnIn(row));
  }

  /** Those of the given agents whose inbox is not empty. */
  async posted(query: Query, keys: readonly AgentKey[]): Promise<AgentKey[]> {
    const trees = keys.map(({ tenant, agentId }) => columnsOf(treeOf(tenant, agentId)));
    const rows = await query(
      prepared(
        inSchema(
          `SELECT place FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u (tenant, root, agent_id, place)
           JOIN $trees AS t USING (tenant, root)
           WHERE EXISTS (SELECT 1 FROM $inbox AS i WHERE i.tree = t.id AND i.agent_id = u.agent_id) ORDER BY place`,
          this.#schema,
        ),
      ),
      [
        trees.map(([tenant]) => tenant),
        trees.map(([, root]) => root),
        keys.map(({ agentId }) => columnText(agentId, "agent id")),
      ],
    );
    return rows.flatMap((row) => keys[integerOf(row, "place", "a posted agent") - 1] ?? []);
  }
}

/** A query whose conditions depend on a filter. Values only become parameters. */
class ListQuery {
  readonly #schema: string;
  readonly #conditions: string[] = [];
  readonly #values: unknown[] = [];

  constructor(schema: string) {
    this.#schema = schema;
  }

  /** Each question mark stands for the next value. */
  only(condition: string, ...values: readonly unknown[]): void {
    let at = 0;
    this.#conditions.push(
      condition.replaceAll("?", () => {
        at += 1;
        return `$${this.#values.push(values[at - 1])}`;
      }),
    );
  }

  ofTree(tenant: string, agentId: string): void {
    const [tenantColumn, root] = columnsOf(treeOf(tenant, agentId));
    this.only("tree = (SELECT id FROM $trees WHERE tenant = ?::text AND root = ?::text)", tenantColumn, root);
  }

  async rows(query: Query, columns: string, order: string, limit: number) {
    const text = `SELECT ${columns} WHERE ${this.#conditions.join(" AND ")} ${order} LIMIT $${this.#values.push(limit)}::bigint`;
    return await query(prepared(inSchema(text, this.#schema)), this.#values);
  }

  /** The newest changes among the rows of several conditions. */
  async union(
    query: Query,
    { columns, each, limit }: { readonly columns: string; readonly each: readonly string[]; readonly limit: number },
  ) {
    const last = `ORDER BY changed_at DESC, turn_id LIMIT $${this.#values.push(limit)}::bigint`;
    const parts = each.map((one) => `(SELECT ${columns} WHERE ${[...this.#conditions, one].join(" AND ")} ${last})`);
    const text = parts.length === 1 ? (parts[0] ?? "") : `${parts.join(" UNION ALL ")} ${last}`;
    return await query(prepared(inSchema(text, this.#schema)), this.#values);
  }
}
