import type { StatementSync } from "node:sqlite";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { integerOf, textOf, wellFormed } from "./sqlite-row.ts";
import type { StoredTree } from "../rules/stored-tree.ts";

/** How far projections of trees have come. */
export class SqliteProjections {
  readonly #statements: Readonly<Record<"read" | "move" | "ofTree", StatementSync>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      read: connection.prepare("SELECT cursor FROM projections WHERE tenant = ? AND root_agent_id = ? AND name = ?"),
      move: connection.prepare(
        `INSERT INTO projections (tenant, root_agent_id, name, cursor) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, root_agent_id, name) DO UPDATE SET cursor = max(cursor, excluded.cursor)`,
      ),
      ofTree: connection.prepare("SELECT name, cursor FROM projections WHERE tenant = ? AND root_agent_id = ?"),
    };
  }

  cursor(tenant: string, name: string, rootAgentId: string): number {
    const row = this.#statements.read.get(...keyOf(tenant, rootAgentId), wellFormed(name, "projection name"));
    return row ? integerOf(row, "cursor", `projection ${name}`) : 0;
  }

  move(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    if (cursor > 0)
      this.#statements.move.run(...keyOf(tenant, rootAgentId), wellFormed(name, "projection name"), cursor);
  }

  ofTree(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const where = `the projections of ${rootAgentId}`;
    return this.#statements.ofTree
      .all(...keyOf(tenant, rootAgentId))
      .map((row) => ({ name: textOf(row, "name", where), cursor: integerOf(row, "cursor", where) }));
  }
}

function keyOf(tenant: string, rootAgentId: string): [string, string] {
  return [wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id")];
}
