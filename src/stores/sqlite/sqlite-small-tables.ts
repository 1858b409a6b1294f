import { z } from "zod";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentRequest,
  agentRequestSchema,
  type Artifact,
  artifactSchema,
  type StoredDefinition,
  type TreeWebhooks,
  treeWebhooksSchema,
} from "../../state/index.ts";
import type { StoredTree } from "../rules/ports.ts";
import type { RequestFilter } from "../rules/queries.ts";
import { definitionIn, integerOf, parsed, type Row, textColumn, wellFormed } from "../rules/stored-values.ts";
import type { ArtifactMeta } from "../rules/tables.ts";
import type { SqliteConnection } from "./sqlite-connection.ts";
import type { AgentSlot } from "./sqlite-heads.ts";
import type { Statement, StoredValue } from "./sqlite-statement.ts";

const descriptionSchema = artifactSchema.omit({ content: true });
const contentSchema = z.string();

/** The rows of artifacts; saving an artifact again with the same id replaces the row. */
export class SqliteArtifacts {
  readonly #statements: Readonly<
    Record<"put" | "all" | "find" | "describe" | "newest" | "findByName" | "clear", Statement>
  >;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      put: connection.prepare(
        `INSERT INTO artifacts (agent, artifact_id, name, version, description, content) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (agent, artifact_id) DO UPDATE SET name = excluded.name, version = excluded.version,
           description = excluded.description, content = excluded.content`,
      ),
      all: connection.prepare("SELECT description FROM artifacts WHERE agent = ? ORDER BY id"),
      find: connection.prepare("SELECT description, content FROM artifacts WHERE agent = ? AND artifact_id = ?"),
      describe: connection.prepare("SELECT description FROM artifacts WHERE agent = ? AND artifact_id = ?"),
      newest: connection.prepare(
        "SELECT coalesce(max(version), 0) AS version FROM artifacts WHERE agent = ? AND name = ?",
      ),
      findByName: connection.prepare(
        "SELECT description, content FROM artifacts WHERE agent = ? AND name = ? AND version = ?",
      ),
      clear: connection.prepare("DELETE FROM artifacts WHERE agent = ?"),
    };
  }

  /** Name and content are stored as JSON text, so that any string is read back unchanged and different names stay different. */
  put(slot: AgentSlot, { content, ...description }: Artifact): void {
    const { artifactId, name, version } = description;
    const id = wellFormed(artifactId, "artifact id");
    const texts = [JSON.stringify(description), JSON.stringify(content)];
    this.#statements.put.run(slot.id, id, JSON.stringify(name), version, ...texts);
  }

  describe(slot: AgentSlot, artifactId: string): ArtifactMeta | undefined {
    const row = this.#statements.describe.get(slot.id, wellFormed(artifactId, "artifact id"));
    return row && descriptionOf(row, slot);
  }

  /** 0 if there is none. */
  newestVersion(slot: AgentSlot, name: string): number {
    const row = this.#statements.newest.get(slot.id, JSON.stringify(name)) ?? {};
    return integerOf(row, "version", "an artifact");
  }

  clear(slot: AgentSlot): void {
    this.#statements.clear.run(slot.id);
  }

  all(slot: AgentSlot): ArtifactMeta[] {
    return this.#statements.all.all(slot.id).map((row) => descriptionOf(row, slot));
  }

  find(slot: AgentSlot, artifactId: string): Artifact | undefined {
    return artifactOf(this.#statements.find.get(slot.id, wellFormed(artifactId, "artifact id")), slot);
  }

  findByName(slot: AgentSlot, name: string, version: number): Artifact | undefined {
    return artifactOf(this.#statements.findByName.get(slot.id, JSON.stringify(name), version), slot);
  }
}

function artifactOf(row: Row | undefined, slot: AgentSlot): Artifact | undefined {
  if (!row) return undefined;
  const where = `the content of an artifact of agent ${slot.record.value.agentId}`;
  return { ...descriptionOf(row, slot), content: parsed(contentSchema, textColumn(row, "content", where), where) };
}

function descriptionOf(row: Row, slot: AgentSlot): ArtifactMeta {
  const where = `an artifact of agent ${slot.record.value.agentId}`;
  return parsed(descriptionSchema, textColumn(row, "description", where), where);
}

/** The integer keys of a filter's agent and tree; `null` if they do not exist. */
interface RequestRows {
  readonly agent?: number | null | undefined;
  readonly root?: number | null | undefined;
}

/** The rows of requests; they are kept after the decision. */
export class SqliteRequests {
  readonly #connection: SqliteConnection;
  readonly #statements: Readonly<Record<"find" | "put" | "open" | "ofKey", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#connection = connection;
    this.#statements = {
      find: connection.prepare("SELECT request_id, request FROM requests WHERE agent = ? AND request_id = ?"),
      put: connection.prepare(
        `INSERT INTO requests (agent, request_id, tenant, root, turn_id, owner_id, status, opened_at, decision_key, request)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (agent, request_id) DO UPDATE SET status = excluded.status, decision_key = excluded.decision_key,
           request = excluded.request`,
      ),
      open: connection.prepare(
        "SELECT request_id, request FROM requests WHERE agent = ? AND turn_id = ? AND status = 'open'",
      ),
      ofKey: connection.prepare("SELECT request_id, request FROM requests WHERE root = ? AND decision_key = ?"),
    };
  }

  find(slot: AgentSlot, requestId: string): AgentRequest | undefined {
    const row = this.#statements.find.get(slot.id, wellFormed(requestId, "request id"));
    return row && requestIn(row);
  }

  put(slot: AgentSlot, request: AgentRequest): void {
    const { requestId, tenant, turnId, ownerId = null, status, openedAt, decidedWith } = request;
    const owners = [tenant, slot.root, wellFormed(turnId, "turn id"), ownerId] as const;
    const values = [status, openedAt, decidedWith?.key ?? null, JSON.stringify(request)] as const;
    this.#statements.put.run(slot.id, wellFormed(requestId, "request id"), ...owners, ...values);
  }

  /** The request of the agent's tree that was decided with the key. */
  ofKey({ root }: AgentSlot, text: string): AgentRequest | undefined {
    const row = this.#statements.ofKey.get(root, wellFormed(text, "key of a decision"));
    return row && requestIn(row);
  }

  openOf(slot: AgentSlot, turnId: string): AgentRequest[] {
    return this.#statements.open.all(slot.id, wellFormed(turnId, "turn id")).map(requestIn);
  }

  list(filter: RequestFilter, place: RequestRows, after: AgentRequest | undefined, limit: number): AgentRequest[] {
    const { sql, values } = requestQuery(filter, place, after);
    return this.#connection
      .prepare(sql)
      .all(...values, limit)
      .map(requestIn);
  }
}

