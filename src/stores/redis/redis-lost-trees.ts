import type { RedisConnection } from "./redis-connection.ts";
import { type HintKeys, PARTITIONS, type RedisKeys, type TreeKeys } from "./redis-keys.ts";
import { lostHoldersScript } from "./redis-read-scripts.ts";
import { textsOf } from "./redis-replies.ts";
import { holderHints, holderMember, postHints } from "./redis-watch.ts";

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
