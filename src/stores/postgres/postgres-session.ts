import type { Account, Waiter } from "../../budget/index.ts";
import { InvariantError } from "../../errors/index.ts";
import type { AgentRecord, AgentRequest, InboxItem } from "../../state/index.ts";
import type { StoredOutcome } from "../rules/stored-values.ts";
import { freshHead, type Head } from "../rules/tables.ts";
import { NotTogether } from "../rules/grouped-work.ts";
import { UndoLog } from "../rules/undo-log.ts";
import type { Query } from "../../postgres/index.ts";
import { type TableName, tableKeyOf, type TableRow } from "./postgres-rows.ts";
import type { TreeName } from "./postgres-text.ts";

/** A value that is parsed at its first use, so that a corrupt row only fails the work that needs it. */
export interface Held<T> {
  readonly value: T;
}

export class Lazy<T> implements Held<T> {
  readonly #read: () => T;
  #known: { readonly value: T } | undefined;

  constructor(read: () => T) {
    this.#read = read;
  }

  get value(): T {
    this.#known ??= { value: this.#read() };
    return this.#known.value;
  }
}

/** A head and the outcome of its last batch. */
export interface HeadRow {
  readonly head: Head;
  readonly outcome: Held<StoredOutcome>;
}

/** The rows that commits and commands read, by kind. Lists are in the order in which their rows were created. */
export interface LiveRows {
  readonly agent: Held<AgentRecord>;
  readonly head: Held<HeadRow>;
  readonly inbox: Held<ReadonlyMap<string, InboxItem>>;
  /** Open requests by id. */
  readonly open: Held<ReadonlyMap<string, AgentRequest>>;
  /** Ids of an agent's children. */
  readonly children: Held<readonly string[]>;
  readonly account: Held<Account>;
  readonly waiters: Held<readonly Waiter[]>;
  /** Ids of all accounts of the tree; its own id is empty. */
  readonly accounts: Held<readonly string[]>;
}
export type LiveKind = keyof LiveRows;

/** Values of rows that do not exist; `undefined` for rows that are then missing. */
const absent: { readonly [Kind in LiveKind]: LiveRows[Kind] | undefined } = {
  agent: undefined,
  head: undefined,
  inbox: { value: new Map() },
  open: { value: new Map() },
  children: { value: [] },
  account: undefined,
  waiters: { value: [] },
  accounts: { value: [] },
};

export const emptyHeadRow: HeadRow = {
  head: freshHead,
  outcome: { value: { hasRow: true, warnings: [], posted: [], timers: [] } },
};

/** Rows to load together. */
export interface Wanted {
  readonly agents?: readonly string[];
  /** Agents whose children are wanted. */
  readonly parents?: readonly string[];
  readonly accounts?: readonly string[];
  readonly allAccounts?: boolean;
}

function wantedFor(kind: LiveKind, id: string): Wanted {
  if (kind === "children") return { parents: [id] };
  if (kind === "accounts") return { allAccounts: true };
  if (kind === "account" || kind === "waiters") return { accounts: [id] };
  return { agents: [id] };
}

/** Loads a value with statements. */
export type Load<T> = (query: Query) => Promise<T>;

interface MissingValue {
  readonly key: string;
  readonly load: Load<unknown>;
  /** Whether the value does not belong to the tree. */
  readonly isBeside?: boolean;
}

/** Thrown by work that needs rows which are not loaded; after loading, the work runs again. */
export class Missing {
  readonly wanted: Wanted | undefined;
  readonly other: MissingValue | undefined;

  constructor(wanted: Wanted | undefined, other?: MissingValue) {
    this.wanted = wanted;
    this.other = other;
  }
}

