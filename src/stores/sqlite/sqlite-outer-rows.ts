import { outerRowIn } from "../rules/outer-rows.ts";
import { textColumn, wellFormed } from "../rules/stored-values.ts";
import type { OuterKind, OuterRows } from "../rules/tables.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement } from "./sqlite-statement.ts";

/** The rows above the roots of trees. Other processes change them often, so none is cached. */
export class SqliteOuterRows {
  readonly #statements: Readonly<Record<"read" | "put" | "remove" | "ids", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      read: connection.prepare("SELECT value FROM outer_rows WHERE tenant = ? AND kind = ? AND id = ?"),
      put: connection.prepare(
        `INSERT INTO outer_rows (tenant, kind, id, value) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, kind, id) DO UPDATE SET value = excluded.value`,
      ),
      remove: connection.prepare("DELETE FROM outer_rows WHERE tenant = ? AND kind = ? AND id = ?"),
      ids: connection.prepare("SELECT id FROM outer_rows WHERE tenant = ? AND kind = ? AND id > ? ORDER BY id LIMIT ?"),
    };
  }

  find<Kind extends OuterKind>(tenant: string, kind: Kind, id: string): OuterRows[Kind] | undefined {
    const row = this.#statements.read.get(wellFormed(tenant, "tenant"), kind, wellFormed(id, "id"));
    const where = `${kind} ${id}`;
    return row && outerRowIn(kind, id, textColumn(row, "value", where));
  }

  put<Kind extends OuterKind>(tenant: string, kind: Kind, id: string, row: OuterRows[Kind]): void {
    this.#statements.put.run(wellFormed(tenant, "tenant"), kind, wellFormed(id, "id"), JSON.stringify(row));
  }

  remove(tenant: string, kind: OuterKind, id: string): void {
    this.#statements.remove.run(wellFormed(tenant, "tenant"), kind, wellFormed(id, "id"));
  }

  ids(tenant: string, kind: OuterKind, after: string | undefined, limit: number): string[] {
    const rows = this.#statements.ids.all(wellFormed(tenant, "tenant"), kind, after ?? "", limit);
    return rows.map((row) => textColumn(row, "id", `the ids of kind ${kind}`));
  }
}
