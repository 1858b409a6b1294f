import { deletedIdHash } from "../rules/deletions.ts";
import type { RolledBackTree } from "../rules/ports.ts";
import { RolledBackTrees } from "../rules/rolled-back-trees.ts";
import type { TreeCache } from "./redis-cache.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { fields, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import { olderRowsScript } from "./redis-read-scripts.ts";

/** A tree that this process has read or written. */
interface KnownTree {
  readonly tree: TreeKeys;
  readonly cache: TreeCache;
}

/** How many trees are checked at once. */
const PAGE = 200;

/**
 * Detects that Redis was rolled back, by comparing it with the versions that this process has seen of its trees.
 * Owns: when to check. Does not own: the seen versions, and the listeners.
 *
 * Invariants
 * 1. A process that has seen newer versions of a rolled back tree writes nothing to it before it has detected the rollback: the script
 *    compares versions.
 * 2. Each rollback of a tree is reported once, as a process warning and to listeners.
 */
export class RedisRollbacks {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #found = new RolledBackTrees({
    server: "Redis",
    advice: "Set appendfsync always where none may be lost.",
    code: "TROUPE_REDIS_ROLLED_BACK",
  });

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  listen(listener: (found: RolledBackTree) => void): () => void {
    return this.#found.listen(listener);
  }

  watch({ tree, cache }: KnownTree): void {
    // Processes register again by themselves, so their tree is not checked.
    if (!tree.tag.includes("/")) return;
    cache.onRolledBack = (had, found) => {
      if (found > 0) this.#report(tree, had, found);
      else void this.#reportGone(tree, had);
    };
  }

  /** Call it when Redis may have been replaced. A tree that cannot be checked now is checked by its next write. */
  async check(known: readonly KnownTree[]): Promise<void> {
    for (let at = 0; at < known.length; at += PAGE) {
      await Promise.all(known.slice(at, at + PAGE).map((one) => this.#check(one)));
    }
  }

  async #check({ tree, cache }: KnownTree): Promise<void> {
    const { newest, timesRolledBack } = cache;
    const version = Number((await this.#connection.run((client) => client.hget(tree.meta, "version"))) ?? 0);
    let found = version;
    if (version >= newest && cache.heads.size > 0) {
      // A process that has not detected the rollback may have written since, and this process may have read the result.
      const seen = [...cache.heads].flatMap(([field, head]) => [field, String(head)]);
      const older = String(await this.#connection.script(olderRowsScript, [tree.rows], seen));
      if (older !== "") found = Number(older);
    }
    // A transaction may have detected it in between.
    if (found < newest && timesRolledBack === cache.timesRolledBack) cache.rollBack(found);
  }

  /** A missing tree may have been deleted or, if any process lets trees expire, may have expired. */
  async #reportGone(tree: TreeKeys, had: number): Promise<void> {
    const { tenant, rootAgentId } = this.#keys.namesIn(tree.tag);
    const deletion = fields.deletion(deletedIdHash(tenant, rootAgentId));
    const asked = this.#connection.run(async (client) => {
      if ((await client.hexists(this.#keys.deletions(tenant).rows, deletion)) === 1) return 1;
      return await client.exists(this.#keys.expires());
    });
    if ((await asked.catch(() => 0)) === 0) this.#report(tree, had, 0);
  }

  #report(tree: TreeKeys, had: number, found: number): void {
    this.#found.report(this.#keys.namesIn(tree.tag), had, found);
  }
}
