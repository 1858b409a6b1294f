import { InvalidInputError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { Query } from "../../postgres/index.ts";

const OLDEST = 130_000;

/** Warnings that this process has already emitted, for all stores. */
const warned = new Set<string>();

/**
 * Checks whether the server is suitable as the source of truth; warns if it may lose acknowledged writes.
 * Throws `UnsupportedError` for a version before 13, and `InvalidInputError` for a database that is not in UTF-8.
 */
export async function checkServer(query: Query): Promise<void> {
  const [row = {}] = await query(
    {
      name: "",
      text: `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
        current_setting('synchronous_commit') AS synchronous, current_setting('fsync') AS fsync,
        current_setting('full_page_writes') AS pages, pg_is_in_recovery() AS standby`,
    },
    [],
  );
  const { version, encoding, synchronous, fsync, pages, standby } = row;
  if (typeof version === "number" && version < OLDEST) {
    throw new UnsupportedError(
      `this Postgres has version ${Math.floor(version / 10_000)}; the stores need 13 or later`,
    );
  }
  if (encoding !== "UTF8") {
    throw new InvalidInputError(`the database has the encoding ${String(encoding)}; create one with encoding 'UTF8'`);
  }
  if (standby === true) {
    throw new StoreUnavailableError("this Postgres is a standby, which cannot write; give the url of the primary", {
      details: { code: "25006" },
    });
  }
  if (synchronous === "off") {
    warn(
      "Postgres acknowledges writes before they are on its disk (synchronous_commit is off): a crash can lose the last ones. Set synchronous_commit on where none may be lost.",
    );
  }
  if (fsync === "off" || pages === "off") {
    warn(
      `Postgres runs with ${fsync === "off" ? "fsync" : "full_page_writes"} off: a crash of its machine can lose or damage all data. Turn it on.`,
    );
  }
}

function warn(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message, { code: "TROUPE_POSTGRES_DURABILITY" });
}
