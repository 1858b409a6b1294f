import { shortHash } from "../../base/index.ts";
import { PostgresConnection } from "../../postgres/index.ts";
import { checkServer } from "./postgres-check.ts";
import { migrate } from "./postgres-migrations.ts";
import type { CheckedOptions } from "./postgres-options.ts";

/** The connections of the stores, to one schema. */
export class StoresConnection extends PostgresConnection {
  readonly schema: string;
  /** Begins the names of this schema's channels. */
  readonly channel: string;

  constructor({ schema, ...options }: CheckedOptions) {
    super({
      ...options,
      name: "the stores",
      needing: "Postgres stores need",
      check: async (query) => {
        await checkServer(query);
        await migrate(query, { schema });
      },
    });
    this.schema = schema;
    this.channel = `troupe:${shortHash(schema)}`;
  }
}
