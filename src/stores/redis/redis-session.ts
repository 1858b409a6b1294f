import { InvariantError } from "../../errors/index.ts";
import type { JournalRow } from "../../state/index.ts";
import { NotTogether } from "../rules/grouped-work.ts";
import { UndoLog } from "../rules/undo-log.ts";
import type { LoadedMembers, TreeCache } from "./redis-cache.ts";
import type { IndexKeys, TreeKeys } from "./redis-keys.ts";
import type { RedisReader } from "./redis-reader.ts";
import { absentRow, type RowKind, type SeenRow, valueOf } from "./redis-rows.ts";
import type { WholeTree } from "./redis-whole-tree.ts";

interface Check {
  readonly kind: "row" | "in" | "size" | "first" | "tree";
  readonly key: string;
  readonly name: string;
  readonly expected: string;
}

/** An operation of the script `apply`; keys are wrapped to distinguish them from texts. */
type Operation = readonly [name: string, ...args: readonly (string | { readonly key: string })[]];

/** A set of members in a separate key, with a separate version. */
export interface Collection<T> {
  readonly field: string;
  readonly key: string;
  readonly empty: T;
  readonly load: () => Promise<LoadedMembers>;
}

interface Written {
  /** `undefined` for a row that is removed. */
  readonly text: string | undefined;
  readonly value: unknown;
  readonly kind: "row" | "collection" | "changed collection";
}

/** An index entry to write before the tree is changed. */
export interface IndexWrite {
  readonly kind: "name" | "at" | "from" | "leaving";
  readonly keys: IndexKeys;
  readonly member: string;
  /** The score to write. `undefined` for "leaving", whose member is removed after the tree was changed. */
  readonly score: number | undefined;
  /** Readers correct every entry of this kind, so on a single server no write time is stored for it. */
  readonly isUnstamped?: boolean;
}

/**
 * The reads and changes of a group of works that run one after the other on one tree.
 * Owns: the reads to validate and the changes to write. Does not own: the cache, which it only reads.
 *
 * Invariants
 * 1. Everything that a work read of the tree is validated before anything is written, even if the work failed.
 * 2. Work that throws changes nothing.
 * 3. Each work sees the changes of the previous ones.
 */
export class TreeSession {
  readonly tree: TreeKeys;
  readonly answers: Answers;
  readonly checks = new Map<string, Check>();
  readonly written = new Map<string, Written>();
  readonly operations: Operation[] = [];
  readonly indexWrites: IndexWrite[] = [];
  /** Hashes of the definitions to write. */
  readonly definitions = new Map<string, true>();
  readonly undo = new UndoLog();
  readonly #cache: TreeCache;
  #inbox: Map<string, ReadonlyMap<string, boolean>> | undefined;
  #rowCount = 0;
  #workCount = 0;
  #whole: WholeTree | undefined;
  #isRemoved = false;
  #isPurged = false;

  constructor(tree: TreeKeys, cache: TreeCache, answers: Answers) {
    this.tree = tree;
    this.#cache = cache;
    this.answers = answers;
  }

  /** Whether further works may join the group. */
  get isOpen(): boolean {
    return this.#whole === undefined;
  }

  /** The newest version of the tree that this process has seen. */
  get newest(): number {
    return this.#cache.newest;
  }

  get whole(): WholeTree | undefined {
    return this.#whole;
  }

  run<T>(work: () => T): T {
    const rowsBefore = this.#rowCount;
    try {
      return this.undo.run(work);
    } catch (error) {
      this.#rowCount = rowsBefore;
      throw error;
    } finally {
      this.#workCount += 1;
    }
  }

