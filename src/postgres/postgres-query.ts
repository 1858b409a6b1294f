import { createHash } from "node:crypto";
import type { Client, PoolClient } from "pg";
import { endsConnection } from "./postgres-errors.ts";

/** A row of an answer, by column. */
export type Row = Readonly<Record<string, unknown>>;

/** A statement, which is prepared once on each connection. Values only occur as parameters. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

const statements = new Map<string, Statement>();

/** A statement that is sent often. */
export function prepared(text: string): Statement {
  const known = statements.get(text);
  if (known) return known;
  const statement = { name: createHash("sha256").update(text).digest("base64url").slice(0, 24), text };
  statements.set(text, statement);
  return statement;
}

/** Sends a statement and returns its rows. Rejects with the driver's error. */
export type Query = (statement: Statement, values: readonly unknown[]) => Promise<readonly Row[]>;

/** Numbers up to 2^53 stay exact: times in microseconds, cursors and counts. */
const types = {
  getTypeParser: (oid: number) => (value: string) => {
    if (oid === 20 || oid === 21 || oid === 23) return Number(value);
    return oid === 16 ? value === "t" : value;
  },
};

export function queryOf(client: Client | PoolClient): Query {
  return async ({ name, text }, values) => {
    const config = { text, values: [...values], types, ...(name === "" ? {} : { name }) };
    const { rows } = await client.query<Record<string, unknown>>(config as Parameters<typeof client.query>[0] & object);
    return rows;
  };
}

/** Runs work within a transaction. The connection must be closed if this rejects without an answer of the server. */
export async function within<T>(query: Query, begin: string, work: () => Promise<T>): Promise<T> {
  await query({ name: "", text: begin }, []);
  try {
    const result = await work();
    await query({ name: "", text: "COMMIT" }, []);
    return result;
  } catch (error) {
    if (!endsConnection(error)) await query({ name: "", text: "ROLLBACK" }, []);
    throw error;
  }
}
