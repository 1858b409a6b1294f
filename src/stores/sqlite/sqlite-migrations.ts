import type { DatabaseSync } from "node:sqlite";
import { InvalidInputError, InvariantError, UnsupportedError } from "../../errors/index.ts";
import { type Migration, migrations } from "./migrations/index.ts";

interface Layout {
  /** 0: the file is empty. */
  readonly number: number;
  /** The first version of this package that reads the layout. */
  readonly troupe: string;
}

/**
 * The layout of a file. Only reads, so that a refused file is not changed.
 *
 * Throws `UnsupportedError` for a layout that this version does not support, and `InvalidInputError` for a database of another program.
 */
export function layoutOf(
  database: DatabaseSync,
  path: string,
  steps: readonly Migration[] = migrations,
): Pick<Layout, "number"> {
  const layout = storedLayout(database, path);
  const own = steps.at(-1);
  if (!own) throw new InvariantError("there are no SQLite migrations");
  if (layout.number <= own.number) return layout;
  throw new UnsupportedError(
    `${path} has layout ${layout.number}, and this version of troupe reads layouts up to ${own.number}; use troupe ${layout.troupe} or later`,
    { details: { path, layout: layout.number, troupe: layout.troupe } },
  );
}

/**
 * Migrates a file to the current layout, each step in one transaction, so that a failed step changes nothing. Several processes may do so
 * at once. Throws the errors of `layoutOf` and of the steps.
 */
export function migrate(database: DatabaseSync, path: string, steps: readonly Migration[] = migrations): void {
  for (;;) {
    const { number } = layoutOf(database, path, steps);
    const next = steps.find((step) => step.number > number);
    if (!next) return;
    database.exec("BEGIN IMMEDIATE");
    try {
      // Another process may have done the step in between, or written another database to the file.
      if (layoutOf(database, path, steps).number === number) {
        next.apply(database);
        if (number === 0)
          database.exec("CREATE TABLE troupe_migrations (number INTEGER PRIMARY KEY, troupe TEXT NOT NULL) STRICT");
        database.prepare("INSERT INTO troupe_migrations VALUES (?, ?)").run(next.number, next.troupe);
      }
      database.exec("COMMIT");
    } catch (error) {
      rollBack(database);
      throw error;
    }
  }
}

function rollBack(database: DatabaseSync): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // After some failures SQLite has already ended the transaction.
  }
}

function storedLayout(database: DatabaseSync, path: string): Layout {
  // One statement, because another process may write to the file between two of them.
  const row = database
    .prepare(
      `SELECT user_version AS version, (SELECT count(*) FROM sqlite_schema) AS objects,
         (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('agents', 'standings', 'journal')) AS old,
         (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'troupe_migrations') AS numbered
       FROM pragma_user_version`,
    )
    .get();
  if (row?.["objects"] === 0) return { number: 0, troupe: "" };
  if (row?.["numbered"] === 1) {
    const last = database.prepare("SELECT number, troupe FROM troupe_migrations ORDER BY number DESC LIMIT 1").get();
    return { number: Number(last?.["number"]), troupe: String(last?.["troupe"]) };
  }
  if (row?.["old"] === 3) {
    throw new UnsupportedError(
      `${path} was written by troupe before its layouts were numbered (${String(row["version"])}), which is no longer supported; give the path of a new file`,
      { details: { path } },
    );
  }
  throw new InvalidInputError(`${path} is a database of another program; give the path of another file`, {
    details: { path },
  });
}
