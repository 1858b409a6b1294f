import type { TreeKeys } from "./redis-keys.ts";
import { absentRow, type SeenRow, seenRow } from "./redis-rows.ts";

/** Members of a collection and the version they had. */
export interface SeenMembers {
  readonly version: string;
  readonly value: unknown;
}

/** What was read of a tree to know a collection: perhaps others and rows, too. */
export interface LoadedMembers {
  readonly members: ReadonlyMap<string, SeenMembers>;
  readonly rows?: ReadonlyMap<string, string>;
}

/** What readers share with the transactions of their process. */
export interface KnownTrees {
  /** A row as it was just read, undefined where there is none: whoever reads one may be about to change it. */
  note(tree: TreeKeys, field: string, stored: string | undefined): void;
  /** Whether another process has written to the tree since a transaction of this one was validated. */
  isDoubtful(tree: TreeKeys): boolean;
}

/**
 * What this process has seen of one tree.
 * Owns: rows and collections with the versions they had. Does not own: whether they are still that; each transaction has
 * that validated.
 */
export class TreeCache {
  readonly #rows = new Map<string, SeenRow>();
  readonly #collections = new Map<string, SeenMembers>();
  /** Whether all rows were here at one moment: then one that is not here was not there. */
  #isComplete = false;

  get size(): number {
    return this.#rows.size + this.#collections.size;
  }

  row(field: string): SeenRow | undefined {
    return this.#rows.get(field) ?? (this.#isComplete ? absentRow : undefined);
  }

  collection(field: string): SeenMembers | undefined {
    return this.#collections.get(field);
  }

  /** A row as it is stored, undefined for none; or the version of a collection. */
  note(field: string, stored: string | undefined): void {
    const row = stored === undefined ? absentRow : seenRow(stored);
    if (!isCollection(field)) this.#rows.set(field, row);
    else if (this.#collections.get(field)?.version !== row.version) this.#collections.delete(field);
  }

  noteAll(rows: ReadonlyMap<string, string>): void {
    for (const [field, stored] of rows) this.note(field, stored);
    this.#isComplete = true;
  }

  putRow(field: string, row: SeenRow): void {
    this.#rows.set(field, row);
  }

  take({ members, rows }: LoadedMembers): void {
    for (const [field, stored] of rows ?? []) this.note(field, stored);
    for (const [field, seen] of members) this.putMembers(field, seen);
  }

  putMembers(field: string, members: SeenMembers): void {
    this.#collections.set(field, members);
  }

  forgetMembers(field: string): void {
    this.#collections.delete(field);
  }

  clear(): void {
    this.#rows.clear();
    this.#collections.clear();
    this.#isComplete = false;
  }
}

/** The first letters of `fields` for the versions of collections. */
function isCollection(field: string): boolean {
  return ["k:", "f:", "w:", "n:"].some((start) => field.startsWith(start));
}
