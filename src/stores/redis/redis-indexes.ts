import { z } from "zod";
import { parsed } from "../rules/stored-values.ts";
import type { Head } from "../rules/tables.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { fields, type IndexKeys, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import type { RowKind } from "./redis-rows.ts";
import { correctIndexScript, forgetIndexScript, INDEX_WRITE_LASTS_MS, writeIndexesScript } from "./redis-scripts.ts";
import type { IndexWrite, TreeSession } from "./redis-session.ts";

export interface WrittenAt {
  /** When the entries were written by the clock of Redis, in milliseconds; empty if nothing was written. */
  readonly at: string;
  /** The last write of each "leaving" member, in order. */
  readonly stamps: readonly string[];
}

/**
 * The indexes over trees: sorted sets that answer questions about many trees.
 * Owns: how they are written. Does not own: the truth, which is stored in the trees.
 *
 * Invariants
 * 1. An index may list missing objects, but never lacks existing ones: it is written before the tree changes, or by the same script if
 *    one server has all keys.
 * 2. A member is corrected only after its tree changed, so that a transaction that relied on the member has to write it again.
 */
export class RedisIndexes {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** Writes the index entries of one tree. */
  async write(writes: readonly IndexWrite[]): Promise<WrittenAt> {
    if (writes.length === 0) return { at: "", stamps: [] };
    const keys: string[] = [];
    const numberOf = (key: string): number => {
      const known = keys.indexOf(key);
      return known < 0 ? keys.push(key) : known + 1;
    };
    const args = writes.flatMap(({ kind, keys: { list, stamps }, member, score }) => [
      kind,
      numberOf(list),
      numberOf(stamps),
      member,
      score ?? "",
    ]);
    const [at = "", ...stamps] = textsOf(await this.#connection.script(writeIndexesScript, keys, args));
    return { at, stamps };
  }

  /** When a member was last written; empty if it was not. Call it before the tree is changed. */
  async lastWritten({ stamps }: IndexKeys, member: string): Promise<string> {
    return (await this.#connection.run((client) => client.hget(stamps, member))) ?? "";
  }

  /** Removes a member whose object does not exist, once no transaction can be about to store it. */
  async forget({ list, stamps }: IndexKeys, member: string): Promise<void> {
    await this.#connection.script(forgetIndexScript, [list, stamps], [member, 2 * INDEX_WRITE_LASTS_MS]);
  }

  /** Sets the score of a member, or removes the member if no score is given. */
  async correct({ list, stamps }: IndexKeys, member: string, seen: string, score?: number): Promise<void> {
    await this.#connection.script(correctIndexScript, [list, stamps], [member, seen, score ?? ""]);
  }
}

/** How many agents of a tree a process holds, and whether the index of holders lists the tree. */
interface HolderRow {
  readonly agents: number;
  readonly isTold: boolean;
}

const holderRowSchema = z.object({ agents: z.int().nonnegative(), isTold: z.boolean() });

/**
 * The rows of a tree that record whether the indexes of posts and holders list it, so that its unattended agents can be found. Readers
 * look up in the tree itself which agents are unattended.
 *
 * Invariants
 * 1. Before an item is posted in a tree, or an agent is left with open work, the index of posts lists the tree.
 * 2. Before a process holds an agent, and before one of its agents has open work, the index of holders lists the tree for this process.
 * 3. Each index entry is written once, until a reader has removed it.
 */
export const watchKinds = {
  /** Exists while the index of posts lists the tree. */
  posts: {
    field: fields.posts,
    what: "whether the index of posts lists the tree",
    parse: (text, where) => parsed(z.literal(true), text, where),
  } satisfies RowKind<boolean>,
  holder: (processId: string): RowKind<HolderRow> => ({
    field: fields.holder(processId),
    what: `what process ${processId} holds`,
    parse: (text, where) => parsed(holderRowSchema, text, where),
  }),
} as const;

/** The properties that determine the index keys of a tree. */
type IndexedTree = Pick<TreeKeys, "tenant" | "partition">;

export function postsIndex(keys: RedisKeys, tree: IndexedTree): IndexKeys {
  return keys.index("posts", tree.partition, tree.tenant);
}

export function holdersIndex(keys: RedisKeys, tree: IndexedTree): IndexKeys {
  return keys.index("holders", tree.partition, tree.tenant);
}

/** A tree in the index of holders; the trees of one process are adjacent. */
export function holderMember(processId: string, tag: string): string {
  return `${encodeURIComponent(processId)} ${tag}`;
}

/** Call when an item is posted in the tree, or an agent is left with open work. */
export function watchPosts(session: TreeSession, keys: RedisKeys): void {
  if (session.get(watchKinds.posts)) return;
  session.put(watchKinds.posts, true);
  session.writeIndex({ kind: "name", keys: postsIndex(keys, session.tree), member: session.tree.tag, score: 0 });
}

/** Call when an agent's head changes. */
export function watchHead(session: TreeSession, keys: RedisKeys, before: Head, after: Head): void {
  const isBegun = after.work === "open" && before.work !== "open";
  if (before.holder !== after.holder) {
    if (before.holder !== null) leave(session, keys, before.holder);
    if (after.holder !== null) enter(session, keys, after.holder, 1);
    else if (after.work === "open") watchPosts(session, keys);
  } else if (isBegun) {
    // The entry may have been removed while the process was considered dead.
    if (after.holder !== null) enter(session, keys, after.holder, 0);
    else watchPosts(session, keys);
  }
}

function enter(session: TreeSession, keys: RedisKeys, processId: string, more: number): void {
  const kind = watchKinds.holder(processId);
  const known = session.get(kind) ?? { agents: 0, isTold: false };
  if (known.isTold && more === 0) return;
  session.put(kind, { agents: known.agents + more, isTold: true });
  if (!known.isTold) writeHolder(session, keys, processId, "name");
}

function leave(session: TreeSession, keys: RedisKeys, processId: string): void {
  const kind = watchKinds.holder(processId);
  const known = session.get(kind);
  if (!known) return;
  if (known.agents > 1) return session.put(kind, { ...known, agents: known.agents - 1 });
  session.remove(kind);
  if (known.isTold) writeHolder(session, keys, processId, "leaving");
}

function writeHolder(session: TreeSession, keys: RedisKeys, processId: string, kind: "name" | "leaving"): void {
  const { tree } = session;
  const score = kind === "name" ? 0 : undefined;
  session.writeIndex({ kind, keys: holdersIndex(keys, tree), member: holderMember(processId, tree.tag), score });
}
