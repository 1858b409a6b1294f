import { CorruptRecordError, InvariantError } from "../../errors/index.ts";
import { type AgentKey, type AgentRecord, agentRecordSchema } from "../../state/index.ts";
import type { AgentFilter, AgentListCursor } from "../rules/queries.ts";
import { integerOf, parsed, type Row, textColumn, wellFormed } from "../rules/stored-values.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { type AgentSlot, SqliteHeads } from "./sqlite-heads.ts";
import type { Statement, StoredValue } from "./sqlite-statement.ts";

const CAPACITY = 4000;

/** Tables whose rows belong to an agent. */
const agentTables = ["heads", "messages", "artifacts", "requests", "turns", "steers", "inbox", "timers"];
const columns = "id, root, tenant, agent_id, record";

/** The rows of agents and trees, with their integer keys. */
export class SqliteAgents {
  readonly #connection: SqliteConnection;
  readonly heads: SqliteHeads;
  readonly #slots = new KeyedCache<AgentSlot>(CAPACITY);
  readonly #statements: Readonly<
    Record<"read" | "nextId" | "insert" | "update" | "children" | "ofTree" | "root", Statement>
  >;
  /** Agents are deleted last, because the other rows are found by them. */
  readonly #deletions: readonly Statement[];

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.heads = new SqliteHeads(connection);
    this.#statements = {
      read: connection.prepare(`SELECT ${columns} FROM agents WHERE tenant = ? AND agent_id = ?`),
      nextId: connection.prepare("SELECT coalesce(max(id), 0) + 1 AS id FROM agents"),
      insert: connection.prepare("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      update: connection.prepare("UPDATE agents SET record = ? WHERE id = ?"),
      children: connection.prepare(`SELECT ${columns} FROM agents WHERE root = ? AND parent_agent_id = ? ORDER BY id`),
      ofTree: connection.prepare(`SELECT ${columns} FROM agents WHERE root = ? ORDER BY id`),
      root: connection.prepare("SELECT id FROM agents WHERE tenant = ? AND agent_id = ? AND parent_agent_id IS NULL"),
    };
    const ofAgents = agentTables.map(
      (table) => `DELETE FROM ${table} WHERE agent IN (SELECT id FROM agents WHERE root = ?)`,
    );
    const ofTree = ["definitions_of_trees", "agents"].map((table) => `DELETE FROM ${table} WHERE root = ?`);
    this.#deletions = [...ofAgents, ...ofTree].map((sql) => connection.prepare(sql));
  }

  /** Also removes all rows that belong to it, except its accounts and its journal. */
  removeTree(root: number): void {
    for (const deletion of this.#deletions) deletion.run(root);
  }

  rest(keys: readonly AgentKey[]): void {
    this.#slots.dropTrees(keys, (agentId) => agentId);
  }

  /** The agent's keys and its current record. */
  find({ tenant, agentId }: AgentKey): AgentSlot | undefined {
    const known = this.#slots.get(tenant, agentId);
    if (known && this.#connection.isCurrent(known.record.generation)) return known;
    const row = this.#statements.read.get(wellFormed(tenant, "tenant"), wellFormed(agentId, "agent id"));
    return row && this.#slotOf(row, tenant, agentId);
  }

  required(key: AgentKey): AgentSlot {
    const slot = this.find(key);
    if (slot) return slot;
    throw new InvariantError(`cannot write to agent ${key.agentId}: it has no record`);
  }

  put(record: AgentRecord): void {
    const { tenant, agentId, parentAgentId: parent, sessionId, ownerId, createdAt } = record;
    const cached = { generation: this.#connection.generation, text: JSON.stringify(record), value: record };
    const known = this.find(record);
    if (known) {
      this.#statements.update.run(cached.text, known.id);
      Object.assign(known.record, cached);
      return;
    }
    const id = integerOf(this.#statements.nextId.get() ?? {}, "id", "the last agent");
    const root = parent === null ? id : this.rootFor(tenant, record.rootAgentId);
    this.#statements.insert.run(id, tenant, agentId, root, parent, sessionId, ownerId, createdAt, cached.text);
    const slot: AgentSlot = { id, root, record: cached, head: undefined };
    this.heads.add(slot);
    this.#slots.set(tenant, agentId, slot);
  }

  childrenOf(key: AgentKey): AgentRecord[] {
    const parent = this.find(key);
    if (!parent) return [];
    return this.#statements.children.all(parent.root, key.agentId).map((row) => this.#recordOf(row));
  }

  /** In the order in which they were created. */
  ofTree(root: number): AgentRecord[] {
    return this.#statements.ofTree.all(root).map((row) => this.#recordOf(row));
  }

  list(filter: AgentFilter, limit: number, place?: AgentListCursor): AgentRecord[] {
    const { tenant, rootAgentId, sessionId, ownerId, rootsOnly, after, order } = filter;
    const isNewest = order === "newest";
    const conditions = ["tenant = ?"];
    const values: StoredValue[] = [tenant];
    const only = (condition: string, ...given: StoredValue[]): void => {
      conditions.push(condition);
      values.push(...given);
    };
    if (rootAgentId !== undefined) only("root = ?", this.rootOf(tenant, rootAgentId) ?? null);
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

  /** The integer key of a tree. */
  rootOf(tenant: string, rootAgentId: string): number | undefined {
    const known = this.#slots.get(tenant, rootAgentId);
    if (known && this.#connection.isCurrent(known.record.generation) && isRoot(known)) return known.root;
    const row = this.#statements.root.get(wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id"));
    return row && integerOf(row, "id", `the tree of ${rootAgentId}`);
  }

  rootFor(tenant: string, rootAgentId: string): number {
    const known = this.rootOf(tenant, rootAgentId);
    if (known !== undefined) return known;
    throw new InvariantError(`cannot write to the tree of ${rootAgentId}: it has no root`);
  }

  #slotOf(row: Row, tenant: string, agentId: string): AgentSlot {
    const where = `the record of agent ${agentId}`;
    const { generation } = this.#connection;
    const [text, id] = [textColumn(row, "record", where), integerOf(row, "id", where)];
    const known = this.#slots.get(tenant, agentId);
    if (known?.id === id) {
      if (known.record.text !== text) known.record.value = recordIn(text, tenant, agentId);
      Object.assign(known.record, { generation, text });
      return known;
    }
    const record = { generation, text, value: recordIn(text, tenant, agentId) };
    const slot = { id, root: integerOf(row, "root", where), record, head: undefined };
    this.#slots.set(tenant, agentId, slot);
    return slot;
  }

  #recordOf(row: Row): AgentRecord {
    const tenant = textColumn(row, "tenant", "a row of agents");
    return this.#slotOf(row, tenant, textColumn(row, "agent_id", "a row of agents")).record.value;
  }
}

function recordIn(text: string, tenant: string, agentId: string): AgentRecord {
  const where = `the record of agent ${agentId}`;
  const record = parsed(agentRecordSchema, text, where);
  if (record.agentId === agentId && record.tenant === tenant) return record;
  throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is not changed`);
}

function isRoot({ record }: AgentSlot): boolean {
  return record.value.parentAgentId === null;
}
