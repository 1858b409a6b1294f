import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { isKnownTo, isUnattended, livingFor } from "../rules/leases.ts";
import type { UnattendedQuery } from "../rules/queries.ts";
import { freshHead, type Head } from "../rules/tables.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { holderMember, holdersIndex, postsIndex, type RedisIndexes, watchKinds, watchPosts } from "./redis-indexes.ts";
import { type IndexKeys, PARTITIONS, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import type { RedisLists } from "./redis-lists.ts";
import { deadHoldersScript, existsScript, headsScript, inboxesScript } from "./redis-read-scripts.ts";
import type { RedisReader } from "./redis-reader.ts";
import { itemsIn, rowKinds, seenRow, valueOf } from "./redis-rows.ts";
import type { TreeSession } from "./redis-session.ts";

/** How many trees are checked at the same time. */
const AT_ONCE = 16;
/** How many trees each call checks even if no index lists them. */
const SWEPT = 16;
/** How many members are read at once. */
const PAGE = 1000;
/** How many inboxes are read at once. */
const INBOXES = 500;
const partitions = Array.from({ length: PARTITIONS }, (_, index) => index);

type Write = <T>(tree: TreeKeys, work: (session: TreeSession) => T) => Promise<T>;

interface UnattendedParts {
  readonly keys: RedisKeys;
  readonly reader: RedisReader;
  readonly indexes: RedisIndexes;
  readonly lists: RedisLists;
}

type IsLiving = (processId: string) => boolean;

/**
 * Finds unattended agents by the indexes of posts and holders.
 * Owns: removing outdated entries and restoring lost ones. Does not own: writing entries before posts and leases.
 *
 * Invariants
 * 1. A tree is removed from the indexes only if none of its agents is unattended; before the check it is ensured that the next post
 *    writes the index again. A tree with running work stays, because its next post would add it again.
 * 2. A tree that is missing in the indexes is found by checking all trees, a few with each call.
 * 3. A tree with a corrupt row does not hide other trees.
 */
export class RedisUnattended {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #reader: RedisReader;
  readonly #indexes: RedisIndexes;
  readonly #lists: RedisLists;
  readonly #candidateTrees: CandidateTrees;
  readonly #write: Write;
  /** The last root that was checked, by tenant. */
  readonly #swept = new Map<string, string>();
  /** The newest version of an agent's head that the last check found in each tree. */
  #looked = new Map<string, number>();

  constructor(
    connection: RedisConnection,
    { keys, reader, indexes, lists }: UnattendedParts,
    /** Changes a tree in a transaction. */
    write: Write,
  ) {
    this.#connection = connection;
    this.#keys = keys;
    this.#reader = reader;
    this.#indexes = indexes;
    this.#lists = lists;
    this.#candidateTrees = new CandidateTrees(connection, keys);
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
    const candidates = await this.#candidateTrees.list(tenant, [processId, ...ids.filter(isLiving)], from);
    const looked = this.#looked;
    this.#looked = new Map(
      candidates.flatMap(({ tree: { tag } }) => {
        const version = looked.get(tag);
        return version === undefined ? [] : [[tag, version]];
      }),
    );
    const found: AgentKey[] = [];
    for (let at = 0; at < candidates.length && found.length < limit; at += AT_ONCE) {
      const some = candidates.slice(at, at + AT_ONCE);
      const settled = await Promise.all(some.map((one) => this.#unattendedOf(one, isLiving)));
      for (const [index, agents] of settled.entries()) {
        const isStart = after !== undefined && some[index]?.tree.tag === from?.tag;
        const next = agents
          .filter((record) => (!isStart || record.agentId > after) && isKnownTo(query, record))
          .map(({ agentId }) => agentId);
        for (const agentId of next.toSorted()) found.push({ tenant, agentId });
      }
    }
    return found.slice(0, limit);
  }

  /** The unattended agents of a tree; removes the tree from the indexes if there are none. */
  async #unattendedOf(candidate: CandidateTree, isLiving: IsLiving): Promise<readonly AgentRecord[]> {
    return await this.#skipCorrupt(async () => {
      const { tree, deadHolders } = candidate;
      const { found, newest } = await this.#check(tree, isLiving);
      if (found.length > 0) return found;
      const isAtWork = newest > 0 && deadHolders.length === 0 && this.#looked.get(tree.tag) !== newest;
      if (!isAtWork) return await this.#remove(candidate, isLiving);
      this.#looked.set(tree.tag, newest);
      return [];
    });
  }

  async #remove({ tree, isPosted, deadHolders }: CandidateTree, isLiving: IsLiving): Promise<readonly AgentRecord[]> {
    const posts = { index: postsIndex(this.#keys, tree), member: tree.tag };
    const holders = deadHolders.map((id) => ({
      index: holdersIndex(this.#keys, tree),
      member: holderMember(id, tree.tag),
    }));
    const entries: { readonly index: IndexKeys; readonly member: string; readonly stamp: string }[] = [];
    for (const one of [...(isPosted ? [posts] : []), ...holders]) {
      entries.push({ ...one, stamp: await this.#indexes.lastWritten(one.index, one.member) });
    }
    await this.#write(tree, (session) => {
      if (isPosted && session.get(watchKinds.posts)) session.remove(watchKinds.posts);
      for (const id of deadHolders) {
        const row = session.get(watchKinds.holder(id));
        if (row?.isTold) session.put(watchKinds.holder(id), { ...row, isTold: false });
      }
    });
    const { found } = await this.#check(tree, isLiving);
    if (found.length > 0) return found;
    for (const { index, member, stamp } of entries) await this.#indexes.correct(index, member, stamp);
    return [];
  }

  /** Checks a few trees that may be missing in the indexes, and writes the entries of those with unattended agents. */
  async #sweep(tenant: string, isLiving: IsLiving): Promise<void> {
    const ids = await this.#lists.rootIds(tenant, this.#swept.get(tenant), SWEPT);
    const last = ids.length < SWEPT ? undefined : ids.at(-1);
    if (last === undefined) this.#swept.delete(tenant);
    else this.#swept.set(tenant, last);
    const check = async (rootAgentId: string): Promise<readonly AgentRecord[]> => {
      const tree = this.#keys.treeOf(tenant, rootAgentId);
      const { found } = await this.#check(tree, isLiving);
      if (found.length > 0) await this.#writeAgain(tree);
      return found;
    };
    await Promise.all(ids.map((id) => this.#skipCorrupt(() => check(id))));
  }

  async #writeAgain(tree: TreeKeys): Promise<void> {
    await this.#write(tree, (session) => {
      session.remove(watchKinds.posts);
      watchPosts(session, this.#keys);
    });
  }

  async #skipCorrupt(check: () => Promise<readonly AgentRecord[]>): Promise<readonly AgentRecord[]> {
    try {
      return await check();
    } catch (error) {
      if (error instanceof CorruptRecordError) return [];
      throw error;
    }
  }

  #check(tree: TreeKeys, isLiving: IsLiving): Promise<Look> {
    return unattendedOfTree(this.#connection, this.#reader, tree, isLiving);
  }
}

