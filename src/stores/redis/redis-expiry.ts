import type { RedisConnection } from "./redis-connection.ts";
import type { ListedOfTree, RedisExpired } from "./redis-expired.ts";
import { agentParts, isTreeTag, type TreeKeys, treeParts } from "./redis-keys.ts";
import type { RedisReader } from "./redis-reader.ts";
import { type RowKind, rowKinds, seenRow, valueOf } from "./redis-rows.ts";
import { expireScript } from "./redis-scripts.ts";
import type { TreeSession } from "./redis-session.ts";

/** How long after a change to check whether the tree is at rest, in milliseconds. */
const CHECK_AFTER_MS = 250;

interface ExpiryParts {
  readonly connection: RedisConnection;
  readonly reader: RedisReader;
  /** The key whose existence tells other processes that trees expire. */
  readonly expires: string;
  readonly expired: RedisExpired;
  readonly seconds: number;
}

/**
 * Lets a tree expire some time after it came to rest.
 * Owns: when to check for rest. Does not own: keeping a tree; every transaction that writes cancels the expiry.
 *
 * Invariant: all keys of a tree expire at one moment, and only if the tree did not change since it was found at rest (no agent has an
 * owner, no turn is open).
 */
export class RedisExpiry {
  readonly #connection: RedisConnection;
  readonly #reader: RedisReader;
  readonly #expires: string;
  readonly #expired: RedisExpired;
  readonly #milliseconds: number;
  readonly #waiting = new Map<string, NodeJS.Timeout>();
  readonly #checking = new Set<Promise<void>>();

  constructor({ connection, reader, expires, expired, seconds }: ExpiryParts) {
    this.#connection = connection;
    this.#reader = reader;
    this.#expires = expires;
    this.#expired = expired;
    this.#milliseconds = seconds * 1000;
  }

  /**
   * Schedules one check, however often the tree changes until then. A write by an owner needs no check, because the tree is not at rest.
   */
  changed({ tree, written }: TreeSession): void {
    if (this.#waiting.has(tree.tag) || !isTreeTag(tree.tag)) return;
    if ([...written.values()].some(({ value }) => isHeldHead(value))) return;
    const timer = setTimeout(() => this.#check(tree), CHECK_AFTER_MS);
    timer.unref();
    this.#waiting.set(tree.tag, timer);
  }

  /** Checks the scheduled trees at once. */
  async close(trees: (tag: string) => TreeKeys): Promise<void> {
    for (const tag of this.#waiting.keys()) this.#check(trees(tag));
    await Promise.all(this.#checking);
  }

  #check(tree: TreeKeys): void {
    clearTimeout(this.#waiting.get(tree.tag));
    this.#waiting.delete(tree.tag);
    // The next change schedules another check; keeping a tree longer does no harm.
    const check: Promise<void> = this.#expireAtRest(tree)
      .catch(() => undefined)
      .finally(() => this.#checking.delete(check));
    this.#checking.add(check);
  }

  async #expireAtRest(tree: TreeKeys): Promise<void> {
    const version = (await this.#reader.hash(tree.meta)).get("version");
    const rows = await this.#reader.hash(tree.rows);
    const agentIds = await this.#reader.list(tree.agents);
    if (version === undefined || agentIds.some((agentId) => !isAtRest(tree, rows, agentId))) return;
    await this.#expired.note(tree, await this.#listed(tree, rows, agentIds), this.#milliseconds);
    const keys = [tree.expiring, tree.meta, tree.projections, ...treeParts.map((part) => tree[part])];
    for (const agentId of agentIds) keys.push(...agentParts.map((part) => tree.ofAgent(part, agentId)));
    await this.#connection.run((client) => client.set(this.#expires, "1"));
    await this.#connection.script(expireScript, keys, [version, this.#milliseconds]);
  }

  async #listed(tree: TreeKeys, rows: Rows, agentIds: readonly string[]): Promise<ListedOfTree> {
    const [requests, changes] = await this.#connection.run((client) =>
      Promise.all([client.zrange(tree.requests, "0", "-1"), client.zrange(tree.changes, "0", "-1", "WITHSCORES")]),
    );
    const turns = changes.flatMap((turnId, index) =>
      index % 2 === 0 ? [[turnId, changes[index + 1] ?? ""] as const] : [],
    );
    const records = agentIds.flatMap((agentId) => valueIn(tree, rows, rowKinds.record(tree.tenant, agentId)) ?? []);
    return { records, requests, turns };
  }
}

type Rows = ReadonlyMap<string, string>;

function valueIn<T>(tree: TreeKeys, rows: Rows, kind: RowKind<T>): T | undefined {
  const stored = rows.get(kind.field);
  return stored === undefined ? undefined : valueOf(seenRow(stored), kind, tree.rows);
}

function isAtRest(tree: TreeKeys, rows: Rows, agentId: string): boolean {
  const holder = valueIn(tree, rows, rowKinds.head(agentId))?.head.holder ?? null;
  const openTurnId = valueIn(tree, rows, rowKinds.record(tree.tenant, agentId))?.openTurnId ?? null;
  return holder === null && openTurnId === null;
}

function isHeldHead(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("head" in value)) return false;
  const { head } = value;
  return typeof head === "object" && head !== null && "holder" in head && head.holder !== null;
}
