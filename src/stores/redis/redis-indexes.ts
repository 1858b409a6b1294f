import { z } from "zod";
import { parsed } from "../rules/stored-json.ts";
import type { Head } from "../rules/tables.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { fields, type HintKeys, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import type { RowKind } from "./redis-rows.ts";
import { correctHintScript, forgetHintScript, HINTS_LAST_MS, hintScript } from "./redis-scripts.ts";
import type { HintWrite, TreeSession } from "./redis-session.ts";

export interface ToldHints {
  /** By the clock of Redis, in ms; empty where nothing was told. */
  readonly at: string;
  /** For each "look", in order: when its member was told of last. */
  readonly stamps: readonly string[];
}

/**
 * The lists over trees.
 * Owns: how they are written. Does not own: the truth, which is in the trees.
 *
 * Invariants
 * 1. A list may name what is not there (any more); it never lacks what is: it is written before the tree is changed.
 * 2. A member is corrected only after its tree was changed, so that whoever told of it before has to tell again.
 */
export class RedisHints {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** All of one tree. */
  async tell(hints: readonly HintWrite[]): Promise<ToldHints> {
    if (hints.length === 0) return { at: "", stamps: [] };
    const keys: string[] = [];
    const numberOf = (key: string): number => {
      const known = keys.indexOf(key);
      return known < 0 ? keys.push(key) : known + 1;
    };
    const args = hints.flatMap(({ kind, keys: { list, stamps }, member, score }) => [
      kind,
      numberOf(list),
      numberOf(stamps),
      member,
      score ?? "",
    ]);
    const [at = "", ...stamps] = textsOf(await this.#connection.script(hintScript, keys, args));
    return { at, stamps };
  }

  /** When a member was told of last; empty where it was not. To be asked before its tree is changed. */
  async lastTold({ stamps }: HintKeys, member: string): Promise<string> {
    return (await this.#connection.run((client) => client.hget(stamps, member))) ?? "";
  }

  /** For a member of which nothing is stored: it goes when nobody can be about to store it. */
  async forget({ list, stamps }: HintKeys, member: string): Promise<void> {
    await this.#connection.script(forgetHintScript, [list, stamps], [member, 2 * HINTS_LAST_MS]);
  }

  /** `score` undefined: takes the member out. */
  async correct({ list, stamps }: HintKeys, member: string, seen: string, score?: number): Promise<void> {
    await this.#connection.script(correctHintScript, [list, stamps], [member, seen, score ?? ""]);
  }
}

/**
 * What the lists of trees in which somebody may be missing are told.
 * Owns: the rows of a tree that say what was told of it. Does not own: who is missing; that is looked up in the tree.
 *
 * Invariants
 * 1. Before something is posted in a tree, or an agent left in the midst of its work, the list of posts names the tree.
 * 2. Before a process holds an agent, and before one of its agents is at work, the list of holders names the tree for it.
 * 3. Each is told once, until whoever looked has taken it back.
 */

/** How many agents of a tree a process holds, and whether the list of holders knows. */
export interface HolderRow {
  readonly agents: number;
  readonly isTold: boolean;
}

const holderRowSchema = z.object({ agents: z.int().nonnegative(), isTold: z.boolean() });

export const watchKinds = {
  /** There while the list of posts names the tree. */
  posts: {
    field: fields.posts,
    what: "whether the list of posts knows",
    parse: (text, where) => parsed(z.literal(true), text, where),
  } satisfies RowKind<boolean>,
  holder: (processId: string): RowKind<HolderRow> => ({
    field: fields.holder(processId),
    what: `what process ${processId} holds`,
    parse: (text, where) => parsed(holderRowSchema, text, where),
  }),
} as const;

/** Where a tree is, as far as lists over trees are concerned. */
type Place = Pick<TreeKeys, "tenant" | "partition">;

export function postHints(keys: RedisKeys, tree: Place): HintKeys {
  return keys.hints("posts", tree.partition, tree.tenant);
}

export function holderHints(keys: RedisKeys, tree: Place): HintKeys {
  return keys.hints("holders", tree.partition, tree.tenant);
}

/** A tree in the list of holders: those of one process come together. */
export function holderMember(processId: string, tag: string): string {
  return `${encodeURIComponent(processId)} ${tag}`;
}

/** Something is posted in the tree, or an agent is left in the midst of its work. */
export function watchPosts(session: TreeSession, keys: RedisKeys): void {
  if (session.get(watchKinds.posts)) return;
  session.put(watchKinds.posts, true);
  session.tell({ kind: "name", keys: postHints(keys, session.tree), member: session.tree.tag, score: 0 });
}

/** The head of an agent changes: who holds it, or whether it is at work. */
export function watchHead(session: TreeSession, keys: RedisKeys, before: Head, after: Head): void {
  const isBegun = after.work === "open" && before.work !== "open";
  if (before.holder !== after.holder) {
    if (before.holder !== null) leave(session, keys, before.holder);
    if (after.holder !== null) enter(session, keys, after.holder, 1);
    else if (after.work === "open") watchPosts(session, keys);
  } else if (isBegun) {
    // What was told may have been taken back while the process seemed to be dead.
    if (after.holder !== null) enter(session, keys, after.holder, 0);
    else watchPosts(session, keys);
  }
}

function enter(session: TreeSession, keys: RedisKeys, processId: string, more: number): void {
  const kind = watchKinds.holder(processId);
  const known = session.get(kind) ?? { agents: 0, isTold: false };
  if (known.isTold && more === 0) return;
  session.put(kind, { agents: known.agents + more, isTold: true });
  if (!known.isTold) tellHolder(session, keys, processId, "name");
}

function leave(session: TreeSession, keys: RedisKeys, processId: string): void {
  const kind = watchKinds.holder(processId);
  const known = session.get(kind);
  if (!known) return;
  if (known.agents > 1) return session.put(kind, { ...known, agents: known.agents - 1 });
  session.remove(kind);
  if (known.isTold) tellHolder(session, keys, processId, "look");
}

function tellHolder(session: TreeSession, keys: RedisKeys, processId: string, kind: "name" | "look"): void {
  const { tree } = session;
  const score = kind === "name" ? 0 : undefined;
  session.tell({ kind, keys: holderHints(keys, tree), member: holderMember(processId, tree.tag), score });
}