/** Append the limit to the values. A plus prevents SQLite from using the index of a column. */
export function requestQuery(
  { tenant, turnId, ownerId, status }: RequestFilter,
  { agent, root }: RequestRows,
  after: Pick<AgentRequest, "openedAt" | "requestId"> | undefined,
): { readonly sql: string; readonly values: readonly StoredValue[] } {
  const conditions = ["tenant = ?"];
  const values: StoredValue[] = [wellFormed(tenant, "tenant")];
  const only = (condition: string, ...given: StoredValue[]): void => {
    conditions.push(condition);
    values.push(...given);
  };
  if (agent !== undefined) only("agent = ?", agent);
  if (root !== undefined) only("root = ?", root);
  if (ownerId !== undefined) only(`${root === undefined ? "" : "+"}owner_id = ?`, wellFormed(ownerId, "owner id"));
  if (turnId !== undefined) only("turn_id = ?", wellFormed(turnId, "turn id"));
  // A literal, so that SQLite uses an index of open requests.
  if (status === "open") only("status = 'open'");
  else if (status !== undefined) only("status = ?", status);
  if (after) only("(opened_at, request_id) > (?, ?)", after.openedAt, after.requestId);
  const sql = `SELECT request_id, request FROM requests WHERE ${conditions.join(" AND ")}
    ORDER BY opened_at, request_id LIMIT ?`;
  return { sql, values };
}

function requestIn(row: Row): AgentRequest {
  const id = textColumn(row, "request_id", "a request");
  const where = `request ${id}`;
  const request = parsed(agentRequestSchema, textColumn(row, "request", where), where);
  if (request.requestId === id) return request;
  throw new CorruptRecordError(`the row of request ${id} holds request ${request.requestId}; it is not changed`);
}

/** The definitions of trees, and their texts, which are written once and never changed. */
export class SqliteDefinitions {
  readonly #statements: Readonly<Record<"add" | "addText" | "find" | "all" | "forget", Statement>>;

  constructor(connection: SqliteConnection) {
    const found = `SELECT hash, definition FROM definitions_of_trees JOIN definitions USING (hash)
      WHERE root = ? AND tenant = ?`;
    this.#statements = {
      add: connection.prepare("INSERT INTO definitions_of_trees VALUES (?, ?) ON CONFLICT DO NOTHING"),
      addText: connection.prepare("INSERT INTO definitions VALUES (?, ?, ?) ON CONFLICT DO NOTHING"),
      find: connection.prepare(`${found} AND hash = ?`),
      all: connection.prepare(`${found} ORDER BY hash`),
      forget: connection.prepare(
        `DELETE FROM definitions WHERE tenant = ? AND hash IN (SELECT hash FROM definitions_of_trees WHERE root = ?)
         AND NOT EXISTS (
           SELECT 1 FROM definitions_of_trees AS used JOIN agents ON agents.id = used.root
           WHERE used.hash = definitions.hash AND used.root <> ? AND agents.tenant = definitions.tenant
         )`,
      ),
    };
  }

  keep(tenant: string, root: number, definition: StoredDefinition): void {
    const hash = wellFormed(definition.hash, "hash of a definition");
    if (this.#statements.add.run(root, hash) > 0)
      this.#statements.addText.run(tenant, hash, JSON.stringify(definition));
  }

  find(tenant: string, root: number, hash: string): StoredDefinition | undefined {
    const row = this.#statements.find.get(root, tenant, wellFormed(hash, "hash of a definition"));
    return row && definitionOf(row);
  }

  /** Deletes the texts that only this tree of the tenant uses. */
  forgetTree(tenant: string, root: number): void {
    this.#statements.forget.run(tenant, root, root);
  }

  ofTree(tenant: string, root: number): StoredDefinition[] {
    return this.#statements.all.all(root, tenant).map(definitionOf);
  }
}

