import { isHead, type TreeKeys } from "./redis-keys.ts";
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
  isStale(tree: TreeKeys): boolean;
}

/**
 * What this process has seen of one tree.
 * Owns: rows and collections with the versions they had. Does not own: whether they are still that; each transaction has
 * that validated.
 *
 * Invariant: versions of a tree only grow. Whoever finds an older one than was seen here has found that Redis lost what it
 * had acknowledged.
 */
export class TreeCache {
  readonly #rows = new Map<string, SeenRow>();
  readonly #collections = new Map<string, SeenMembers>();
  /** Whether all rows were here at one moment: then one that is not here was not there. */
  #isComplete = false;
  /** The newest version that each agent's head was seen at: every commit writes one. Known also when nothing else is believed. */
  readonly #heads = new Map<string, number>();
  #newest = 0;
  #timesRolledBack = 0;
  /** Called when the tree is found at an older version than the newest one that was seen; 0 where nothing of it is left. */
  onRolledBack: ((had: number, found: number) => void) | undefined;

  /** The newest version that anything of the tree was seen at; 0 for none. */
  get newest(): number {
    return this.#newest;
  }

  /** How often it was found at an older version. */
  get timesRolledBack(): number {
    return this.#timesRolledBack;
  }

  get size(): number {
    return this.#rows.size + this.#collections.size + this.#heads.size;
  }

  /** The newest versions that agents' heads were seen at, by field. */
  get heads(): ReadonlyMap<string, number> {
    return this.#heads;
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
    this.saw(row.version);
    if (!isCollection(field)) this.putRow(field, row);
    else if (this.#collections.get(field)?.version !== row.version) this.#collections.delete(field);
  }

  noteAll(rows: ReadonlyMap<string, string>): void {
    for (const [field, stored] of rows) this.note(field, stored);
    this.#isComplete = true;
  }

  /** Something of the tree, or all of it, has this version. */
  saw(version: string): void {
    this.#newest = Math.max(this.#newest, Number(version));
  }

  /** The tree is at this version: nothing is believed any more, where newer ones were seen. */
  rollBack(found: number): void {
    const had = this.#newest;
    if (found >= had) return;
    this.clear();
    this.#heads.clear();
    this.#newest = found;
    this.#timesRolledBack += 1;
    this.onRolledBack?.(had, found);
  }

  putRow(field: string, row: SeenRow): void {
    this.#rows.set(field, row);
    if (isHead(field)) this.#heads.set(field, Math.max(Number(row.version), this.#heads.get(field) ?? 0));
  }

  take({ members, rows }: LoadedMembers): void {
    for (const [field, stored] of rows ?? []) this.note(field, stored);
    for (const [field, seen] of members) this.putMembers(field, seen);
  }

  putMembers(field: string, members: SeenMembers): void {
    this.saw(members.version);
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