  /** Call it for work that must be the first of its group, because its result depends on the stored data. */
  alone(): void {
    if (this.#workCount > 0) throw new NotTogether("it reads stored data");
  }

  get<T>(kind: RowKind<T>): T | undefined {
    const written = this.written.get(kind.field);
    if (written) return written.value as T | undefined;
    return valueOf(this.#seen(kind.field), kind, this.tree.rows);
  }

  /** In the order of `kinds`; missing rows are left out. */
  all<T>(kinds: readonly RowKind<T>[]): T[] {
    const missing = kinds.filter(({ field }) => !this.#isKnown(field)).map(({ field }) => field);
    if (missing.length > 0) throw missingRows(missing);
    return kinds.flatMap((kind) => this.get(kind) ?? []);
  }

  newestRow(agentId: string, reader: RedisReader): JournalRow | undefined {
    this.alone();
    return this.answers.ask(`newest|${agentId}`, () =>
      reader.newestRow(this.tree, this.tree.ofAgent("index", agentId)),
    );
  }

  put<T>(kind: RowKind<T>, value: T, text: string = JSON.stringify(value)): void {
    this.undo.set(this.written, kind.field, { text, value, kind: "row" });
  }

  remove(kind: RowKind<unknown>): void {
    this.undo.set(this.written, kind.field, { text: undefined, value: undefined, kind: "row" });
  }

  do(...operation: Operation): void {
    this.undo.push(this.operations, operation);
  }

  writeIndex(write: IndexWrite): void {
    this.undo.push(this.indexWrites, write);
  }

  members<T>(collection: Collection<T>): T {
    const known = this.#membersKnown(collection);
    if (known) return known.value;
    throw new Missing(collection.key, async () => this.#cache.take(await collection.load()));
  }

  /** Changes a collection. It need not be loaded: its new version makes other processes load it again. */
  change<T>(collection: Collection<T>, change: (members: T) => T): void {
    const known = this.#membersKnown(collection);
    const written: Written = known
      ? { text: "", value: change(known.value), kind: "collection" }
      : { text: "", value: undefined, kind: "changed collection" };
    this.undo.set(this.written, collection.field, written);
  }

  /** Replaces a collection, loaded or not. */
  replace<T>(collection: Collection<T>, members: T): void {
    this.undo.set(this.written, collection.field, { text: "", value: members, kind: "collection" });
  }

  isInInbox(key: string, itemKey: string): boolean {
    const changed = this.#inbox?.get(key)?.get(itemKey);
    if (changed !== undefined) return changed;
    if (this.#isRemoved) return false;
    // Nearly every item is new, so this assumes it; if the item exists already, the validation detects it.
    const expected = this.answers.get(`in|${key}|${itemKey}`) === "1" ? "1" : "0";
    this.#check({ kind: "in", key, name: itemKey, expected });
    return expected === "1";
  }

  noteInbox(key: string, itemKey: string, isIn: boolean): void {
    this.#inbox ??= new Map();
    const changed = new Map(this.#inbox.get(key));
    changed.set(itemKey, isIn);
    this.undo.set(this.#inbox, key, changed);
  }

  /** Stores a definition, unless the tree contains it. Definitions that were seen there are assumed to be stored. */
  keepDefinition(hash: string, text: () => string): void {
    if (this.definitions.has(hash)) return;
    const { definitions: key } = this.tree;
    const found = this.answers.get(`in|${key}|${hash}`) ?? (this.#cache.definitions.has(hash) ? "1" : "0");
    if (!this.#isRemoved) this.#check({ kind: "in", key, name: hash, expected: found === "1" ? "1" : "0" });
    if (found === "1" && !this.#isRemoved) return;
    this.undo.set(this.definitions, hash, true);
    this.do("put", { key }, hash, text());
  }

  inboxSize(key: string): number {
    if (this.#inbox?.has(key)) throw new NotTogether("it counts items that were just changed");
    // The caller is about to leave a tree at rest, so this assumes an empty inbox; the validation detects an item.
    const known = this.answers.get(`size|${key}|`);
    const size = typeof known === "string" ? known : "0";
    this.#check({ kind: "size", key, name: "", expected: size });
    return Number(size);
  }

  /** When the first timer of the tree is due. */
  firstDue(load: () => Promise<string>): string {
    const score = this.answers.ask(`first|${this.tree.due}|`, load);
    this.#check({ kind: "first", key: this.tree.due, name: "", expected: score });
    return score;
  }

  /** A negative number that stands for a row whose cursor the script assigns. */
  nextRow(): number {
    this.#rowCount += 1;
    return -this.#rowCount;
  }

  /** Loads the complete tree; the transaction fails if the tree changes in between. */
  loadWhole(load: () => Promise<WholeTree>): WholeTree {
    this.alone();
    const whole = this.answers.ask("whole", load);
    this.#whole = whole;
    this.#check({ kind: "tree", key: this.tree.meta, name: "", expected: whole.version });
    return whole;
  }

  /** Removes the tree; later reads in this session see an empty tree. */
  removeAll(): void {
    if (!this.#whole) throw new InvariantError("a tree cannot be removed before it was loaded");
    this.#isRemoved = true;
  }

  /** Also deletes the version and the cursors of a removed tree; nothing else may be written in this session. */
  purge(): void {
    this.#isPurged = true;
    this.do("purge");
  }

  get isPurged(): boolean {
    return this.#isPurged;
  }

  #isKnown(field: string): boolean {
    return this.written.has(field) || this.#whole !== undefined || this.#cache.row(field) !== undefined;
  }

  #seen(field: string): SeenRow {
    if (this.#isRemoved) return absentRow;
    // The version of the complete tree is validated instead.
    if (this.#whole) return this.#whole.rows.get(field) ?? absentRow;
    const row = this.#cache.row(field);
    if (!row) throw missingRows([field]);
    this.#check({ kind: "row", key: this.tree.rows, name: field, expected: row.version });
    return row;
  }

  #membersKnown<T>(collection: Collection<T>): { readonly value: T } | undefined {
    const written = this.written.get(collection.field);
    if (written) return written.kind === "collection" ? { value: written.value as T } : undefined;
    if (this.#isRemoved) return { value: collection.empty };
    const cached = this.#cache.collection(collection.field);
    if (!cached) return undefined;
    this.#check({ kind: "row", key: this.tree.rows, name: collection.field, expected: cached.version });
    return { value: cached.value as T };
  }

  #check(check: Check): void {
    const id = check.kind === "row" ? checkOfRow(check.name) : `${check.kind}|${check.key}|${check.name}`;
    if (!this.checks.has(id)) this.checks.set(id, check);
  }
}

/** The key of a row's check; all rows of a tree have the same Redis key. */
export function checkOfRow(field: string): string {
  return field;
}

function missingRows(names: readonly string[]): Missing {
  return new Missing("rows", async () => undefined, names);
}

/** Thrown by work that needs data which is not loaded; after loading, the work runs again. */
export class Missing {
  readonly key: string;
  readonly load: () => Promise<unknown>;
  /** Rows to load instead of calling `load`, so that several works share one command. */
  readonly rows: readonly string[];

  constructor(key: string, load: () => Promise<unknown>, rows: readonly string[] = []) {
    this.key = key;
    this.load = load;
    this.rows = rows;
  }
}

/** Values that were loaded for one piece of work, each loaded once. */
export class Answers {
  /** Created on demand: most works load nothing. */
  #known: Map<string, unknown> | undefined;

  ask<T>(key: string, load: () => Promise<T>): T {
    if (this.#known?.has(key)) return this.#known.get(key) as T;
    throw new Missing(key, load);
  }

  get(key: string): unknown {
    return this.#known?.get(key);
  }

  set(key: string, value: unknown): void {
    this.#known ??= new Map();
    this.#known.set(key, value);
  }

  forget(key: string): void {
    this.#known?.delete(key);
  }

  forgetAll(): void {
    this.#known = undefined;
  }
}