function definitionOf(row: Row): StoredDefinition {
  const hash = textColumn(row, "hash", "a definition");
  const where = `definition ${hash}`;
  return definitionIn(textColumn(row, "definition", where), hash, where);
}

/** The cursors of projections of trees. */
export class SqliteProjections {
  readonly #statements: Readonly<Record<"read" | "move" | "ofTree" | "remove", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      read: connection.prepare("SELECT cursor FROM projections WHERE tenant = ? AND root_agent_id = ? AND name = ?"),
      move: connection.prepare(
        `INSERT INTO projections (tenant, root_agent_id, name, cursor) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, root_agent_id, name) DO UPDATE SET cursor = max(cursor, excluded.cursor)`,
      ),
      ofTree: connection.prepare("SELECT name, cursor FROM projections WHERE tenant = ? AND root_agent_id = ?"),
      remove: connection.prepare("DELETE FROM projections WHERE tenant = ? AND root_agent_id = ?"),
    };
  }

  cursor(tenant: string, name: string, rootAgentId: string): number {
    const row = this.#statements.read.get(...treeKey(tenant, rootAgentId), wellFormed(name, "projection name"));
    return row ? integerOf(row, "cursor", `projection ${name}`) : 0;
  }

  move(tenant: string, name: string, rootAgentId: string, cursor: number): void {
    if (cursor > 0)
      this.#statements.move.run(...treeKey(tenant, rootAgentId), wellFormed(name, "projection name"), cursor);
  }

  removeTree(tenant: string, rootAgentId: string): void {
    this.#statements.remove.run(...treeKey(tenant, rootAgentId));
  }

  ofTree(tenant: string, rootAgentId: string): StoredTree["projections"] {
    const where = `the projections of ${rootAgentId}`;
    return this.#statements.ofTree
      .all(...treeKey(tenant, rootAgentId))
      .map((row) => ({ name: textColumn(row, "name", where), cursor: integerOf(row, "cursor", where) }));
  }
}

function treeKey(tenant: string, rootAgentId: string): [string, string] {
  return [wellFormed(tenant, "tenant"), wellFormed(rootAgentId, "root agent id")];
}

/** The webhooks of trees, one row per tree. */
export class SqliteWebhooks {
  readonly #statements: Readonly<Record<"find" | "put" | "remove" | "due", Statement>>;

  constructor(connection: SqliteConnection) {
    this.#statements = {
      find: connection.prepare("SELECT webhooks FROM webhooks WHERE tenant = ? AND root_agent_id = ?"),
      put: connection.prepare(
        `INSERT INTO webhooks (tenant, root_agent_id, due_at, webhooks) VALUES (?, ?, ?, ?)
         ON CONFLICT (tenant, root_agent_id) DO UPDATE SET due_at = excluded.due_at, webhooks = excluded.webhooks`,
      ),
      remove: connection.prepare("DELETE FROM webhooks WHERE tenant = ? AND root_agent_id = ?"),
      due: connection.prepare(
        "SELECT webhooks FROM webhooks WHERE tenant = ? AND due_at <= ? ORDER BY due_at, root_agent_id LIMIT ?",
      ),
    };
  }

  find(tenant: string, rootAgentId: string): TreeWebhooks | undefined {
    const row = this.#statements.find.get(...treeKey(tenant, rootAgentId));
    return row && webhooksIn(row);
  }

  put(webhooks: TreeWebhooks): void {
    const { tenant, rootAgentId, dueAt } = webhooks;
    this.#statements.put.run(...treeKey(tenant, rootAgentId), dueAt, JSON.stringify(webhooks));
  }

  remove(tenant: string, rootAgentId: string): void {
    this.#statements.remove.run(...treeKey(tenant, rootAgentId));
  }

  due(tenant: string, now: number, limit: number): TreeWebhooks[] {
    return this.#statements.due.all(wellFormed(tenant, "tenant"), now, limit).map(webhooksIn);
  }
}

function webhooksIn(row: Row): TreeWebhooks {
  const where = "the webhooks of a tree";
  return parsed(treeWebhooksSchema, textColumn(row, "webhooks", where), where);
}
