import { randomUUID } from "node:crypto";
import type { Stores } from "../../src/stores/index.ts";
import { postgresStores, type PostgresStoresOptions } from "../../src/stores/postgres.ts";
import type { PostgresServer } from "./postgres-server.ts";

/** A unique name of a schema: empty tables on a server that other tests use too. */
export function ownSchema(): string {
  return `t${randomUUID().replaceAll("-", "")}`;
}

export function postgresStoresOn(server: PostgresServer, options: PostgresStoresOptions = {}): Stores {
  return postgresStores({ schema: ownSchema(), url: server.url, ...options });
}

/** Schemas that tests use one after the other, because creating tables takes longer than deleting rows. */
export class ReusedSchemas {
  readonly #server: PostgresServer;
  readonly #free: string[] = [];

  constructor(server: PostgresServer) {
    this.#server = server;
  }

  /** The name of a schema that is empty, or will be created by its first use. */
  take(): string {
    return this.#free.pop() ?? ownSchema();
  }

  /** Empties a schema that nothing uses any more. */
  async free(schema: string): Promise<void> {
    await emptySchema(this.#server, schema);
    this.#free.push(schema);
  }

  /** Empty stores; closing them frees their schema. */
  stores(options: PostgresStoresOptions = {}): Stores {
    const schema = this.take();
    const stores = postgresStoresOn(this.#server, { schema, maxConnections: 4, ...options });
    const close = async (): Promise<void> => {
      await stores.close();
      await this.free(schema);
    };
    return { ...stores, close };
  }
}

/** Deletes the rows of all tables but that of the layout, with one statement. */
async function emptySchema(server: PostgresServer, schema: string): Promise<void> {
  await server.query(
    `DO $$ DECLARE name text; BEGIN
       FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '${schema}' AND tablename <> 'troupe_migrations' LOOP
         EXECUTE format('DELETE FROM %I.%I', '${schema}', name);
       END LOOP;
     END $$`,
  );
}