/** The rows of a tree as stored under one version. */
export class TreeCache {
  /** The integer key; `undefined` if the tree is not stored. */
  id: number | undefined;
  /** `undefined`: unknown. 0: the tree is not stored. */
  version: number | undefined;
  lastCursor = 0;
  agents = 0;
  imports = 0;
  /** The last write. */
  writer = "";
  writeNo = 0;
  /** Number of the last write of this process; 0 if there is none. */
  ownWrite = 0;
  /** Whether all live rows are loaded: others do not exist. */
  isWhole = false;
  /** Live rows by kind and id, and other values by key. */
  readonly rows = new Map<string, unknown>();
  /** The newest version that this process has seen, and the seq of each head in it. They are kept when the rows are dropped. */
  newest = 0;
  readonly seen = new Map<string, number>();

  forget(): void {
    this.version = undefined;
    this.isWhole = false;
    this.rows.clear();
  }

  /** The tree was deleted. */
  forgetTree(): void {
    this.forget();
    Object.assign(this, { id: undefined, lastCursor: 0, agents: 0, imports: 0, writer: "", writeNo: 0, newest: 0 });
    this.seen.clear();
  }
}

/**
 * The reads and changes of a group of works that run one after the other on one tree.
 * Owns: the changes to write. Does not own: the cache, which it only reads.
 *
 * Invariants
 * 1. Everything that a work read of the tree is valid under the version of the cache, which the write checks.
 * 2. Work that throws changes nothing.
 * 3. Each work sees the changes of the previous ones.
 */
export class WriteSession {
  readonly tree: TreeName;
  readonly undo = new UndoLog();
  /** Rows to write or, for `null`, to delete. */
  readonly changes = new Map<TableName, Map<string, TableRow>>();
  /** Agents whose messages or artifacts are deleted before rows are written. */
  readonly cleared = { messages: new Set<string>(), artifacts: new Set<string>() };
  readonly values = new Map<string, unknown>();
  readonly #cache: TreeCache;
  readonly #beside: ReadonlyMap<string, unknown>;
  /** Lists that were changed without being loaded. */
  readonly #blind = new Map<string, true>();
  readonly #counts = { cursor: 0, agents: 0 };
  #isRemoved = false;
  #isPurged = false;
  #workCount = 0;
  #isWhole = false;

  /** `beside`: values beside the tree that this attempt has loaded. */
  constructor(tree: TreeName, cache: TreeCache, beside: ReadonlyMap<string, unknown>) {
    this.tree = tree;
    this.#beside = beside;
    this.#cache = cache;
    this.#counts.cursor = cache.lastCursor;
    this.#counts.agents = cache.agents;
  }

  run<T>(work: () => T): T {
    try {
      return this.undo.run(work);
    } finally {
      this.#workCount += 1;
    }
  }

