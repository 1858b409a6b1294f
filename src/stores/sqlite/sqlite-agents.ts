import { CorruptRecordError, InvariantError } from "../../errors/index.ts";
import { type AgentKey, type AgentRecord, agentRecordSchema } from "../../state/index.ts";
import type { AgentFilter, AgentPlace } from "../rules/queries.ts";
import { integerOf, parsed, type Row, textOf, wellFormed } from "../rules/stored-values.ts";
import type { SqlitePlaces } from "./sqlite-accounts.ts";
import { KeyedCache } from "./keyed-cache.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import { type AgentSlot, SqliteHeads } from "./sqlite-heads.ts";
import type { SqliteNewTrees } from "./sqlite-new-trees.ts";
import type { Statement, StoredValue } from "./sqlite-statement.ts";

const CAPACITY = 4000;

/** Tables whose rows belong to an agent. */
const agentTables = ["messages", "artifacts", "requests", "turns", "inbox", "timers"];
const columns = "id, tree, place, tenant, agent_id, record";

/** The rows of agents and trees, with their integer keys. */
export class SqliteAgents {
  readonly #connection: SqliteConnection;
  readonly heads: SqliteHeads;
  readonly #slots = new KeyedCache<AgentSlot>(CAPACITY);
  readonly #statements: Readonly<
    Record<"read" | "lastId" | "insert" | "update" | "children" | "ofTree" | "tree", Statement>
  >;
  /** Agents come last, because the other rows are found by them. */
  readonly #deletions: readonly Statement[];
  readonly #places: SqlitePlaces;
  readonly #newTrees: SqliteNewTrees;
  /** The highest key in the file, in a generation. */
  #lastId = { generation: 0, id: 0 };
  /** The agent that was last looked for in vain, in a generation: it mostly is the next one to be put. */
  #missing = { generation: 0, tenant: "", agentId: "" };

  constructor(connection: SqliteConnection, places: SqlitePlaces, newTrees: SqliteNewTrees) {
    this.#connection = connection;
    this.heads = new SqliteHeads(connection);
    this.#places = places;
    this.#newTrees = newTrees;
    this.#statements = {
      read: connection.prepare(`SELECT ${columns} FROM agents WHERE tenant = ? AND agent_id = ?`),
      lastId: connection.prepare("SELECT coalesce(max(id), 0) AS id FROM agents"),
      insert: connection.prepare("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
      update: connection.prepare("UPDATE agents SET record = ? WHERE id = ?", ["record"]),
      children: connection.prepare(`SELECT ${columns} FROM agents WHERE tree = ? AND parent_agent_id = ? ORDER BY id`),
      ofTree: connection.prepare(`SELECT ${columns} FROM agents WHERE tree = ? ORDER BY id`),
      tree: connection.prepare("SELECT tree FROM agents WHERE tenant = ? AND agent_id = ? AND parent_agent_id IS NULL"),
    };
    const ofAgents = agentTables.map(
      (table) => `DELETE FROM ${table} WHERE agent IN (SELECT id FROM agents WHERE tree = ?)`,
    );
    const ofTree = ["definitions_of_trees", "agents"].map((table) => `DELETE FROM ${table} WHERE tree = ?`);
    this.#deletions = [...ofAgents, ...ofTree].map((sql) => connection.prepare(sql));
  }

