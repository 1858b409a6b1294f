import type { SQLInputValue, StatementSync } from "node:sqlite";
import { CorruptRecordError, InvariantError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  agentRecordSchema,
  type InboxItem,
  inboxItemSchema,
} from "../../state/index.ts";
import type { Committed } from "../rules/outcomes.ts";
import type { AgentFilter, AgentPlace } from "../rules/queries.ts";
import {
  integerOf,
  parsed,
  plainOutcome,
  type Row,
  type StoredOutcome,
  storedOutcome,
  storedOutcomeSchema,
  textOf,
  textOrNullOf,
  wellFormed,
} from "../rules/stored-values.ts";
import type { Head, Work } from "../rules/tables.ts";
import { KeyedCache, type SqliteConnection } from "./sqlite-connection.ts";

const CAPACITY = 4000;

const columns = "id, tree, tenant, agent_id, record";

/** A value with the text it was read from or written as. */
interface Cached<T> {
  /** The generation in which it was last known to match the file. */
  generation: number;
  text: string;
  value: T;
}

/** A cached head, with the cursor of the agent's last row in the journal (0: none). */
interface KeptHead {
  readonly generation: number;
  readonly value: Head;
  readonly cursor: number;
}

/**
 * The cached state of an agent between transactions. An agent that was removed and created again may have another key.
 */
export interface AgentSlot {
  readonly id: number;
  readonly tree: number;
  readonly record: Cached<AgentRecord>;
  head: KeptHead | undefined;
}

