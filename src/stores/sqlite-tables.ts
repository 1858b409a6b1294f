import type { Account } from "../budget/index.ts";
import type { AgentKey, AgentRecord, Artifact, Entry, InboxItem, JournalRow, Message, Timer } from "../state/index.ts";
import type { LocalTables } from "./local-stores.ts";
import type { Committed } from "./outcomes.ts";
import type { AgentFilter } from "./ports.ts";
import { SqliteAccounts } from "./sqlite-accounts.ts";
import { SqliteAgents } from "./sqlite-agents.ts";
import { SqliteArtifacts } from "./sqlite-artifacts.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { SqliteJournal } from "./sqlite-journal.ts";
import type { AgentSlot } from "./sqlite-slot.ts";
import { SqliteWaiting } from "./sqlite-waiting.ts";
import { freshHead, type Head, type ProcessRow } from "./tables.ts";

/** The rows in the file: each kind of row has its class, this one gives them the agent's integer key. */
export class SqliteTables implements LocalTables {
  readonly #agents: SqliteAgents;
  readonly #accounts: SqliteAccounts;
  readonly #journal: SqliteJournal;
  readonly #artifacts: SqliteArtifacts;
  readonly #waiting: SqliteWaiting;

  constructor(connection: SqliteConnection) {
    this.#agents = new SqliteAgents(connection);
    this.#accounts = new SqliteAccounts(connection);
    this.#journal = new SqliteJournal(connection);
    this.#artifacts = new SqliteArtifacts(connection);
    this.#waiting = new SqliteWaiting(connection);
    connection.forget = () => {
      this.#agents.forget();
      this.#accounts.forget();
      this.#journal.forget();
    };
  }

  agent(key: AgentKey): AgentRecord | undefined {
    return this.#agents.find(key)?.record.value;
  }

  putAgent(record: AgentRecord): void {
    this.#agents.put(record);
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    return this.#agents.childrenOf(key);
  }

  listAgents(filter: AgentFilter, limit: number): AgentRecord[] {
    return this.#agents.list(filter, limit);
  }

  head(key: AgentKey): Head {
    const slot = this.#agents.keysOf(key);
    return slot ? this.#agents.heads.read(slot).value : freshHead;
  }

  putHead(key: AgentKey, head: Head, outcome?: Committed): void {
    this.#agents.heads.put(this.#agents.required(key), head, outcome);
  }

  lastOutcome(key: AgentKey): Committed | undefined {
    const slot = this.#agents.keysOf(key);
    if (!slot) return undefined;
    const { hasRow, ...rest } = this.#agents.heads.outcome(slot);
    const cursor = hasRow ? this.#lastCursor(slot) : 0;
    return { type: "committed", entries: hasRow ? this.#journal.entriesAt(slot, cursor) : [], cursor, ...rest };
  }

  account(tenant: string, accountId: string): Account | undefined {
    return this.#accounts.find(tenant, accountId);
  }

  putAccount(tenant: string, rootAgentId: string, account: Account): void {
    this.#accounts.put(tenant, () => this.#agents.treeFor(tenant, rootAgentId), account);
  }

  accounts(tenant: string, rootAgentId: string): Account[] {
    const tree = this.#agents.treeOf(tenant, rootAgentId);
    return tree === undefined ? [] : this.#accounts.ofTree(tree);
  }

  addToInbox(key: AgentKey, item: InboxItem): boolean {
    return this.#waiting.addItem(this.#agents.required(key), item);
  }

  inbox(key: AgentKey): InboxItem[] {
    return this.#ofAgent(key, (slot) => this.#waiting.items(slot), []);
  }

  inboxSize(key: AgentKey): number {
    return this.#ofAgent(key, (slot) => this.#waiting.countItems(slot), 0);
  }

  removeFromInbox(key: AgentKey, itemKeys: readonly string[]): void {
    if (itemKeys.length > 0) this.#waiting.removeItems(this.#agents.required(key), itemKeys);
  }

  addRow(key: AgentKey, entries: readonly Entry[], messages: readonly Message[]): number {
    const slot = this.#agents.required(key);
    return this.#journal.add(slot, this.#lastCursor(slot), { entries, messages });
  }

  rowsFrom(key: AgentKey, fromSeq: number): JournalRow[] {
    return this.#ofAgent(key, (slot) => this.#journal.rowsFrom(slot, this.#lastCursor(slot), fromSeq), []);
  }

  treeRows(tenant: string, rootAgentId: string, afterCursor: number, limit: number): JournalRow[] {
    const tree = this.#agents.treeOf(tenant, rootAgentId);
    return tree === undefined ? [] : this.#journal.treeRows(tree, afterCursor, limit);
  }

  messages(key: AgentKey, newest: number | undefined): Message[] {
    return this.#ofAgent(key, (slot) => this.#journal.messages(slot, this.#lastCursor(slot), newest), []);
  }

  messagesById(key: AgentKey, ids: readonly string[]): Message[] {
    return this.#ofAgent(key, (slot) => this.#journal.messagesById(slot, ids), []);
  }

  addArtifacts(key: AgentKey, artifacts: readonly Artifact[]): void {
    if (artifacts.length > 0) this.#artifacts.put(this.#agents.required(key), artifacts);
  }

  artifacts(key: AgentKey): Omit<Artifact, "content">[] {
    return this.#ofAgent(key, (slot) => this.#artifacts.all(slot), []);
  }

  artifact(key: AgentKey, artifactId: string): Artifact | undefined {
    return this.#ofAgent(key, (slot) => this.#artifacts.find(slot, artifactId), undefined);
  }

  setTimer(timer: Timer): void {
    this.#waiting.setTimer(this.#agents.required(timer), timer);
  }

  clearTimer(key: AgentKey, timerId: string): void {
    this.#ofAgent(key, (slot) => this.#waiting.clearTimer(slot, timerId), undefined);
  }

  dueTimers(now: number, limit: number): Timer[] {
    return this.#waiting.dueTimers(now, limit);
  }

  nextTimerAt(): number | undefined {
    return this.#waiting.nextTimerAt();
  }

  process(processId: string): ProcessRow | undefined {
    return this.#waiting.process(processId);
  }

  putProcess(row: ProcessRow): void {
    this.#waiting.putProcess(row);
  }

  #lastCursor(slot: AgentSlot): number {
    return this.#agents.heads.read(slot).cursor;
  }

  #ofAgent<T>(key: AgentKey, ask: (slot: AgentSlot) => T, none: T): T {
    const slot = this.#agents.keysOf(key);
    return slot ? ask(slot) : none;
  }
}
