import type { AgentRecord } from "../../state/index.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { type IndexKeys, type IndexName, ofOwner, type RedisKeys, type TreeKeys, turnIndexes } from "./redis-keys.ts";
import {
  dropExpiredScript,
  dueExpiredScript,
  forgetIndexesScript,
  INDEX_WRITE_LASTS_MS,
  noteExpiredScript,
} from "./redis-scripts.ts";

/** How often to look for trees that have expired, in milliseconds. */
const LOOK_MS = 15_000;
/** How many trees one round forgets. */
const TREES_AT_ONCE = 100;
/** After this time no transaction can be about to store a tree that an index lists. */
const GRACE_MS = 2 * INDEX_WRITE_LASTS_MS;

/** The entries of one tree in the indexes over trees. */
export interface ListedOfTree {
  readonly records: readonly AgentRecord[];
  /** Members of the lists of requests. */
  readonly requests: readonly string[];
  /** Turns with their scores. */
  readonly turns: readonly (readonly [turnId: string, score: string])[];
}

/** Members of one index. If a score is given, only an entry with that score is removed. */
export type Entries = readonly [
  list: string,
  stamps: string,
  members: readonly (readonly [member: string, score: string])[],
];

/**
 * Removes expired trees from the indexes over trees.
 * Owns: the list of trees that are about to expire, each with its index entries, and the rounds. Does not own: when a tree expires.
 *
 * Invariants
 * 1. A tree is listed before its keys get an expiry, so that its index entries are known after its keys are gone.
 * 2. Entries are removed only if the tree does not exist and they were written long ago, so that no transaction can be about to store the
 *    tree.
 * 3. Any process with the same prefix does this, even if the process that listed the tree is gone. A round that finds nothing writes
 *    nothing.
 */
export class RedisExpired {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #graceMs: number;
  readonly #timer: NodeJS.Timeout;
  #look: Promise<unknown> = Promise.resolve();

  /** `graceMs`: the minimum age of an entry, in milliseconds. Default 120,000. */
  constructor(connection: RedisConnection, keys: RedisKeys, graceMs = GRACE_MS) {
    this.#connection = connection;
    this.#keys = keys;
    this.#graceMs = graceMs;
    this.#timer = setInterval(() => {
      // If Redis is unreachable, a later round finds the same trees.
      this.#look = this.#look.then(() => this.forget()).catch(() => undefined);
    }, LOOK_MS);
    this.#timer.unref();
  }

  /** Lists a tree whose keys are about to get an expiry of so many milliseconds. */
  async note(tree: TreeKeys, listed: ListedOfTree, milliseconds: number): Promise<void> {
    const entries = JSON.stringify(entriesOf(this.#keys, tree, listed));
    const { due, entries: stored } = this.#keys.expired();
    await this.#connection.script(noteExpiredScript, [due, stored], [tree.tag, entries, milliseconds + this.#graceMs]);
  }

  /** Forgets a tree that was deleted with its entries in the indexes. */
  async drop({ tag }: TreeKeys): Promise<void> {
    const { due, entries } = this.#keys.expired();
    await this.#connection.run(async (client) => {
      await client.hdel(entries, tag);
      await client.zrem(due, tag);
    });
  }

  /** Forgets trees that expired long enough ago, at most a hundred; returns their number. */
  async forget(): Promise<number> {
    const { due, entries } = this.#keys.expired();
    const found = textsOf(await this.#connection.script(dueExpiredScript, [due, entries], [TREES_AT_ONCE]));
    for (let at = 0; at < found.length; at += 3) {
      const [tag = "", score = "", text = ""] = found.slice(at, at + 3);
      const { meta } = this.#keys.ofTag(tag);
      const isThere = await this.#connection.run((client) => client.exists(meta));
      // A tree that was changed in between is listed again when it is at rest.
      if (isThere === 0 && text !== "") await this.#forgetEntries(JSON.parse(text) as readonly Entries[]);
      await this.#connection.script(dropExpiredScript, [due, entries], [tag, score]);
    }
    return found.length / 3;
  }

  /** Stops the rounds; resolves when the current one is over. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#look;
  }

  async #forgetEntries(entries: readonly Entries[]): Promise<void> {
    const keys = entries.flatMap(([list, stamps]) => [list, stamps]);
    const args = entries.flatMap(([, , members], index) => members.flatMap((one) => [2 * index + 1, ...one]));
    if (args.length > 0) await this.#connection.script(forgetIndexesScript, keys, [this.#graceMs, ...args]);
  }
}

function ids(records: readonly AgentRecord[]): Entries[2] {
  return records.map(({ agentId }) => [agentId, ""]);
}

/** All entries of a tree, which are in one partition. */
export function entriesOf(keys: RedisKeys, tree: TreeKeys, { records, requests, turns }: ListedOfTree): Entries[] {
  const { tenant, partition, tag } = tree;
  const entries: Entries[] = [];
  const add = ({ list, stamps }: IndexKeys, members: Entries[2]): void => {
    if (members.length > 0) entries.push([list, stamps, members]);
  };
  const index = (list: IndexName, ...of: readonly string[]): IndexKeys => keys.index(list, partition, ...of);
  const roots = records.filter(({ parentAgentId }) => parentAgentId === null);
  const owners = Map.groupBy(records, ({ ownerId }) => ownerId);
  const sessions = Map.groupBy(records, ({ sessionId }) => sessionId);
  add(index("agents", tenant), ids(records));
  add(index("roots", tenant), ids(roots));
  add(index("newest", tenant), ids(roots));
  for (const [owner, some] of owners) if (owner !== null) add(index("owner", tenant, owner), ids(some));
  for (const [session, some] of sessions) if (session !== null) add(index("session", tenant, session), ids(some));
  const asked = requests.map((member) => [member, ""] as const);
  for (const list of ["requests", "open"] as const) {
    add(index(list, tenant), asked);
    for (const owner of owners.keys()) if (owner !== null) add(index(list, tenant, ...ofOwner(owner)), asked);
  }
  for (const root of roots) for (const lists of turnIndexes(keys, tree, root)) add(lists, turns);
  add(index("unfinished", tenant), turns);
  for (const list of ["webhooks", "posts"] as const) add(index(list, tenant), [[tag, ""]]);
  add(index("timers"), [[tag, ""]]);
  return entries;
}