/** The rows of agents and trees, with their integer keys. */
export class SqliteAgents {
  readonly #connection: SqliteConnection;
  readonly heads: SqliteHeads;
  readonly inbox: SqliteInbox;
  readonly #slots = new KeyedCache<AgentSlot>(CAPACITY);
  readonly #statements: Readonly<
    Record<"read" | "insert" | "update" | "children" | "ofTree" | "tree" | "insertTree", StatementSync>
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.heads = new SqliteHeads(connection);
    this.inbox = new SqliteInbox(connection);
    this.#statements = {
      read: connection.prepare(`SELECT ${columns} FROM agents WHERE tenant = ? AND agent_id = ?`),
      insert: connection.prepare(
        `INSERT INTO agents (tenant, agent_id, tree, parent_agent_id, session_id, owner_id, created_at, record)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      ),
      update: connection.prepare("UPDATE agents SET record = ? WHERE id = ?"),
      children: connection.prepare(`SELECT ${columns} FROM agents WHERE tree = ? AND parent_agent_id = ? ORDER BY id`),
      ofTree: connection.prepare(`SELECT ${columns} FROM agents WHERE tree = ? ORDER BY id`),
      tree: connection.prepare("SELECT id FROM trees WHERE tenant = ? AND root_agent_id = ?"),
      insertTree: connection.prepare("INSERT INTO trees (tenant, root_agent_id) VALUES (?, ?)"),
    };
  }

  forget(): void {
    this.#slots.clear();
  }

  /** The agent's keys and its current record. */
  find({ tenant, agentId }: AgentKey): AgentSlot | undefined {
    const known = this.#slots.get(tenant, agentId);
    if (known && this.#isTrue(known.record.generation)) return known;
    const row = this.#statements.read.get(wellFormed(tenant, "tenant"), wellFormed(agentId, "agent id"));
    return row && this.#slotOf(row, tenant, agentId);
  }

  required(key: AgentKey): AgentSlot {
    const slot = this.find(key);
    if (slot) return slot;
    throw new InvariantError(`something was to be stored for agent ${key.agentId}, which has no record`);
  }

  put(record: AgentRecord): void {
    const { tenant, agentId } = record;
    const text = JSON.stringify(record);
    const known = this.find({ tenant, agentId });
    if (known) {
      this.#statements.update.run(text, known.id);
      Object.assign(known.record, { generation: this.#connection.generation, text, value: record });
      return;
    }
    const tree = this.treeFor(tenant, record.rootAgentId);
    const { parentAgentId: parent, sessionId, ownerId, createdAt } = record;
    const inserted = this.#statements.insert.run(tenant, agentId, tree, parent, sessionId, ownerId, createdAt, text);
    const id = Number(inserted.lastInsertRowid);
    this.heads.add(id);
    const cached = { generation: this.#connection.generation, text, value: record };
    this.#slots.set(tenant, agentId, { id, tree, record: cached, head: undefined });
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    const parent = this.find(key);
    if (!parent) return [];
    return this.#statements.children.all(parent.tree, key.agentId).map((row) => this.#recordOf(row));
  }

  /** In the order in which they were created. */
  ofTree(tree: number): AgentRecord[] {
    return this.#statements.ofTree.all(tree).map((row) => this.#recordOf(row));
  }

  list(filter: AgentFilter, limit: number, place?: AgentPlace): AgentRecord[] {
    const { tenant, rootAgentId, sessionId, ownerId, rootsOnly, after, order } = filter;
    const isNewest = order === "newest";
    const conditions = ["tenant = ?"];
    const values: SQLInputValue[] = [tenant];
    const only = (condition: string, ...given: SQLInputValue[]): void => {
      conditions.push(condition);
      values.push(...given);
    };
    if (rootAgentId !== undefined) only("tree = ?", this.treeOf(tenant, rootAgentId) ?? null);
    if (sessionId !== undefined) only("session_id = ?", sessionId);
    if (ownerId !== undefined) only("owner_id = ?", ownerId);
    if (!isNewest && after !== undefined) only("agent_id > ?", after);
    if (place) {
      const { createdAt, agentId } = place;
      only("created_at <= ? AND (created_at < ? OR agent_id > ?)", createdAt, createdAt, agentId);
    }
    if (rootsOnly) conditions.push("parent_agent_id IS NULL");
    const sorting = isNewest ? "created_at DESC, agent_id" : "agent_id";
    const sql = `SELECT ${columns} FROM agents WHERE ${conditions.join(" AND ")} ORDER BY ${sorting} LIMIT ?`;
    const rows = this.#connection.prepare(sql).all(...values, limit);
    return rows.map((row) => this.#recordOf(row));
  }

  treeOf(tenant: string, rootAgentId: string): number | undefined {
    const row = this.#statements.tree.get(wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id"));
    return row && integerOf(row, "id", `the tree of ${rootAgentId}`);
  }

  /** The tree's key; creates the tree if it does not exist. */
  treeFor(tenant: string, rootAgentId: string): number {
    const known = this.treeOf(tenant, rootAgentId);
    return known ?? Number(this.#statements.insertTree.run(tenant, rootAgentId).lastInsertRowid);
  }

  /** Outside of a transaction another process may write at any moment. */
  #isTrue(generation: number): boolean {
    return this.#connection.isInTransaction && generation === this.#connection.generation;
  }

  #slotOf(row: Row, tenant: string, agentId: string): AgentSlot {
    const where = `the record of agent ${agentId}`;
    const { generation } = this.#connection;
    const text = textOf(row, "record", where);
    const id = integerOf(row, "id", where);
    const known = this.#slots.get(tenant, agentId);
    if (known?.id === id) {
      if (known.record.text !== text) known.record.value = recordIn(text, tenant, agentId);
      Object.assign(known.record, { generation, text });
      return known;
    }
    const record = { generation, text, value: recordIn(text, tenant, agentId) };
    const slot = { id, tree: integerOf(row, "tree", where), record, head: undefined };
    this.#slots.set(tenant, agentId, slot);
    return slot;
  }

  #recordOf(row: Row): AgentRecord {
    const tenant = textOf(row, "tenant", "a row of agents");
    return this.#slotOf(row, tenant, textOf(row, "agent_id", "a row of agents")).record.value;
  }
}

function recordIn(text: string, tenant: string, agentId: string): AgentRecord {
  const where = `the record of agent ${agentId}`;
  const record = parsed(agentRecordSchema, text, where);
  if (record.agentId === agentId && record.tenant === tenant) return record;
  throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is left as it is`);
}

