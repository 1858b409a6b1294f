import { createHash } from "node:crypto";
import type { DatabaseSync, SQLOutputValue } from "node:sqlite";
import { optionsOf, textRule } from "../base/index.ts";
import { InvalidInputError, StoreUnavailableError } from "../errors/index.ts";
import { prepareSqliteFile, translatedSqliteError } from "../stores/index.ts";
import { type Memory, type MemoryKey, type MemoryStore, MOST_MEMORIES, tooManyMemories } from "./memory-store.ts";
import { wordsOf } from "./words.ts";

/** Options of `sqliteMemory()`. */
export interface SqliteMemoryOptions {
  /** Path of the file, relative to the working directory, or `:memory:`. It is created if it does not exist; its folder must exist. */
  readonly file: string;
}

/** Memories in a file of SQLite. */
export interface SqliteMemory extends MemoryStore {
  /** Closes the file; later calls reject. Calling it again changes nothing. */
  close(): Promise<void>;
}

/** Identifies files of this kind to SQLite: "tmem". */
const APPLICATION_ID = 0x746d656d;
const LAYOUT = 1;
/** How long a call waits for a process that is writing, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000;
/** How many different words of a query are searched; a longer query is cut. */
const MOST_WORDS = 64;

/**
 * Texts are indexed as `terms`, words without case and accents, and each row has a word for its key, so that a search reads only rows of
 * its key. `secure-delete` removes words from the index at once instead of at the next merge.
 */
const TABLES = `
  CREATE TABLE memories (
    number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, scope TEXT NOT NULL, owner TEXT NOT NULL,
    id TEXT NOT NULL, text TEXT NOT NULL, created_at INTEGER NOT NULL,
    UNIQUE (tenant, scope, owner, id)
  ) STRICT;
  CREATE VIRTUAL TABLE memory_terms USING fts5(owner, terms, tokenize = 'porter unicode61');
  INSERT INTO memory_terms(memory_terms, rank) VALUES ('secure-delete', 1);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${LAYOUT};
`;

/**
 * Keeps memories in a file of SQLite with a full-text index (FTS5); the best by BM25 come first, and English endings do not matter.
 * Several processes of one machine may use the file. What is forgotten is overwritten. Throws `InvalidInputError` for invalid options and
 * for a file of another kind, and `StoreUnavailableError` if the file cannot be opened.
 */
export function sqliteMemory(given: SqliteMemoryOptions): SqliteMemory {
  const { file } = optionsOf<SqliteMemoryOptions>(given, "sqliteMemory()", {
    rules: { file: textRule },
    needed: ["file"],
    instead: { path: "file", filename: "file", url: "file" },
  });
  const path = prepareSqliteFile(file);
  const database = guarded(path, () => open(path));
  const call = async <T>(work: () => T): Promise<T> => {
    if (!database.isOpen) throw new StoreUnavailableError(`the memory ${path} is closed; create it again`);
    return guarded(path, work);
  };
  return {
    remember: async (key, memory) => await call(() => written(database, () => remember(database, key, memory))),
    recall: async (key, search) => await call(() => recall(database, key, search)),
    forget: async (key, which) =>
      await call(() => {
        written(database, () => forget(database, key, which));
        // The write-ahead log has pages from before. A reader in another process may delay this until the next call.
        database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").all();
      }),
    close: async () => {
      if (database.isOpen) database.close();
    },
  };
}

