import { InvalidInputError, InvariantError, UnsupportedError } from "../../errors/index.ts";
import { integerOf, textColumn } from "../rules/stored-values.ts";
import { type Migration, migrations } from "./migrations/index.ts";
import { isMissingTable, type Query, sqlState, within } from "../../postgres/index.ts";

/** The number of the advisory lock that one migrating process holds at a time. */
const LOCK = 7_608_121_907;

interface LayoutOptions {
  readonly schema: string;
  readonly steps?: readonly Migration[] | undefined;
}

/**
 * Migrates a schema to the current layout, each step in one transaction, so that a failed step changes nothing. One of several processes
 * does it, and the others wait.
 *
 * Throws `UnsupportedError` for a layout that this version does not support, and `InvalidInputError` for a schema of another program and
 * for a user that may not create the tables.
 */
export async function migrate(query: Query, { schema, steps = migrations }: LayoutOptions): Promise<void> {
  const own = steps.at(-1);
  if (!own) throw new InvariantError("there are no Postgres migrations");
  for (;;) {
    const number = await layoutOf(query, schema, own);
    const next = steps.find((step) => step.number > number);
    if (!next) return;
    await within(query, "BEGIN", () => apply(query, schema, { next, from: number, own })).catch((error: unknown) => {
      throw refusalOf(error, schema) ?? error;
    });
  }
}

async function apply(
  query: Query,
  schema: string,
  { next, from, own }: { readonly next: Migration; readonly from: number; readonly own: Migration },
): Promise<void> {
  await query({ name: "", text: "SELECT pg_advisory_xact_lock($1)" }, [LOCK]);
  // Another process may have done the step in between.
  if ((await layoutOf(query, schema, own)) !== from) return;
  if (from === 0) {
    const found = await query({ name: "", text: "SELECT 1 AS one FROM pg_namespace WHERE nspname = $1" }, [schema]);
    if (found.length === 0) await query({ name: "", text: `CREATE SCHEMA "${schema}"` }, []);
    await query(
      { name: "", text: `CREATE TABLE "${schema}".troupe_migrations (number int PRIMARY KEY, troupe text NOT NULL)` },
      [],
    );
  }
  for (const text of next.statements(`"${schema}"`)) await query({ name: "", text }, []);
  await query({ name: "", text: `INSERT INTO "${schema}".troupe_migrations VALUES ($1, $2)` }, [
    next.number,
    next.troupe,
  ]);
}

/** The layout number; 0 for a schema without tables. Only reads, so that nothing is changed if it throws. */
async function layoutOf(query: Query, schema: string, own: Migration): Promise<number> {
  // From the catalog: a lookup by name may not see a table that another process has just created.
  const text = "SELECT 1 AS one FROM pg_tables WHERE schemaname = $1 AND tablename = 'troupe_migrations'";
  if ((await query({ name: "", text }, [schema])).length === 0) return 0;
  const [row] = await query(
    {
      name: "",
      text: `SELECT number, troupe FROM "${schema}".troupe_migrations ORDER BY number DESC LIMIT 1`,
    },
    [],
  );
  if (!row) return 0;
  const where = `the layout of the schema ${schema}`;
  const [number, troupe] = [integerOf(row, "number", where), textColumn(row, "troupe", where)];
  if (number <= own.number) return number;
  throw new UnsupportedError(
    `the schema "${schema}" has layout ${number}, and this version of troupe reads layouts up to ${own.number}; use troupe ${troupe} or later`,
    { details: { schema, layout: number, troupe } },
  );
}

function refusalOf(error: unknown, schema: string): InvalidInputError | undefined {
  const state = sqlState(error);
  const details = { schema, code: state };
  if (state === "42P07" || state === "42710") {
    return new InvalidInputError(`the schema "${schema}" has tables of another program; give another schema`, {
      details,
    });
  }
  if (state !== "42501" || isMissingTable(error)) return undefined;
  return new InvalidInputError(
    `the user may not create the schema "${schema}" or its tables; run CREATE SCHEMA ${schema} AUTHORIZATION the_user, or grant CREATE on the database`,
    { details },
  );
}
