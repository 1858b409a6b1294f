import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import { livingFor, needsSomebody } from "../rules/leases.ts";
import type { UnattendedQuery } from "../rules/queries.ts";
import { freshHead, type Head } from "../rules/tables.ts";
import { type RedisConnection, textsOf } from "./redis-connection.ts";
import { holderHints, holderMember, postHints, type RedisHints, watchKinds, watchPosts } from "./redis-indexes.ts";
import { type HintKeys, PARTITIONS, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import type { RedisLists } from "./redis-lists.ts";
import { headsScript, inboxesScript, lostHoldersScript } from "./redis-read-scripts.ts";
import type { RedisReader } from "./redis-reader.ts";
import { itemsIn, rowKinds, seenRow, valueOf } from "./redis-rows.ts";
import type { TreeSession } from "./redis-session.ts";

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

/** Members that are read at once. */
const PAGE = 1000;

const partitions = Array.from({ length: PARTITIONS }, (_, index) => index);

/** A tree that the lists name, and what for. */
export interface NamedTree {
  readonly tree: TreeKeys;
  readonly isPosted: boolean;
  /** Processes that do not live and may hold agents of it. */
  readonly lostHolders: readonly string[];
}

/** What the lists say about where somebody may be missing. */
export class RedisLostTrees {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;

  constructor(connection: RedisConnection, keys: RedisKeys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** In the order of their places, from that of a tree on; `livingIds`: processes whose trees do not matter. */
  async named(tenant: string, livingIds: readonly string[], from: TreeKeys | undefined): Promise<NamedTree[]> {
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
  ): Promise<NamedTree[]> {
    const [posted, lost] = await Promise.all([
      this.#posted(postHints(this.#keys, place), start),
      this.#lost(holderHints(this.#keys, place), livingIds),
    ]);
    const tags = [...new Set([...posted, ...lost.keys()])].filter((tag) => tag >= start).sort();
    return tags.map((tag) => ({
      tree: this.#keys.ofTag(tag),
      isPosted: posted.has(tag),
      lostHolders: lost.get(tag) ?? [],
    }));
  }

  async #posted({ list }: HintKeys, start: string): Promise<Set<string>> {
    const found = new Set<string>();
    for (let from = start === "" ? "-" : `[${start}`; ; ) {
      const page = await this.#connection.run((client) => client.zrangebylex(list, from, "+", "LIMIT", 0, PAGE));
      for (const tag of page) found.add(tag);
      if (page.length < PAGE) return found;
      from = `(${page.at(-1)}`;
    }
  }

  /** By their tags, the processes that hold agents of them. */
  async #lost({ list }: HintKeys, livingIds: readonly string[]): Promise<Map<string, string[]>> {
    const living = livingIds.map((id) => holderMember(id, "").trimEnd());
    const found = new Map<string, string[]>();
    for (let from = "-"; ; ) {
      const page = textsOf(await this.#connection.script(lostHoldersScript, [list], [from, PAGE, ...living]));
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

/** Inboxes that are read at once. */
const INBOXES = 500;

/** The agents of a tree that somebody has to take up, in the order in which they were made. */
export async function restlessOf(
  connection: RedisConnection,
  reader: RedisReader,
  tree: TreeKeys,
  isLiving: (processId: string) => boolean,
): Promise<readonly string[]> {
  const [ids = [], stored = []] = listsOf(await connection.script(headsScript, [tree.rows, tree.agents], []));
  const heads = new Map<string, Head>();
  for (const [index, id] of ids.entries()) {
    const text = stored[index] ?? "";
    const head = text === "" ? freshHead : (valueOf(seenRow(text), rowKinds.head(id), tree.rows)?.head ?? freshHead);
    if (head.holder === null || !isLiving(head.holder)) heads.set(id, head);
  }
  const inboxes = await inboxesOf(connection, tree, [...heads.keys()]);
  const restless = [...heads].filter(([id, { work }]) => work === "open" || inboxes.has(id));
  const records = await withAncestors(
    reader,
    tree,
    restless.map(([id]) => id),
  );
  const tables = { agent: ({ agentId }: AgentKey) => records.get(agentId) };
  return restless.flatMap(([id, head]) => {
    const record = records.get(id);
    return record && needsSomebody(tables, { record, head, inbox: inboxes.get(id) ?? [] }) ? [id] : [];
  });
}

/** Of those that hold something. */
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

/** Their records, and those of all above them: a mark may stand there. */
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
