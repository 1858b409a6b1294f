import type { SetBack } from "../rules/ports.ts";
import type { TreeCache } from "./redis-cache.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisKeys, TreeKeys } from "./redis-keys.ts";
import { olderRowsScript } from "./redis-read-scripts.ts";

/** What this process knows of one tree. */
export interface KnownTree {
  readonly tree: TreeKeys;
  readonly cache: TreeCache;
}

/** Trees that are asked for at once. */
const PAGE = 200;
/** Trees that one warning names. */
const NAMED = 20;

/**
 * Notices that Redis has lost what it had acknowledged, from what this process has seen of its trees.
 * Owns: when it is looked for, and how it is told. Does not own: what was seen.
 *
 * Invariants
 * 1. Nothing is written to a tree that was set back before whoever knows better was told: the script compares versions.
 * 2. It is told once for each tree and time, as a warning of the process and to listeners.
 */
export class RedisSetBacks {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #listeners = new Set<(found: SetBack) => void>();
  #untold: SetBack[] = [];

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  listen(listener: (found: SetBack) => void): () => void {
    const entry = (found: SetBack): void => listener(found);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  watch({ tree, cache }: KnownTree): void {
    // Processes that are forgotten enter themselves again.
    if (!tree.tag.includes("/")) return;
    cache.onSetBack = (had, found) => {
      if (found > 0) this.#tell(tree, had, found);
      else void this.#tellOfGone(tree, had);
    };
  }

  /** To be called when Redis may have been another one for a while. What cannot be asked now is found out when it is written. */
  async look(known: readonly KnownTree[]): Promise<void> {
    for (let at = 0; at < known.length; at += PAGE) {
      await Promise.all(known.slice(at, at + PAGE).map((one) => this.#lookAt(one)));
    }
  }

  async #lookAt({ tree, cache }: KnownTree): Promise<void> {
    const { newest, timesSetBack } = cache;
    const version = Number((await this.#connection.run((client) => client.hget(tree.meta, "v"))) ?? 0);
    let found = version;
    if (version >= newest && cache.heads.size > 0) {
      // Somebody who knows nothing of a loss may have written since, and what that was may have been read here.
      const seen = [...cache.heads].flatMap(([field, head]) => [field, String(head)]);
      const older = String(await this.#connection.script(olderRowsScript, [tree.rows], seen));
      if (older !== "") found = Number(older);
    }
    // A transaction may have found it meanwhile.
    if (found < newest && timesSetBack === cache.timesSetBack) cache.setBack(found);
  }

  /** Where some process lets trees go away with their time, one that is gone may be one of those. */
  async #tellOfGone(tree: TreeKeys, had: number): Promise<void> {
    const asked = this.#connection.run((client) => client.exists(this.#keys.expires()));
    if ((await asked.catch(() => 0)) === 0) this.#tell(tree, had, 0);
  }

  #tell(tree: TreeKeys, had: number, found: number): void {
    const setBack = {
      ...this.#keys.namesIn(tree.tag),
      hadAt: timeOf(had),
      foundAt: found === 0 ? null : timeOf(found),
    };
    if (this.#untold.push(setBack) === 1) setImmediate(() => this.#warn());
    for (const listener of this.#listeners) listener(setBack);
  }

  /** One warning for all that is found at a time. */
  #warn(): void {
    const trees = this.#untold;
    this.#untold = [];
    const names = trees.slice(0, NAMED).map(wordsOf);
    const others = trees.length > NAMED ? `, and ${trees.length - NAMED} more` : "";
    process.emitWarning(
      `Redis has lost writes that it had acknowledged, of the trees of ${names.join(", ")}${others}. Turns go on from what is left; effects of later ones may come again. Set appendfsync always where none may be lost.`,
      { code: "TROUPE_REDIS_ROLLED_BACK" },
    );
  }
}

function wordsOf({ rootAgentId, hadAt, foundAt }: SetBack): string {
  const until = new Date(hadAt).toISOString();
  if (foundAt === null) return `${rootAgentId} (gone, last changed at ${until})`;
  return `${rootAgentId} (what was changed after ${new Date(foundAt).toISOString()}, until ${until})`;
}

/** Versions are times of Redis' clock, in microseconds. */
function timeOf(version: number): number {
  return Math.floor(version / 1_000);
}
