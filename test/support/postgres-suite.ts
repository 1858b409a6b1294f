import { afterAll, beforeAll } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import type { PostgresStoresOptions } from "../../src/stores/postgres.ts";
import { PostgresServer, type PostgresServerOptions } from "./postgres-server.ts";
import { ownSchema, postgresStoresOn, ReusedSchemas } from "./postgres-stores.ts";
import { sharedPostgres } from "./shared-postgres.ts";

/** Emptied schemas of the shared server, which the next suite of this process uses. */
let sharedSchemas: ReusedSchemas | undefined;

/** A Postgres that the tests of one suite use: that of all suites, or its own. */
export class SuitePostgres {
  #server: PostgresServer | undefined;
  #schemas: ReusedSchemas | undefined;
  #isOwn = false;

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

  async start(options: PostgresServerOptions | undefined): Promise<void> {
    this.#isOwn = options !== undefined;
    this.#server = options ? await PostgresServer.start(options) : await sharedPostgres();
    if (this.#isOwn) return;
    sharedSchemas ??= new ReusedSchemas(this.#server);
    this.#schemas = sharedSchemas;
  }

  async stop(): Promise<void> {
    if (this.#isOwn) await this.#server?.stop();
  }
}

/**
 * Within a `describe`: the server that all suites of the run share, in schemas of their own. With options, a server that starts before its
 * tests and stops after them.
 */
export function postgresOfSuite(options?: PostgresServerOptions): SuitePostgres {
  const postgres = new SuitePostgres();
  beforeAll(() => postgres.start(options));
  afterAll(() => postgres.stop());
  return postgres;
}