  /** Call it for work whose reads do not see the changes of other works in its group. */
  alone(): void {
    if (this.#workCount > 0) throw new NotTogether("it reads stored data");
    this.#isWhole = true;
  }

  /** Whether further works may join the group. */
  get isOpen(): boolean {
    return !this.#isWhole;
  }

  /** Whether the tree was replaced or purged. */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  /** Whether nothing of the tree is kept, not even its version and its cursors. */
  get isPurged(): boolean {
    return this.#isPurged;
  }

  get lastCursor(): number {
    return this.#counts.cursor;
  }

  get agents(): number {
    return this.#counts.agents;
  }

  get isChanged(): boolean {
    return this.changes.size > 0 || this.#isRemoved || this.cleared.messages.size + this.cleared.artifacts.size > 0;
  }

  live<Kind extends LiveKind>(kind: Kind, id: string): LiveRows[Kind] | undefined {
    const key = `${kind}|${id}`;
    if (this.values.has(key)) return this.values.get(key) as LiveRows[Kind] | undefined;
    if (this.#isRemoved) return absent[kind];
    const { version, rows, isWhole } = this.#cache;
    if (version !== undefined && rows.has(key)) return rows.get(key) as LiveRows[Kind] | undefined;
    if (version !== undefined && (isWhole || version === 0)) return absent[kind];
    throw new Missing(wantedFor(kind, id));
  }

  put<Kind extends LiveKind>(kind: Kind, id: string, value: LiveRows[Kind] | undefined): void {
    this.undo.set(this.values, `${kind}|${id}`, value);
  }

  /** Changes a list. It need not be loaded: if it is read afterwards, it is loaded, and the work runs again. */
  change(kind: "children" | "accounts", id: string, ids: (before: readonly string[]) => string[]): void {
    const key = `${kind}|${id}`;
    const { isWhole, version, rows } = this.#cache;
    const isKnown = this.values.has(key) || this.#isRemoved || isWhole || version === 0 || rows.has(key);
    if (isKnown) this.put(kind, id, { value: ids(this.live(kind, id)?.value ?? []) });
    else this.undo.set(this.#blind, key, true);
  }

  /** Lists that the group changed without knowing them. */
  get blind(): ReadonlyMap<string, true> {
    return this.#blind;
  }

  /** Another value, which is loaded once for each version of the tree. */
  other<T>(key: string, load: Load<T>, empty: T): T {
    if (this.values.has(key)) return this.values.get(key) as T;
    if (this.#isRemoved) return empty;
    if (this.#cache.version === undefined) throw new Missing({});
    if (this.#cache.rows.has(key)) return this.#cache.rows.get(key) as T;
    if (this.#cache.version === 0) return empty;
    throw new Missing(undefined, { key, load });
  }

  /** A value beside the tree, which is loaded once for each attempt to write. */
  beside<T>(key: string, load: Load<T>): T {
    if (this.#beside.has(key)) return this.#beside.get(key) as T;
    throw new Missing(undefined, { key, load, isBeside: true });
  }

  putOther(key: string, value: unknown): void {
    this.undo.set(this.values, key, value);
  }

  write(table: TableName, row: TableRow): void {
    let rows = this.changes.get(table);
    if (!rows) {
      rows = new Map();
      this.undo.set(this.changes, table, rows);
    }
    this.undo.set(rows, tableKeyOf(row), row);
  }

  changed(table: TableName, key: TableRow["key"]): TableRow | undefined {
    return this.changes.get(table)?.get(JSON.stringify(key));
  }

  clear(table: "messages" | "artifacts", agentId: string): void {
    const rows = this.changes.get(table);
    if (rows) this.undo.set(this.changes, table, new Map([...rows].filter(([, { key }]) => key[0] !== agentId)));
    const cleared = this.cleared[table];
    if (cleared.has(agentId)) return;
    this.undo.note(() => cleared.delete(agentId));
    cleared.add(agentId);
  }

  countAgent(): void {
    this.#count("agents", this.#counts.agents + 1);
  }

  /** The cursor of a new row: the next one, or a given one. */
  takeCursor(given = this.#counts.cursor + 1): number {
    this.#count("cursor", Math.max(given, this.#counts.cursor));
    return given;
  }

  /** Removes the tree; later reads in this session see an empty tree. */
  removeAll(): void {
    if (!this.#isWhole) throw new InvariantError("a tree cannot be removed by work that shares a transaction");
    this.undo.note(() => (this.#isRemoved = false));
    this.#isRemoved = true;
    this.#count("agents", 0);
    this.values.clear();
    this.changes.clear();
  }

  /** The same, and nothing may be written afterwards. */
  purge(): void {
    this.removeAll();
    this.undo.note(() => (this.#isPurged = false));
    this.#isPurged = true;
  }

  #count(name: "cursor" | "agents", value: number): void {
    const before = this.#counts[name];
    this.undo.note(() => (this.#counts[name] = before));
    this.#counts[name] = value;
  }
}

/** Work that only reads: every read goes to Postgres, and nothing is cached. */
export class ReadSession {
  readonly #known = new Map<string, unknown>();

  ask<T>(key: string, load: (query: Query) => Promise<T>): T {
    if (this.#known.has(key)) return this.#known.get(key) as T;
    throw new Missing(undefined, { key, load });
  }

  note(key: string, value: unknown): void {
    this.#known.set(key, value);
  }
}