/** A tree that the indexes list. */
interface CandidateTree {
  readonly tree: TreeKeys;
  readonly isPosted: boolean;
  /** Dead processes that may hold agents of the tree. */
  readonly deadHolders: readonly string[];
}

/** The trees in the indexes that may have unattended agents. */
class CandidateTrees {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** In the order of partition and tag, from a given tree on; trees that only processes of `livingIds` hold are left out. */
  async list(tenant: string, livingIds: readonly string[], from: TreeKeys | undefined): Promise<CandidateTree[]> {
    const found = await Promise.all(
      partitions.map(async (partition) => {
        if (from && partition < from.partition) return [];
        const start = from?.partition === partition ? from.tag : "";
        return await this.#ofPartition({ tenant, partition }, livingIds, start);
      }),
    );
    return found.flat();
  }

  async #ofPartition(
    place: Pick<TreeKeys, "tenant" | "partition">,
    livingIds: readonly string[],
    start: string,
  ): Promise<CandidateTree[]> {
    const [posted, lost] = await Promise.all([
      this.#posted(postsIndex(this.#keys, place), start),
      this.#candidateTrees(holdersIndex(this.#keys, place), livingIds),
    ]);
    const tags = [...new Set([...posted, ...lost.keys()])].filter((tag) => tag >= start).sort();
    return tags.map((tag) => ({
      tree: this.#keys.ofTag(tag),
      isPosted: posted.has(tag),
      deadHolders: lost.get(tag) ?? [],
    }));
  }

  async #posted({ list }: IndexKeys, start: string): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = start === "" ? "-" : `[${start}`; ; ) {
      const page = await this.#connection.run((client) => client.zrangebylex(list, from, "+", "LIMIT", 0, PAGE));
      for (const tag of page) found.add(tag);
      if (page.length < PAGE) return found;
      from = `(${page.at(-1)}`;
    }
  }

  /** The dead processes that hold agents, by tree. */
  async #candidateTrees({ list }: IndexKeys, livingIds: readonly string[]): Promise<Map<string, string[]>> {
    const living = livingIds.map((id) => holderMember(id, "").trimEnd());
    const found = new Map<string, string[]>();
    for (let from = "-"; ; ) {
      const page = textsOf(await this.#connection.script(deadHoldersScript, [list], [from, PAGE, ...living]));
      for (const member of page) {
        const [holder = "", tag = ""] = member.split(" ");
        const holders = found.get(tag) ?? [];
        found.set(tag, [...holders, decodeURIComponent(holder)]);
      }
      if (page.length < PAGE) return found;
      from = `(${page.at(-1)}`;
    }
  }
}

