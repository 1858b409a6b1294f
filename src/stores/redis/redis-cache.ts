import { fields, isHead, type TreeKeys } from "./redis-keys.ts";
import { absentRow, type SeenRow, seenRow } from "./redis-rows.ts";

/** The members of a collection, and their version. */
interface SeenMembers {
  readonly version: string;
  readonly value: unknown;
}

/** The result of loading a collection; may include other collections and rows of the tree. */
export interface LoadedMembers {
  readonly members: ReadonlyMap<string, SeenMembers>;
  readonly rows?: ReadonlyMap<string, string>;
}

/** The part of the caches that readers share with the transactions of their process. */
export interface KnownTrees {
  /**
   * Records a row that was just read, undefined if it does not exist: its reader may be about to change it. Gives the row,
   * whose text is already parsed if this version of it was seen before.
   */
  note(tree: TreeKeys, field: string, stored: string | undefined): SeenRow;
  /** Whether the tree has transactions here that will want a row which is not known. */
  lacks(tree: TreeKeys, field: string): boolean;
}

/**
 * A cache of one tree as this process has last seen it.
 * Owns: rows and collections with their versions. Does not own: whether they are current, which each transaction
 * validates.
 *
 * Invariant: versions of a tree only grow. An older version than one seen here means that Redis was rolled back.
 */
export class TreeCache {
  readonly #rows = new Map<string, SeenRow>();
  readonly #collections = new Map<string, SeenMembers>();
  /** Whether all rows were loaded at one moment, so that a row that is not here does not exist. */
  #isComplete = false;
  /** Rows that another process has written since they were last seen. */
  readonly #forgotten = new Set<string>();
  /**
   * The newest version seen of each agent's head, which every commit writes. Kept when the rest of the cache is
   * cleared.
   */
  readonly #heads = new Map<string, number>();
  /** Hashes of definitions that the tree has. */
  readonly definitions = new Set<string>();
  #newest = 0;
  #timesRolledBack = 0;
  /**
   * Called when the tree is found at an older version than the newest one seen; `found` is 0 if nothing of it is left.
   */
  onRolledBack: ((had: number, found: number) => void) | undefined;

  /** The newest version seen of anything in the tree; 0 for none. */
  get newest(): number {
    return this.#newest;
  }

  /** How often the tree was found at an older version. */
  get timesRolledBack(): number {
    return this.#timesRolledBack;
  }

  get size(): number {
    return this.#rows.size + this.#collections.size + this.#heads.size + this.definitions.size;
  }

  /** The newest versions seen of agents' heads, by field. */
  get heads(): ReadonlyMap<string, number> {
    return this.#heads;
  }

  row(field: string): SeenRow | undefined {
    return this.#rows.get(field) ?? (this.#isComplete && !this.#forgotten.has(field) ? absentRow : undefined);
  }

  collection(field: string): SeenMembers | undefined {
    return this.#collections.get(field);
  }

  /** Records a row as it is stored, undefined if it does not exist; or the version of a collection. */
  note(field: string, stored: string | undefined): SeenRow {
    const row = stored === undefined ? absentRow : seenRow(stored);
    this.saw(row.version);
    if (isCollection(field)) {
      if (this.#collections.get(field)?.version !== row.version) this.#collections.delete(field);
      return row;
    }
    const known = this.#rows.get(field);
    if (known?.value !== undefined && known.version === row.version && known.text === row.text) return known;
    this.putRow(field, row);
    return row;
  }

  /** Another process has written this row. */
  forgetRow(field: string): void {
    if (this.#rows.delete(field)) this.#forgotten.add(field);
  }

  noteAll(rows: ReadonlyMap<string, string>): void {
    for (const [field, stored] of rows) this.note(field, stored);
    // What another process had written and is not among them does not exist.
    this.#forgotten.clear();
    this.#isComplete = true;
  }

  /** Records that the tree, or something in it, has this version. */
  saw(version: string): void {
    this.#newest = Math.max(this.#newest, Number(version));
  }

  /** The tree was found at this version: if newer ones were seen, everything cached is dropped. */
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
    this.#forgotten.delete(field);
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
    this.#forgotten.clear();
    this.#collections.clear();
    this.definitions.clear();
    this.#isComplete = false;
  }
}

/** Whether a field holds the version of a collection. */
function isCollection(field: string): boolean {
  if (field === fields.accounts || field === fields.processes) return true;
  return ["children:", "artifacts:", "waiters:"].some((start) => field.startsWith(start));
}
