import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { temporaryFolder } from "../temporary-folder.ts";

/** Same values as in the SQLite stores. `process`: writes survive the process; `full`: they also survive the machine. */
export type Durability = "process" | "full";

/** A hand-written table of messages, one transaction per message, with the pragmas of our SQLite stores. */
export interface MessageTable {
  insert(conversation: number, position: number, message: object): void;
  close(): void;
}

export function openMessageTable(durability: Durability): MessageTable {
  const { folder, remove } = temporaryFolder();
  const database = openDatabase(join(folder, "messages.db"), durability);
  database.exec(`CREATE TABLE messages (
    conversation INTEGER NOT NULL,
    position INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (conversation, position)
  ) STRICT, WITHOUT ROWID`);
  const insert = database.prepare("INSERT INTO messages VALUES (?, ?, ?)");
  return {
    // A statement outside a transaction is its own transaction.
    insert: (conversation, position, message) => void insert.run(conversation, position, JSON.stringify(message)),
    close: () => {
      database.close();
      remove();
    },
  };
}

/** A database with the pragmas of our SQLite stores. */
export function openDatabase(path: string, durability: Durability): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec(`PRAGMA synchronous = ${durability === "full" ? "FULL" : "NORMAL"}`);
  database.exec("PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY");
  return database;
}