/** The result of checking a tree. */
interface Look {
  /** The unattended agents, in the order in which they were created. */
  readonly found: readonly AgentRecord[];
  /** The newest version of an agent's head, which every commit writes; 0 for a tree without agents. */
  readonly newest: number;
}

async function unattendedOfTree(
  connection: RedisConnection,
  reader: RedisReader,
  tree: TreeKeys,
  isLiving: (processId: string) => boolean,
): Promise<Look> {
  const [ids = [], stored = []] = listsOf(await connection.script(headsScript, [tree.rows, tree.agents], []));
  const heads = new Map<string, Head>();
  for (const [index, id] of ids.entries()) {
    const text = stored[index] ?? "";
    const head = text === "" ? freshHead : (valueOf(seenRow(text), rowKinds.head(id), tree.rows)?.head ?? freshHead);
    if (head.holder === null || !isLiving(head.holder)) heads.set(id, head);
  }
  const inboxes = await inboxesOf(connection, tree, [...heads.keys()]);
  const candidates = [...heads].filter(([id, { work }]) => work === "open" || inboxes.has(id));
  const records = await withAncestors(
    reader,
    tree,
    candidates.map(([id]) => id),
  );
  const tables = { agent: ({ agentId }: AgentKey) => records.get(agentId) };
  const found = candidates.flatMap(([id, head]) => {
    const record = records.get(id);
    return record && isUnattended(tables, { record, head, inbox: inboxes.get(id) ?? [] }) ? [record] : [];
  });
  return { found, newest: stored.reduce((newest, text) => Math.max(newest, Number(seenRow(text).version)), 0) };
}

/** Returns the agents with a non-empty inbox: an empty hash does not exist in Redis. */
export async function postedTo(
  connection: RedisConnection,
  keys: RedisKeys,
  agents: readonly AgentKey[],
): Promise<AgentKey[]> {
  const mayMix = await connection.mayMixKeys();
  const groups = Map.groupBy(agents, ({ tenant, agentId }) => (mayMix ? "" : keys.treeOf(tenant, agentId).tag));
  const parts = [...groups.values()].flatMap((group) => slicesOf(group, INBOXES));
  const found = await Promise.all(
    parts.map(async (part) => {
      const inboxes = part.map(({ tenant, agentId }) => keys.treeOf(tenant, agentId).ofAgent("inbox", agentId));
      const answer: unknown = await connection.script(existsScript, inboxes, []);
      return part.filter((_, index) => Array.isArray(answer) && Number(answer[index]) === 1);
    }),
  );
  return found.flat();
}

function slicesOf<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));
}

/** Only non-empty inboxes. */
async function inboxesOf(
  connection: RedisConnection,
  tree: TreeKeys,
  ids: readonly string[],
): Promise<Map<string, InboxItem[]>> {
  const found = new Map<string, InboxItem[]>();
  for (let at = 0; at < ids.length; at += INBOXES) {
    const some = ids.slice(at, at + INBOXES);
    const keys = some.map((id) => tree.ofAgent("inbox", id));
    const inboxes = listsOf(await connection.script(inboxesScript, keys, []));
    for (const [index, id] of some.entries()) {
      const texts = inboxes[index] ?? [];
      if (texts.length > 0) found.set(id, itemsIn(texts, keys[index] ?? ""));
    }
  }
  return found;
}

/** The records of these agents and of all agents above them, which may have a mark. */
async function withAncestors(
  reader: RedisReader,
  tree: TreeKeys,
  ids: readonly string[],
): Promise<ReadonlyMap<string, AgentRecord>> {
  const records = new Map<string, AgentRecord>();
  for (let wanted = [...ids]; wanted.length > 0; ) {
    const found = await reader.rows(
      tree,
      wanted.map((id) => rowKinds.record(tree.tenant, id)),
    );
    for (const record of found) records.set(record.agentId, record);
    const parents = found.flatMap(({ parentAgentId }) => parentAgentId ?? []);
    wanted = [...new Set(parents)].filter((id) => !records.has(id));
  }
  return records;
}

function listsOf(answer: unknown): string[][] {
  return Array.isArray(answer) ? answer.map((part: unknown) => textsOf(part)) : [];
}
