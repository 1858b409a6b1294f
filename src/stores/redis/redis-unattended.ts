import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { UnattendedQuery } from "../rules/queries.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisHints } from "./redis-hints.ts";
import type { HintKeys, RedisKeys, TreeKeys } from "./redis-keys.ts";
import type { RedisLists } from "./redis-lists.ts";
import { type NamedTree, RedisLostTrees } from "./redis-lost-trees.ts";
import type { RedisReader } from "./redis-reader.ts";
import { rowKinds } from "./redis-rows.ts";
import type { TreeSession } from "./redis-session.ts";
import { restlessOf } from "./redis-restless.ts";
import { holderHints, holderMember, postHints, watchKinds, watchPosts } from "./redis-watch.ts";
import { livingFor } from "../rules/unattended.ts";

/** Trees that are looked at together. */
const AT_ONCE = 16;
/** Trees that are looked at in each call whether or not a list names them. */
const SWEPT = 16;

type Write = <T>(tree: TreeKeys, work: (session: TreeSession) => T) => Promise<T>;
interface UnattendedParts {
  readonly keys: RedisKeys;
  readonly reader: RedisReader;
  readonly hints: RedisHints;
  readonly lists: RedisLists;
}

type IsLiving = (processId: string) => boolean;

/**
 * Who needs somebody, by the lists of posts and holders.
 * Owns: taking back what is not true any more, and telling anew what was lost. Does not own: the lists' truth.
 *
 * Invariants
 * 1. A tree leaves the lists only when nobody of it needs anybody, seen after whoever posts next has to tell the list again.
 * 2. A tree that the lists have lost is found by going through all trees, a few with each call.
 * 3. A tree with a row that cannot be read hides no other one.
 */
export class RedisUnattended {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #hints: RedisHints;
  readonly #lists: RedisLists;
  readonly #lost: RedisLostTrees;
  readonly #write: Write;
  /** By tenant, the root that was looked at last. */
  readonly #swept = new Map<string, string>();

  constructor(
    connection: RedisConnection,
    { keys, reader, hints, lists }: UnattendedParts,
    /** Changes a tree, in its turn. */
    write: Write,
  ) {
    this.#connection = connection;
    this.#keys = keys;
    this.#reader = reader;
    this.#hints = hints;
    this.#lists = lists;
    this.#lost = new RedisLostTrees(connection, keys);
    this.#write = write;
  }

  async find(tenant: string, query: UnattendedQuery & { readonly limit: number }, steady: number): Promise<AgentKey[]> {
    const { after, limit, processId } = query;
    const group = this.#keys.processes();
    const ids = await this.#reader.list(group.agents);
    const rows = await this.#reader.rows(
      group,
      ids.map((id) => rowKinds.process(id)),
    );
    const known = new Map(rows.map((row) => [row.processId, row]));
    const isLiving = livingFor({ process: (id) => known.get(id) }, query, steady);
    if (after === undefined) await this.#sweep(tenant, isLiving);
    const from = after === undefined ? undefined : this.#keys.treeOf(tenant, after);
    const named = await this.#lost.named(tenant, [processId, ...ids.filter(isLiving)], from);
    const found: AgentKey[] = [];
    for (let at = 0; at < named.length && found.length < limit; at += AT_ONCE) {
      const some = named.slice(at, at + AT_ONCE);
      const settled = await Promise.all(some.map((one) => this.#settled(one, isLiving)));
      for (const [index, agentIds] of settled.entries()) {
        const isStart = after !== undefined && some[index]?.tree.tag === from?.tag;
        const next = agentIds.toSorted().filter((agentId) => !isStart || agentId > after);
        for (const agentId of next) found.push({ tenant, agentId });
      }
    }
    return found.slice(0, limit);
  }

  /** Who of a tree needs somebody; it is taken out of the lists where nobody does. */
  async #settled(named: NamedTree, isLiving: IsLiving): Promise<readonly string[]> {
    return await this.#passingOver(async () => {
      const found = await this.#look(named.tree, isLiving);
      return found.length > 0 ? found : await this.#forgotten(named, isLiving);
    });
  }

  async #forgotten({ tree, isPosted, lostHolders }: NamedTree, isLiving: IsLiving): Promise<readonly string[]> {
    const posts = { hints: postHints(this.#keys, tree), member: tree.tag };
    const holders = lostHolders.map((id) => ({
      hints: holderHints(this.#keys, tree),
      member: holderMember(id, tree.tag),
    }));
    const told: { readonly hints: HintKeys; readonly member: string; readonly stamp: string }[] = [];
    for (const one of [...(isPosted ? [posts] : []), ...holders]) {
      told.push({ ...one, stamp: await this.#hints.lastTold(one.hints, one.member) });
    }
    await this.#write(tree, (session) => {
      if (isPosted && session.get(watchKinds.posts)) session.remove(watchKinds.posts);
      for (const id of lostHolders) {
        const row = session.get(watchKinds.holder(id));
        if (row?.isTold) session.put(watchKinds.holder(id), { ...row, isTold: false });
      }
    });
    const found = await this.#look(tree, isLiving);
    if (found.length > 0) return found;
    for (const { hints, member, stamp } of told) await this.#hints.correct(hints, member, stamp);
    return [];
  }

  /** Looks at a few trees of which the lists may have been lost, and has the lists name those where somebody is missing. */
  async #sweep(tenant: string, isLiving: IsLiving): Promise<void> {
    const ids = await this.#lists.rootIds(tenant, this.#swept.get(tenant), SWEPT);
    const last = ids.length < SWEPT ? undefined : ids.at(-1);
    if (last === undefined) this.#swept.delete(tenant);
    else this.#swept.set(tenant, last);
    const look = async (rootAgentId: string): Promise<readonly string[]> => {
      const tree = this.#keys.treeOf(tenant, rootAgentId);
      const found = await this.#look(tree, isLiving);
      if (found.length > 0) await this.#tellAnew(tree);
      return found;
    };
    await Promise.all(ids.map((id) => this.#passingOver(() => look(id))));
  }

  async #tellAnew(tree: TreeKeys): Promise<void> {
    await this.#write(tree, (session) => {
      session.remove(watchKinds.posts);
      watchPosts(session, this.#keys);
    });
  }

  async #passingOver(look: () => Promise<readonly string[]>): Promise<readonly string[]> {
    try {
      return await look();
    } catch (error) {
      if (error instanceof CorruptRecordError) return [];
      throw error;
    }
  }

  #look(tree: TreeKeys, isLiving: IsLiving): Promise<readonly string[]> {
    return restlessOf(this.#connection, this.#reader, tree, isLiving);
  }
}