/** The short rows that every commit rewrites. */
class SqliteHeads {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<
    Record<"read" | "readOutcome" | "insert" | "update" | "hold" | "place" | "move", StatementSync>
  >;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    const state = "epoch = ?, seq = ?, at = ?, sign = ?, batch_id = ?, open_requests = ?";
    this.#statements = {
      read: connection.prepare(
        "SELECT epoch, holder, seq, at, sign, batch_id, open_requests, cursor, work FROM heads WHERE agent = ?",
      ),
      readOutcome: connection.prepare("SELECT outcome FROM heads WHERE agent = ?"),
      insert: connection.prepare("INSERT INTO heads VALUES (?, 0, NULL, 0, 0, 0, NULL, 0, 0, NULL, 'none')"),
      update: connection.prepare(`UPDATE heads SET ${state} WHERE agent = ?`),
      // These two columns are in an index, which stays untouched while they do not change.
      hold: connection.prepare("UPDATE heads SET holder = ?, work = ? WHERE agent = ?"),
      place: connection.prepare("UPDATE heads SET cursor = ? WHERE agent = ?"),
      move: connection.prepare(`UPDATE heads SET ${state}, cursor = ?, outcome = ? WHERE agent = ?`),
    };
  }

  /** For a new agent. */
  add(agent: number): void {
    this.#statements.insert.run(agent);
  }

  read(slot: AgentSlot): KeptHead {
    const { generation, isInTransaction } = this.#connection;
    if (slot.head && isInTransaction && slot.head.generation === generation) return slot.head;
    const where = `the head of agent ${slot.record.value.agentId}`;
    const row = this.#statements.read.get(slot.id);
    if (!row) throw new CorruptRecordError(`${where} is missing`);
    slot.head = { generation, value: headOf(row, where), cursor: integerOf(row, "cursor", where) };
    return slot.head;
  }

  put(slot: AgentSlot, head: Head, outcome?: Committed): void {
    const { generation } = this.#connection;
    const { epoch, holder, seq, at, sign, batchId, openRequests, work } = head;
    const before = this.read(slot);
    let { cursor } = before;
    if (outcome) {
      if (outcome.cursor > 0) cursor = outcome.cursor;
      this.#statements.move.run(epoch, seq, at, sign, batchId, openRequests, cursor, outcomeText(outcome), slot.id);
    } else {
      this.#statements.update.run(epoch, seq, at, sign, batchId, openRequests, slot.id);
    }
    if (holder !== before.value.holder || work !== before.value.work) this.#statements.hold.run(holder, work, slot.id);
    slot.head = { generation, value: head, cursor };
  }

  /** Sets the agent's last row after rows were restored. */
  place(slot: AgentSlot, cursor: number): void {
    this.#statements.place.run(cursor, slot.id);
    slot.head = undefined;
  }

  outcome(slot: AgentSlot): StoredOutcome {
    const where = `the last outcome of agent ${slot.record.value.agentId}`;
    const row = this.#statements.readOutcome.get(slot.id);
    const text = row ? textOrNullOf(row, "outcome", where) : null;
    return text === null ? plainOutcome : parsed(storedOutcomeSchema, text, where);
  }
}

function headOf(row: Row, where: string): Head {
  return {
    epoch: integerOf(row, "epoch", where),
    holder: textOrNullOf(row, "holder", where),
    seq: integerOf(row, "seq", where),
    at: integerOf(row, "at", where),
    sign: integerOf(row, "sign", where),
    batchId: textOrNullOf(row, "batch_id", where),
    openRequests: integerOf(row, "open_requests", where),
    work: workOf(row, where),
  };
}

function workOf(row: Row, where: string): Work {
  const work = textOrNullOf(row, "work", where);
  if (work === "none" || work === "open" || work === "parked") return work;
  throw new CorruptRecordError(`${where}: the column work holds ${JSON.stringify(work)}; it is left as it is`);
}

function outcomeText(outcome: Committed): string | null {
  const stored = storedOutcome(outcome);
  return stored ? JSON.stringify(stored) : null;
}

class SqliteInbox {
  readonly #statements: Readonly<Record<"add" | "items" | "size" | "remove", StatementSync>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      add: connection.prepare(
        "INSERT INTO inbox (agent, item_key, item) VALUES (?, ?, ?) ON CONFLICT (agent, item_key) DO NOTHING",
      ),
      items: connection.prepare("SELECT item FROM inbox WHERE agent = ? ORDER BY id"),
      size: connection.prepare("SELECT count(*) AS size FROM inbox WHERE agent = ?"),
      remove: connection.prepare("DELETE FROM inbox WHERE agent = ? AND item_key = ?"),
    };
  }

  add(slot: AgentSlot, item: InboxItem): boolean {
    const key = wellFormed(item.key, "inbox key");
    return Number(this.#statements.add.run(slot.id, key, JSON.stringify(item)).changes) > 0;
  }

  items(slot: AgentSlot): InboxItem[] {
    const where = `the inbox of agent ${slot.record.value.agentId}`;
    return this.#statements.items.all(slot.id).map((row) => parsed(inboxItemSchema, textOf(row, "item", where), where));
  }

  size(slot: AgentSlot): number {
    return Number(this.#statements.size.get(slot.id)?.["size"]);
  }

  remove(slot: AgentSlot, itemKeys: readonly string[]): void {
    for (const key of itemKeys) this.#statements.remove.run(slot.id, wellFormed(key, "inbox key"));
  }
}
