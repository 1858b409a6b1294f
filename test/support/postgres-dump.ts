import { queryOf } from "../../src/postgres/index.ts";
import { migrate } from "../../src/stores/postgres/postgres-migrations.ts";
import { migrations } from "../../src/stores/postgres/migrations/index.ts";
import type { PostgresServer } from "./postgres-server.ts";

/** A row of a dump: one line. The first ones are the layout. */
interface DumpedRow {
  readonly table: string;
  readonly row: Readonly<Record<string, unknown>>;
}

const layoutTable = "troupe_migrations";

async function tablesOf(server: PostgresServer, schema: string): Promise<string[]> {
  const rows = await server.query("SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY tablename", [schema]);
  const names = rows.map(({ tablename }) => String(tablename)).filter((name) => name !== layoutTable);
  return [layoutTable, ...names];
}

/** All rows of a schema as lines of JSON. */
export async function dumpOf(server: PostgresServer, schema: string): Promise<string> {
  const lines: string[] = [];
  for (const table of await tablesOf(server, schema)) {
    const rows = await server.query(`SELECT row_to_json(t)::text AS row FROM "${schema}"."${table}" AS t ORDER BY 1`);
    for (const { row } of rows) lines.push(`{"table":${JSON.stringify(table)},"row":${String(row)}}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Creates a schema with the layout and the rows of a dump. */
export async function restoreDump(server: PostgresServer, schema: string, dump: string): Promise<void> {
  const rows = dump
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as DumpedRow);
  const layouts = rows.filter(({ table }) => table === layoutTable).map(({ row }) => Number(row["number"]));
  const client = await server.client();
  try {
    await migrate(queryOf(client), { schema, steps: migrations.filter(({ number }) => layouts.includes(number)) });
    for (const { table, row } of rows.filter((one) => one.table !== layoutTable)) {
      await client.query(
        `INSERT INTO "${schema}"."${table}" OVERRIDING SYSTEM VALUE
         SELECT * FROM json_populate_record(NULL::"${schema}"."${table}", $1::json)`,
        [JSON.stringify(row)],
      );
    }
    const { rows: identities } = await client.query<{ table_name: string; column_name: string }>(
      "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = $1 AND is_identity = 'YES'",
      [schema],
    );
    for (const { table_name: table, column_name: column } of identities) {
      await client.query(
        `SELECT setval(pg_get_serial_sequence($1, $2), coalesce(max("${column}"), 0) + 1, false) FROM "${schema}"."${table}"`,
        [`"${schema}"."${table}"`, column],
      );
    }
  } finally {
    await client.end();
  }
}