function open(path: string): DatabaseSync {
  // Loaded here, so that the other parts of `troupe/kit` work where it does not exist.
  const { DatabaseSync: Database } = process.getBuiltinModule("node:sqlite");
  const database = new Database(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    database.exec("PRAGMA journal_mode = WAL");
    database.exec("PRAGMA synchronous = FULL");
    database.exec("PRAGMA secure_delete = ON");
    written(database, () => createTables(database, path));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function createTables(database: DatabaseSync, path: string): void {
  const pragma = (name: string): unknown => database.prepare(`PRAGMA ${name}`).get()?.[name];
  const isEmpty = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get()?.["tables"] === 0;
  if (isEmpty) return database.exec(TABLES);
  if (pragma("application_id") !== APPLICATION_ID) {
    throw new InvalidInputError(`sqliteMemory(): ${path} is another database; give memories a file of their own`);
  }
  if (pragma("user_version") !== LAYOUT) {
    throw new InvalidInputError(`sqliteMemory(): ${path} was written by a newer version; update this program`);
  }
}

function written(database: DatabaseSync, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

const ofKey = "tenant = ? AND scope = ? AND owner = ?";

function remember(database: DatabaseSync, key: MemoryKey, { id, text, createdAt }: Memory): void {
  const whose = [key.tenant, key.scope, key.id];
  if (database.prepare(`SELECT 1 FROM memories WHERE ${ofKey} AND id = ?`).get(...whose, id)) return;
  const known = database.prepare(`SELECT count(*) AS known FROM memories WHERE ${ofKey}`).get(...whose)?.["known"];
  if (Number(known) >= MOST_MEMORIES) throw tooManyMemories();
  const { lastInsertRowid } = database
    .prepare("INSERT INTO memories (tenant, scope, owner, id, text, created_at) VALUES (?, ?, ?, ?, ?, ?)")
    .run(...whose, id, text, createdAt);
  database
    .prepare("INSERT INTO memory_terms (rowid, owner, terms) VALUES (?, ?, ?)")
    .run(lastInsertRowid, wordOfKey(key), wordsOf(text).join(" "));
}

function recall(
  database: DatabaseSync,
  key: MemoryKey,
  { query, limit }: { readonly query: string; readonly limit: number },
): readonly Memory[] {
  const whose = [key.tenant, key.scope, key.id];
  if (query.trim() === "") {
    return database
      .prepare(`SELECT id, text, created_at FROM memories WHERE ${ofKey} ORDER BY created_at DESC, id LIMIT ?`)
      .all(...whose, limit)
      .map(memoryIn);
  }
  // Words consist of letters and digits, and stand in quotes: nothing of a query is syntax of FTS5.
  const words = [...new Set(wordsOf(query))].slice(0, MOST_WORDS).map((word) => `"${word}"`);
  if (words.length === 0) return [];
  return database
    .prepare(
      `SELECT memories.id, memories.text, memories.created_at
        FROM memory_terms JOIN memories ON memories.number = memory_terms.rowid
        WHERE memory_terms MATCH ? AND memories.tenant = ? AND memories.scope = ? AND memories.owner = ?
        ORDER BY bm25(memory_terms, 0.0, 1.0), memories.created_at DESC, memories.id LIMIT ?`,
    )
    .all(`owner : "${wordOfKey(key)}" AND terms : (${words.join(" OR ")})`, ...whose, limit)
    .map(memoryIn);
}

function forget(database: DatabaseSync, key: MemoryKey, which: { readonly id: string } | "all"): void {
  const whose = [key.tenant, key.scope, key.id];
  const rows = which === "all" ? ofKey : `${ofKey} AND id = ?`;
  const values = which === "all" ? whose : [...whose, which.id];
  database
    .prepare(`DELETE FROM memory_terms WHERE rowid IN (SELECT number FROM memories WHERE ${rows})`)
    .run(...values);
  database.prepare(`DELETE FROM memories WHERE ${rows}`).run(...values);
}

function memoryIn(row: Record<string, SQLOutputValue>): Memory {
  return { id: String(row["id"]), text: String(row["text"]), createdAt: Number(row["created_at"]) };
}

/** A hash, so that ids need no quoting and never match a part of another. */
function wordOfKey({ tenant, scope, id }: MemoryKey): string {
  return createHash("sha256")
    .update(JSON.stringify([tenant, scope, id]))
    .digest("hex");
}

function guarded<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && error.message.includes("no such module: fts5")) {
      throw new InvalidInputError(
        `sqliteMemory() needs SQLite's full-text index FTS5, which the SQLite of Node ${process.versions.node} lacks; use Node 24 or the newest 22`,
        { cause: error },
      );
    }
    throw translatedSqliteError(error, path);
  }
}
