/** A member of a sorted list. */
export interface Member {
  readonly member: string;
  readonly score: number;
}

/** Sorted lists that are read page by page; a page without members is the end of its list. */
export interface MemberLists {
  /** What comes first after a member in each of them. */
  first(after: Member | undefined): Promise<readonly (readonly Member[])[]>;
  next(index: number, after: Member): Promise<readonly Member[]>;
}

interface Head {
  readonly index: number;
  page: readonly Member[];
  next: number;
}

/** Several sorted lists as one. Each is read no further than it is asked for. */
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

/** As Redis orders them: by their scores, those of one score by their bytes. */
export function compareMembers(one: Member, other: Member): number {
  return one.score - other.score || Buffer.compare(Buffer.from(one.member), Buffer.from(other.member));
}

/** What of a long list is wanted, taken up in pieces. */
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

const PIECE = 200;
