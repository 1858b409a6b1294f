import { type Account, accountSchema, type Waiter, waiterSchema } from "../../budget/index.ts";
import { CorruptRecordError, InvariantError } from "../../errors/index.ts";
import { type AgentKey, agentOfAccount } from "../../state/index.ts";
import { integerOf, parsed, textColumn, wellFormed } from "../rules/stored-values.ts";
import type { WaiterChanges } from "../rules/tables.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { Statement } from "./sqlite-statement.ts";

interface AccountSlot {
  id: number;
  /** The generation in which the value matches the file. */
  generation: number;
  text: string;
  value: Account;
  /** The account's waiters at one revision of the queue. */
  queue?: { readonly revision: string | undefined; readonly waiters: readonly Waiter[] };
}

const CAPACITY = 8000;

export class SqliteAccounts {
  readonly #connection: SqliteConnection;
  readonly #slots = new KeyedCache<AccountSlot>(CAPACITY);
  /** The generation in which an account was searched for without a result: accounts are searched for right before they are opened. */
  readonly #absent = new KeyedCache<number>(CAPACITY);
  readonly #statements: Readonly<
    Record<
      "read" | "insert" | "update" | "ofTree" | "remove" | "queue" | "putWaiter" | "removeWaiter" | "removeWaiters",
      Statement
    >
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      read: connection.prepare("SELECT id, account FROM accounts WHERE tenant = ? AND account_id = ?"),
      insert: connection.prepare("INSERT INTO accounts (tenant, account_id, root, account) VALUES (?, ?, ?, ?)"),
      update: connection.prepare("UPDATE accounts SET account = ? WHERE id = ?"),
      ofTree: connection.prepare("SELECT account_id, account FROM accounts WHERE root = ? ORDER BY id"),
      remove: connection.prepare("DELETE FROM accounts WHERE root = ?"),
      removeWaiters: connection.prepare(
        "DELETE FROM waiters WHERE account IN (SELECT id FROM accounts WHERE root = ?)",
      ),
      queue: connection.prepare("SELECT waiter FROM waiters WHERE account = ? ORDER BY position"),
      putWaiter: connection.prepare(
        `INSERT INTO waiters (account, ask_key, position, waiter) VALUES (?, ?, ?, ?)
         ON CONFLICT (account, ask_key) DO UPDATE SET position = excluded.position, waiter = excluded.waiter`,
      ),
      removeWaiter: connection.prepare("DELETE FROM waiters WHERE account = ? AND ask_key = ?"),
    };
  }

  rest(keys: readonly AgentKey[]): void {
    for (const cache of [this.#slots, this.#absent]) cache.dropTrees(keys, agentOfAccount);
  }

  find(tenant: string, accountId: string): Account | undefined {
    return this.#slot(tenant, accountId)?.value;
  }

  put(tenant: string, root: () => number, account: Account): void {
    const { generation } = this.#connection;
    const text = JSON.stringify(account);
    const known = this.#slot(tenant, account.id);
    if (known) {
      this.#statements.update.run(text, known.id);
      Object.assign(known, { generation, text, value: account });
      return;
    }
    const id = this.#statements.insert.insert(tenant, account.id, root(), text);
    this.#slots.set(tenant, account.id, { id, generation, text, value: account });
  }

  waiters(tenant: string, account: Account): readonly Waiter[] {
    const slot = this.#slot(tenant, account.id);
    if (!slot) return [];
    const revision = account.line?.revision;
    if (slot.queue && slot.queue.revision === revision) return slot.queue.waiters;
    const where = `the waiters of account ${account.id}`;
    const rows = this.#statements.queue.all(slot.id);
    const waiters = rows.map((row) => parsed(waiterSchema, textColumn(row, "waiter", where), where));
    slot.queue = { revision, waiters };
    return waiters;
  }

  putWaiters(tenant: string, root: () => number, { account, waiters, put, removed }: WaiterChanges): void {
    if (!this.#slot(tenant, account.id)) this.put(tenant, root, account);
    const slot = this.#slot(tenant, account.id);
    if (!slot) throw new InvariantError(`account ${account.id} is missing after its insert`);
    for (const key of removed) this.#statements.removeWaiter.run(slot.id, wellFormed(key, "key of an ask"));
    for (const waiter of put) {
      const key = wellFormed(waiter.ask.key, "key of an ask");
      this.#statements.putWaiter.run(slot.id, key, waiter.place, JSON.stringify(waiter));
    }
    slot.queue = { revision: account.line?.revision, waiters };
  }

  ofTree(root: number): Account[] {
    return this.#statements.ofTree.all(root).map((row) => {
      const id = textColumn(row, "account_id", "an account of the tree");
      return accountIn(id, textColumn(row, "account", `account ${id}`));
    });
  }

  removeTree(root: number): void {
    this.#statements.removeWaiters.run(root);
    this.#statements.remove.run(root);
  }

  #slot(tenant: string, accountId: string): AccountSlot | undefined {
    const known = this.#slots.get(tenant, accountId);
    if (known && this.#connection.isCurrent(known.generation)) return known;
    if (!known && this.#connection.isCurrent(this.#absent.get(tenant, accountId) ?? 0)) return undefined;
    const row = this.#statements.read.get(wellFormed(tenant, "tenant"), wellFormed(accountId, "account id"));
    const { generation } = this.#connection;
    if (!row) {
      this.#absent.set(tenant, accountId, generation);
      return undefined;
    }
    const where = `account ${accountId}`;
    const [id, text] = [integerOf(row, "id", where), textColumn(row, "account", where)];
    if (known) {
      if (known.text !== text) {
        known.value = accountIn(accountId, text);
        delete known.queue;
      }
      return Object.assign(known, { id, generation, text });
    }
    const slot = { id, generation, text, value: accountIn(accountId, text) };
    this.#slots.set(tenant, accountId, slot);
    return slot;
  }
}

/** Throws `CorruptRecordError` if the text is another account. */
function accountIn(id: string, text: string): Account {
  const account = parsed(accountSchema, text, `account ${id}`);
  if (account.id === id) return account;
  throw new CorruptRecordError(`the row of account ${id} holds account ${account.id}; it is not changed`);
}
