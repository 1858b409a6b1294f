import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { type Side, timed } from "../study.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { openDatabase } from "./sqlite-messages.ts";

interface Row {
  readonly id: number;
  readonly parent: number | null;
  readonly limit_tokens: number;
  readonly used: number;
  readonly reserved: number;
}

const RESERVED = 500;
const USED = 120;
const DEPTH = 4;

/** A hand-written budget: one row per account, one transaction to reserve and one to settle. No journal, no prices. */
export function sqliteAccountsSide(times: number): Side {
  return {
    name: "bare SQLite",
    prepare: async () => {
      const { folder, remove } = temporaryFolder();
      const database = openDatabase(join(folder, "accounts.db"), "process");
      const accounts = new HandWrittenAccounts(database);
      return {
        sample: async () => {
          const before = accounts.used();
          const { elapsedMs, processorMs } = await timed(() => {
            for (let time = 0; time < times; time += 1) {
              accounts.reserve(RESERVED);
              accounts.settle(RESERVED, USED);
            }
          });
          if (accounts.used() - before !== USED * times) throw new Error("reserve-settle: the rows do not add up.");
          return { value: (elapsedMs / times) * 1000, processorMs: processorMs / times };
        },
        close: async () => {
          database.close();
          remove();
        },
      };
    },
  };
}

class HandWrittenAccounts {
  readonly #database: DatabaseSync;
  readonly #statements;

  constructor(database: DatabaseSync) {
    database.exec(`CREATE TABLE accounts (
      id INTEGER PRIMARY KEY, parent INTEGER, limit_tokens INTEGER NOT NULL, used INTEGER NOT NULL, reserved INTEGER NOT NULL
    ) STRICT`);
    for (let id = 1; id <= DEPTH; id += 1) {
      const parent = id === 1 ? null : id - 1;
      database.prepare("INSERT INTO accounts VALUES (?, ?, ?, 0, 0)").run(id, parent, Number.MAX_SAFE_INTEGER);
    }
    this.#database = database;
    this.#statements = {
      begin: database.prepare("BEGIN IMMEDIATE"),
      commit: database.prepare("COMMIT"),
      find: database.prepare("SELECT * FROM accounts WHERE id = ?"),
      update: database.prepare("UPDATE accounts SET used = ?, reserved = ? WHERE id = ?"),
    };
  }

  used(): number {
    return this.#find(DEPTH)?.used ?? 0;
  }

  reserve(tokens: number): void {
    this.#change((row) => {
      if (row.used + row.reserved + tokens > row.limit_tokens) throw new Error("The budget is spent.");
      return { used: row.used, reserved: row.reserved + tokens };
    });
  }

  settle(reserved: number, used: number): void {
    this.#change((row) => ({ used: row.used + used, reserved: row.reserved - reserved }));
  }

  #change(change: (row: Row) => { readonly used: number; readonly reserved: number }): void {
    this.#statements.begin.run();
    try {
      for (
        let row = this.#find(DEPTH);
        row !== undefined;
        row = row.parent === null ? undefined : this.#find(row.parent)
      ) {
        const { used, reserved } = change(row);
        this.#statements.update.run(used, reserved, row.id);
      }
      this.#statements.commit.run();
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #find(id: number): Row | undefined {
    return this.#statements.find.get(id) as Row | undefined;
  }
}
