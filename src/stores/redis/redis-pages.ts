import { evaluate, type RedisConnection, textsOf } from "./redis-connection.ts";
import { pagesScript } from "./redis-read-scripts.ts";

/** How many members of one list are read at once. */
const PAGE = 200;
const PIECE = 200;

/** The order in which sorted lists are read. */
interface Order {
  readonly by: "name" | "score";
  /** Only scores up to this one. */
  readonly until?: number;
  /** Approximate number of members wanted from all lists together. */
  readonly wanted: number;
}

/** A member of a sorted list. */
export interface Member {
  readonly member: string;
  readonly score: number;
}

/** Sorted lists that are read page by page; an empty page means the end of a list. */
interface MemberLists {
  /** The first page of each list after a member. */
  first(after: Member | undefined): Promise<readonly (readonly Member[])[]>;
  next(index: number, after: Member): Promise<readonly Member[]>;
}

/** Reads several sorted lists page by page. The first pages are read with one command, in a cluster with one command per list. */
export function pagesOf(connection: RedisConnection, keys: readonly string[], order: Order): MemberLists {
  const size = Math.max(1, Math.min(PAGE, order.wanted));
  const read = (
    some: readonly string[],
    from: Member | undefined,
    offset: number,
    count: number,
  ): Promise<Member[][]> => readPages(connection, some, order, { from, offset, count });
  const following = async (key: string, after: Member | undefined, skipped: number): Promise<Member[]> => {
    // Members with the same score may precede it.
    for (let offset = skipped; ; offset += PAGE) {
      const [page = []] = await read([key], after, offset, PAGE);
      const later = laterThan(page, after);
      if (later.length > 0 || page.length < PAGE) return later;
    }
  };
  return {
    first: async (after) => {
      const pages = await read(keys, after, 0, size);
      return Promise.all(
        pages.map(async (page, index) => {
          const later = laterThan(page, after);
          const isShort = later.length > 0 || page.length < size;
          return isShort ? later : following(keys[index] ?? "", after, size);
        }),
      );
    },
    next: (index, after) => following(keys[index] ?? "", after, 0),
  };
}

function laterThan(page: readonly Member[], after: Member | undefined): Member[] {
  return after ? page.filter((member) => compareMembers(member, after) > 0) : [...page];
}

interface PageRange {
  readonly from: Member | undefined;
  readonly offset: number;
  readonly count: number;
}

async function readPages(
  connection: RedisConnection,
  keys: readonly string[],
  { by, until }: Order,
  { from, offset, count }: PageRange,
): Promise<Member[][]> {
  const start = by === "name" ? (from === undefined ? "-" : `(${from.member}`) : String(from?.score ?? "-inf");
  const end = by === "name" ? "+" : String(until ?? "+inf");
  const args = [by, start, end, offset, count];
  const answers = await connection.run(async (client): Promise<unknown[]> => {
    // In a cluster each list is in another slot.
    const groups = "nodes" in client ? keys.map((key) => [key]) : [keys];
    const answered = await Promise.all(groups.map((group) => evaluate(client, pagesScript, group, args)));
    return answered.flat();
  });
  return answers.map((answer) => {
    const texts = textsOf(answer);
    const members: Member[] = [];
    const step = by === "name" ? 1 : 2;
    for (let at = 0; at < texts.length; at += step) {
      members.push({ member: texts[at] ?? "", score: by === "name" ? 0 : Number(texts[at + 1]) });
    }
    return members;
  });
}

interface Head {
  readonly index: number;
  page: readonly Member[];
  next: number;
}

/** Merges several sorted lists into one; reads no list further than needed. */
export async function* merged(lists: MemberLists, after: Member | undefined): AsyncGenerator<Member> {
  const heads = (await lists.first(after)).map((page, index): Head => ({ index, page, next: 0 }));
  for (;;) {
    let first: Head | undefined;
    for (const head of heads) {
      const one = head.page[head.next];
      const best = first?.page[first.next];
      if (one && (!best || compareMembers(one, best) < 0)) first = head;
    }
    const member = first?.page[first.next];
    if (!first || !member) return;
    yield member;
    first.next += 1;
    if (first.next === first.page.length)
      Object.assign(first, { page: await lists.next(first.index, member), next: 0 });
  }
}

/** Compares like Redis: by score, then by the bytes of the member. */
function compareMembers(one: Member, other: Member): number {
  return one.score - other.score || Buffer.compare(Buffer.from(one.member), Buffer.from(other.member));
}

/** Loads members in pieces until there are enough results. */
export async function collected<T>(
  members: AsyncGenerator<Member>,
  limit: number,
  load: (members: readonly Member[]) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = [];
  let piece: Member[] = [];
  const take = async (): Promise<void> => {
    found.push(...(await load(piece)));
    piece = [];
  };
  if (limit === 0) return found;
  for await (const member of members) {
    piece.push(member);
    if (piece.length >= Math.min(limit, PIECE)) await take();
    if (found.length >= limit) break;
  }
  if (piece.length > 0) await take();
  return found.slice(0, limit);
}
