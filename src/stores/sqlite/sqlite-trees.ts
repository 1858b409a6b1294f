import type { StatementSync } from "node:sqlite";
import type { AgentKey, AgentRecord } from "../../state/index.ts";
import type { RestlessTables, RestoredRow } from "../rules/local-tables.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteProjections } from "./sqlite-projections.ts";
import { SqliteRestless } from "./sqlite-restless.ts";
import { SqliteTables } from "./sqlite-tables.ts";
import type { StoredRow, StoredTree } from "../rules/stored-tree.ts";

/** Tables whose rows belong to an agent. */
const agentTables = ["heads", "messages", "artifacts", "requests", "inbox", "timers"];

/** Whole trees, to take them out and put them in, and how far projections of them have come. */
export class SqliteTrees extends SqliteTables implements RestlessTables {
  readonly #connection: SqliteConnection;
  readonly #projections: SqliteProjections;
  readonly #restless: SqliteRestless;
  readonly #noteCursor: StatementSync;
  /** In this order: agents last, because the others are found by them. */
  readonly #deletions: readonly StatementSync[];

  constructor(connection: SqliteConnection) {
    super(connection);
    this.#connection = connection;
    this.#projections = new SqliteProjections(connection);
    this.#restless = new SqliteRestless(connection);
    this.#noteCursor = connection.prepare(
      "UPDATE last_removed SET cursor = max(cursor, (SELECT coalesce(max(cursor), 0) FROM journal))",
    );
    const ofAgents = agentTables.map(
      (table) => `DELETE FROM ${table} WHERE agent IN (SELECT id FROM agents WHERE tree = ?)`,
    );
    const ofTree = ["journal", "agents"].map((table) => `DELETE FROM ${table} WHERE tree = ?`);
    this.#deletions = [...ofAgents, ...ofTree].map((sql) => connection.prepare(sql));
  }

  /** In the order in which they were made. */
  restless(
    tenant: string,
    isLiving: (processId: string) => boolean,
    after: string | undefined,
    limit: number,
  ): Iterable<AgentKey> {
    const start = after === undefined ? 0 : (this.agentRows.find({ tenant, agentId: after })?.id ?? 0);
    return this.#restless.after(tenant, isLiving, start, Math.max(1, limit));
  }

  agentsOfTree(tenant: string, rootAgentId: string): AgentRecord[] {
    const tree = this.agentRows.treeOf(tenant, rootAgentId);
    return tree === undefined ? [] : this.agentRows.ofTree(tree);
  }

  storedRows(tenant: string, rootAgentId: string): StoredRow[] {
    const tree = this.agentRows.treeOf(tenant, rootAgentId);
    return tree === undefined ? [] : this.journal.storedRows(tree);
  }

  /** The row of the tree itself stays, and so does its key. */
  removeTree(tenant: string, rootAgentId: string): void {
    const tree = this.agentRows.treeOf(tenant, rootAgentId);
    if (tree === undefined) return;
    this.#noteCursor.run();
    for (const deletion of this.#deletions) deletion.run(tree);
    this.removeAccounts(tree);
    this.#connection.forget();
  }

  restoreRows(tenant: string, rows: readonly RestoredRow[]): number[] {
    const last = new Map<string, number>();
    const cursors = rows.map(({ row, cursor }) => {
      const slot = this.agentRows.required({ tenant, agentId: row.agentId });
      const given = this.journal.add(slot, last.get(row.agentId) ?? 0, row, cursor);
      last.set(row.agentId, given);
      return given;
    });
    for (const [agentId, cursor] of last)
      this.agentRows.heads.place(this.agentRows.required({ tenant, agentId }), cursor);
    return cursors;
  }

  projections(tenant: string, rootAgentId: string): StoredTree["projections"] {
    return this.#projections.ofTree(tenant, rootAgentId);
  }

  projectionCursor(tenant: string, name: string, rootAgentId: string): number {
    return this.#projections.cursor(tenant, name, rootAgentId);
  }

  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    this.#projections.move(tenant, name, rootAgentId, cursor);
  }
}
