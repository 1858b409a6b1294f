import { fields, isHead, type TreeKeys } from "./redis-keys.ts";
import { absentRow, type SeenRow, seenRow } from "./redis-rows.ts";

/** The members of a collection, and its version. */
interface SeenMembers {
  readonly version: string;
  readonly value: unknown;
}

/** The result of loading a collection; may also contain other collections and rows of the tree. */
export interface LoadedMembers {
  readonly members: ReadonlyMap<string, SeenMembers>;
  readonly rows?: ReadonlyMap<string, string>;
}

/** The functions of the caches that readers share with transactions in this process. */
export interface KnownTrees {
  /**
   * Records a row that was just read (`undefined` if it does not exist), because its reader may be about to change it. The returned row
   * is parsed already if this version was seen before.
   */
  note(tree: TreeKeys, field: string, stored: string | undefined): SeenRow;
  /** Whether this process has transactions on the tree that will need this row, and the row is not cached. */
  lacks(tree: TreeKeys, field: string): boolean;
}

/**
 * A cache of one tree as this process last saw it.
 * Owns: rows and collections with their versions. Does not own: whether they are current; each transaction validates that.
 *
 * Invariant: versions of a tree only grow. An older version than one seen here means that Redis was rolled back.
 */
export class TreeCache {
  readonly #rows = new Map<string, SeenRow>();
  readonly #collections = new Map<string, SeenMembers>();
  /** Whether all rows were loaded at one moment, so that a row that is missing here does not exist. */
  #isComplete = false;
  /** Rows that another process has written since they were last seen. */
  readonly #forgotten = new Set<string>();
  /** The newest version seen of each agent's head, which every commit writes. Kept when the rest of the cache is cleared. */
  readonly #heads = new Map<string, number>();
  /** Hashes of the definitions that the tree is known to contain. */
  readonly definitions = new Set<string>();
  #newest = 0;
  #timesRolledBack = 0;
  /** Called when the tree has an older version than the newest one seen; `found` is 0 if the tree is gone. */
  onRolledBack: ((had: number, found: number) => void) | undefined;

  /** The newest version seen of any row in the tree; 0 if none was seen. */
  get newest(): number {
    return this.#newest;
  }

  /** How often the tree had an older version than the newest one seen. */
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

  /** Records a row as stored (`undefined` if it does not exist), or the version of a collection. */
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

  /** Called when another process has written this row. */
  forgetRow(field: string): void {
    if (this.#rows.delete(field)) this.#forgotten.add(field);
  }

  noteAll(rows: ReadonlyMap<string, string>): void {
    for (const [field, stored] of rows) this.note(field, stored);
    // Rows that other processes wrote and that were not loaded do not exist.
    this.#forgotten.clear();
    this.#isComplete = true;
  }

  /** Records that the tree, or a row in it, has this version. */
  saw(version: string): void {
    this.#newest = Math.max(this.#newest, Number(version));
  }

  /** Called with the version of the tree in Redis: if a newer one was seen, the cache is cleared. */
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

  /** Called when the tree was deleted: it has no version any more. */
  forget(): void {
    this.clear();
    this.#heads.clear();
    this.#newest = 0;
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
