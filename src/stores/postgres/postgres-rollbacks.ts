import type { RolledBackTree } from "../rules/ports.ts";
import { integerOf } from "../rules/stored-values.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import { prepared } from "./postgres-query.ts";
import type { TreeCache } from "./postgres-session.ts";
import type { TreeName } from "./postgres-text.ts";

/** How many trees one warning lists. */
const NAMED = 20;

/**
 * Detects that Postgres has lost acknowledged writes, by comparing it with the versions that this process has seen of its trees.
 * Owns: which listeners to call. Does not own: the seen versions.
 *
 * Invariants
 * 1. A process that has seen newer versions of a rolled back tree writes nothing to it before it has detected the rollback: versions are
 *    never used twice.
 * 2. Each rollback of a tree is reported once, as a process warning and to listeners.
 */
export class PostgresRollbacks {
  readonly #connection: PostgresConnection;
  readonly #listeners = new Set<(found: RolledBackTree) => void>();
  #unreported: RolledBackTree[] = [];

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  listen(listener: (found: RolledBackTree) => void): () => void {
    const entry = (found: RolledBackTree): void => listener(found);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  /** Call it when the server may have been replaced. */
  async check(known: readonly { readonly tree: TreeName; readonly cache: TreeCache }[]): Promise<void> {
    const trees = known.filter(
      ({ tree, cache }) => cache.newest > 0 && cache.id !== undefined && tree.beside === undefined,
    );
    if (trees.length === 0) return;
    const before = trees.map(({ cache }) => cache.newest);
    const rows = await this.#connection.read(
      prepared(`SELECT id, version FROM "${this.#connection.schema}".trees WHERE id = ANY($1::bigint[])`),
      [trees.map(({ cache }) => cache.id)],
    );
    const versions = new Map(rows.map((row) => [row["id"], integerOf(row, "version", "a tree")]));
    for (const [at, { tree, cache }] of trees.entries()) {
      const found = versions.get(cache.id) ?? 0;
      const had = before[at] ?? 0;
      // A write may have detected it in between.
      if (found >= had || cache.newest !== had) continue;
      cache.forget();
      cache.newest = found;
      cache.seen.clear();
      this.report(tree, had, found);
    }
  }

  /** Versions are times of the server's clock, in microseconds. */
  report({ tenant, rootAgentId }: TreeName, had: number, found: number): void {
    const tree: RolledBackTree = {
      tenant,
      rootAgentId,
      hadAt: timeOf(had),
      foundAt: found === 0 ? null : timeOf(found),
    };
    if (this.#unreported.length === 0) queueMicrotask(() => this.#warn());
    this.#unreported.push(tree);
    for (const listener of this.#listeners) listener(tree);
  }

  #warn(): void {
    const trees = this.#unreported;
    this.#unreported = [];
    const names = trees.slice(0, NAMED).map(rollbackWarning);
    const others = trees.length > NAMED ? `, and ${trees.length - NAMED} more` : "";
    process.emitWarning(
      `Postgres has lost acknowledged writes of the trees of ${names.join(", ")}${others}. Turns continue from the remaining data; later effects may be repeated. Set synchronous_commit on, and replicate synchronously where a standby may take over.`,
      { code: "TROUPE_POSTGRES_ROLLED_BACK" },
    );
  }
}

function rollbackWarning({ rootAgentId, hadAt, foundAt }: RolledBackTree): string {
  const until = new Date(hadAt).toISOString();
  if (foundAt === null) return `${rootAgentId} (gone, last changed at ${until})`;
  return `${rootAgentId} (changes after ${new Date(foundAt).toISOString()}, until ${until})`;
}

function timeOf(version: number): number {
  return Math.floor(version / 1_000);
}
