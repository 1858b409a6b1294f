import { deletedIdHash } from "../rules/deletions.ts";
import type { RolledBackTree } from "../rules/ports.ts";
import { RolledBackTrees } from "../rules/rolled-back-trees.ts";
import { integerOf, textColumn } from "../rules/stored-values.ts";
import type { StoresConnection } from "./stores-connection.ts";
import { prepared } from "../../postgres/index.ts";
import type { TreeCache } from "./postgres-session.ts";
import { columnsOf, deletionsOf, textOfColumn, type TreeName } from "./postgres-text.ts";

/** A tree that this process has read or written. */
interface KnownTree {
  readonly tree: TreeName;
  readonly cache: TreeCache;
}

/**
 * Detects that Postgres has lost acknowledged writes, by comparing it with what this process has seen of its trees.
 * Owns: when a tree counts as rolled back. Does not own: the seen versions, and the listeners.
 *
 * Invariants
 * 1. A process that has seen newer versions of a rolled back tree writes nothing to it before it has detected the rollback: versions are
 *    never used twice.
 * 2. Each rollback of a tree is reported once, as a process warning and to listeners.
 */
export class PostgresRollbacks {
  readonly #connection: StoresConnection;
  readonly #found = new RolledBackTrees({
    server: "Postgres",
    advice: "Set synchronous_commit on, and replicate synchronously where a standby may take over.",
    code: "TROUPE_POSTGRES_ROLLED_BACK",
  });

  constructor(connection: StoresConnection) {
    this.#connection = connection;
  }

  listen(listener: (found: RolledBackTree) => void): () => void {
    return this.#found.listen(listener);
  }

  report({ tree, cache }: KnownTree, found: number): void {
    const had = cache.newest;
    cache.newest = found;
    cache.seen.clear();
    if (found > 0) this.#found.report(tree, had, found);
    else void this.#reportGone(tree, had);
  }

  /** A missing tree may have been deleted. */
  async #reportGone(tree: TreeName, had: number): Promise<void> {
    const { tenant, rootAgentId } = tree;
    const deletion = this.#connection.read(
      prepared(
        `SELECT 1 AS one FROM "${this.#connection.schema}".deletions
         WHERE tree = (SELECT id FROM "${this.#connection.schema}".trees WHERE tenant = $1::text AND root = $2::text)
           AND id_hash = $3::text`,
      ),
      [...columnsOf(deletionsOf(tenant)), deletedIdHash(tenant, rootAgentId)],
    );
    if ((await deletion.catch(() => [])).length === 0) this.#found.report(tree, had, 0);
  }

  /** Call it when the server may have been replaced. */
  async check(known: readonly KnownTree[]): Promise<void> {
    const trees = known.filter(({ tree, cache }) => cache.newest > 0 && cache.id !== undefined && !tree.beside);
    if (trees.length === 0) return;
    const before = trees.map(({ cache }) => cache.newest);
    const { schema } = this.#connection;
    const rows = await this.#connection.read(
      prepared(
        `SELECT t.id, version, imports, agent_id, seq FROM "${schema}".trees AS t
         LEFT JOIN "${schema}".heads AS h ON h.tree = t.id WHERE t.id = ANY($1::bigint[])`,
      ),
      [trees.map(({ cache }) => cache.id)],
    );
    const byTree = Map.groupBy(rows, (row) => row["id"]);
    for (const [at, one] of trees.entries()) {
      const { cache } = one;
      const heads = byTree.get(cache.id) ?? [];
      const [first] = heads;
      const found = first ? integerOf(first, "version", "a tree") : 0;
      const seqs = new Map(
        heads.flatMap((row) =>
          row["agent_id"] === null
            ? []
            : [[textOfColumn(textColumn(row, "agent_id", "a head")), integerOf(row, "seq", "a head")] as const],
        ),
      );
      const isReplaced = first !== undefined && first["imports"] !== cache.imports;
      // Another process may have written to the tree since it was rolled back.
      const isOlder = [...cache.seen].some(([agentId, seq]) => (seqs.get(agentId) ?? -1) < seq);
      // A write may have detected it in between.
      if (cache.newest !== before[at] || (found >= cache.newest && (isReplaced || !isOlder))) continue;
      cache.forget();
      this.report(one, found);
    }
  }
}