  /** With all rows that belong to its agents, but for their accounts and the journal. */
  removeTree(tree: number): void {
    for (const deletion of this.#deletions) deletion.change(tree);
  }

  forget(): void {
    this.#slots.clear();
    this.heads.forget();
    this.#lastId = { generation: 0, id: 0 };
    this.#missing.generation = 0;
  }

  rest(keys: readonly AgentKey[]): void {
    for (const { tree } of this.#slots.dropTrees(keys, (agentId) => agentId)) {
      this.heads.forgetTree(tree);
      this.#places.forgetTree(tree);
    }
  }

  /** The agent's keys and its current record. */
  find({ tenant, agentId }: AgentKey): AgentSlot | undefined {
    const known = this.#slots.get(tenant, agentId);
    if (known && this.#isTrue(known.record.generation)) return known;
    const missing = this.#missing;
    const isMissing = missing.agentId === agentId && missing.tenant === tenant;
    if (isMissing && this.#isTrue(missing.generation)) return undefined;
    if (!known && this.#newTrees.has(tenant, agentId)) return undefined;
    const values = [wellFormed(tenant, "tenant"), wellFormed(agentId, "agent id")] as const;
    const { read } = this.#statements;
    const isLater = this.#connection.isLater(rowName(tenant, agentId));
    const row = isLater ? read.get(...values) : read.getAside(...values);
    if (row) return this.#slotOf(row, tenant, agentId);
    const { generation, isInTransaction } = this.#connection;
    this.#missing = { generation: isInTransaction ? generation : 0, tenant, agentId };
    return undefined;
  }

  required(key: AgentKey): AgentSlot {
    const slot = this.find(key);
    if (slot) return slot;
    throw new InvariantError(`something was to be stored for agent ${key.agentId}, which has no record`);
  }

  /** Gives the slot of an agent that was not there before. */
  put(record: AgentRecord): AgentSlot | undefined {
    const { tenant, agentId } = record;
    const text = JSON.stringify(record);
    const known = this.find({ tenant, agentId });
    this.#connection.noteRow(rowName(tenant, agentId));
    if (known) {
      this.#statements.update.run(text, known.id);
      Object.assign(known.record, { generation: this.#connection.generation, text, value: record });
      return undefined;
    }
    this.#missing.generation = 0;
    const { parentAgentId: parent, sessionId, ownerId, createdAt } = record;
    const id = this.#nextId();
    const tree = parent === null ? id : this.treeFor(tenant, record.rootAgentId);
    const place = parent === null ? this.#places.first(tree) : this.#places.next(tree);
    this.#statements.insert.run(id, tenant, agentId, tree, place, parent, sessionId, ownerId, createdAt, text);
    const cached = { generation: this.#connection.generation, text, value: record };
    const slot: AgentSlot = { id, tree, place, record: cached, head: undefined, late: undefined, soughtAt: 0 };
    this.heads.add(slot);
    this.#keep(slot);
    if (parent === null) this.#newTrees.add(record);
    return slot;
  }

  /** Only in a transaction. */
  #nextId(): number {
    const { generation } = this.#connection;
    if (this.#lastId.generation !== generation) {
      const id = integerOf(this.#statements.lastId.get() ?? {}, "id", "the last agent");
      this.#lastId = { generation, id };
    }
    this.#lastId.id += 1;
    return this.#lastId.id;
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
    const values: StoredValue[] = [tenant];
    const only = (condition: string, ...given: StoredValue[]): void => {
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
    const root = this.#slots.get(tenant, rootAgentId);
    if (root && this.#isTrue(root.record.generation) && isRoot(root)) return root.tree;
    const row = this.#statements.tree.get(wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id"));
    return row && integerOf(row, "tree", `the tree of ${rootAgentId}`);
  }

  treeFor(tenant: string, rootAgentId: string): number {
    const known = this.treeOf(tenant, rootAgentId);
    if (known !== undefined) return known;
    throw new InvariantError(`something was to be stored in the tree of ${rootAgentId}, which has no root`);
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
    const [tree, place] = [integerOf(row, "tree", where), integerOf(row, "place", where)];
    if (known?.id === id && known.place === place) {
      if (known.record.text !== text) known.record.value = recordIn(text, tenant, agentId);
      Object.assign(known.record, { generation, text });
      return known;
    }
    const record = { generation, text, value: recordIn(text, tenant, agentId) };
    const slot = { id, tree, place, record, head: undefined, late: undefined, soughtAt: 0 };
    this.#keep(slot);
    return slot;
  }

  #keep(slot: AgentSlot): void {
    const { tenant, agentId } = slot.record.value;
    if (this.#slots.set(tenant, agentId, slot)) this.#newTrees.forget();
  }

  #recordOf(row: Row): AgentRecord {
    const tenant = textOf(row, "tenant", "a row of agents");
    return this.#slotOf(row, tenant, textOf(row, "agent_id", "a row of agents")).record.value;
  }
}

function rowName(tenant: string, agentId: string): string {
  return `agent ${JSON.stringify([tenant, agentId])}`;
}

function recordIn(text: string, tenant: string, agentId: string): AgentRecord {
  const where = `the record of agent ${agentId}`;
  const record = parsed(agentRecordSchema, text, where);
  if (record.agentId === agentId && record.tenant === tenant) return record;
  throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is left as it is`);
}

function isRoot({ record }: AgentSlot): boolean {
  return record.value.parentAgentId === null;
}
