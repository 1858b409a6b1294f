import { afterAll, beforeAll } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import type { PostgresStoresOptions } from "../../src/stores/postgres.ts";
import { PostgresServer, type PostgresServerOptions } from "./postgres-server.ts";
import { ownSchema, postgresStoresOn, ReusedSchemas } from "./postgres-stores.ts";

/** A Postgres that the tests of one suite share. */
export class SuitePostgres {
  #server: PostgresServer | undefined;
  #schemas: ReusedSchemas | undefined;

  get server(): PostgresServer {
    if (!this.#server) throw new Error("the server of a suite is available from its first test on");
    return this.#server;
  }

  /** Empty stores; closing them frees their schema. */
  empty(options: PostgresStoresOptions = {}): Stores {
    this.#schemas ??= new ReusedSchemas(this.server);
    return this.#schemas.stores(options);
  }

  /** Two clients of empty stores. */
  two(options: PostgresStoresOptions = {}): { readonly mine: Stores; readonly theirs: Stores } {
    const schema = ownSchema();
    const open = (): Stores => postgresStoresOn(this.server, { schema, maxConnections: 4, ...options });
    return { mine: open(), theirs: open() };
  }

  async start(options: PostgresServerOptions): Promise<void> {
    this.#server = await PostgresServer.start(options);
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }
}

/** Within a `describe`: a server that starts before its tests and stops after them. */
export function postgresOfSuite(options: PostgresServerOptions = {}): SuitePostgres {
  const postgres = new SuitePostgres();
  beforeAll(() => postgres.start(options));
  afterAll(() => postgres.stop());
  return postgres;
}
