import { type Deletion, deletionSchema } from "../../state/index.ts";
import type { DeletionQuery } from "../rules/queries.ts";
import { parsed, type Row, textColumn, wellFormed } from "../rules/stored-values.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement, StoredValue } from "./sqlite-statement.ts";

/** The lines that stay of deleted trees. */
export class SqliteDeletions {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<Record<"find" | "put" | "remove", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      find: connection.prepare("SELECT deletion FROM deletions WHERE tenant = ? AND id_hash = ?"),
      put: connection.prepare("INSERT OR REPLACE INTO deletions VALUES (?, ?, ?, ?, ?)"),
      remove: connection.prepare("DELETE FROM deletions WHERE tenant = ? AND id_hash = ?"),
    };
  }

  find(tenant: string, idHash: string): Deletion | undefined {
    const row = this.#statements.find.get(wellFormed(tenant, "tenant"), idHash);
    return row && deletionIn(row);
  }

  put(deletion: Deletion): void {
    const { tenant, idHash, deletedAt, pending } = deletion;
    this.#statements.put.run(tenant, idHash, deletedAt, pending ? 1 : 0, JSON.stringify(deletion));
  }

  remove(tenant: string, idHash: string): void {
    this.#statements.remove.run(wellFormed(tenant, "tenant"), idHash);
  }

  list({ tenant, since, isPending, limit }: DeletionQuery & { readonly limit: number }): Deletion[] {
    const conditions = ["tenant = ?"];
    const values: StoredValue[] = [wellFormed(tenant, "tenant")];
    // A literal, so that SQLite uses the index of pending deletions.
    if (isPending === true) conditions.push("is_pending = 1");
    if (since !== undefined) {
      conditions.push("deleted_at >= ?");
      values.push(since);
    }
    const sql = `SELECT deletion FROM deletions WHERE ${conditions.join(" AND ")} ORDER BY deleted_at, id_hash LIMIT ?`;
    return this.#connection
      .prepare(sql)
      .all(...values, limit)
      .map(deletionIn);
  }
}

function deletionIn(row: Row): Deletion {
  const where = "the deletion of a tree";
  return parsed(deletionSchema, textColumn(row, "deletion", where), where);
}
