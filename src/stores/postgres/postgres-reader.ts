import type { Account, Moment, Waiter } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  agentOfTurn,
  type Artifact,
  artifactSchema,
  type Deletion,
  deletionSchema,
  type Entry,
  type InboxItem,
  JOURNAL_VERSION,
  type JournalRow,
  type Message,
  messageSchema,
  readEntries,
  type StoredDefinition,
  type Timer,
  timerSchema,
  type TreeWebhooks,
  treeWebhooksSchema,
  type TurnRecord,
  turnRecordSchema,
} from "../../state/index.ts";
import { z } from "zod";
import { outerRowIn } from "../rules/outer-rows.ts";
import type { StoredRow, StoredTree, StoredTurn } from "../rules/ports.ts";
import { processIn } from "../rules/stored-processes.ts";
import { type DeletionQuery, isDue } from "../rules/queries.ts";
import {
  CorruptTimers,
  definitionIn,
  fitting,
  integerOf,
  jsonOf,
  parsed,
  type Row,
  textColumn,
  textOrNullOf,
} from "../rules/stored-values.ts";
import type { ArtifactMeta, KeyMeaning, OuterKind, OuterRows, ProcessRow } from "../rules/tables.ts";
import { prepared, type Query, type Statement } from "../../postgres/index.ts";
import { accountIn, headColumns, headIn, itemsIn, recordIn, requestIn, waitersIn } from "./postgres-loads.ts";
import { type HeadRow, type Held, Lazy } from "./postgres-session.ts";
import {
  aboveTrees,
  columnsOf,
  columnText,
  deletionsOf,
  processesTree,
  textOfColumn,
  treeOf,
} from "./postgres-text.ts";

const descriptionSchema = artifactSchema.omit({ content: true });
const contentSchema = z.string();
const steerSchema = z.object({
  steer: z.enum(["posted", "taken", "deferred"]),
  turnId: z.string(),
  step: z.number().nullable(),
  hash: z.string(),
});

const treeOfPlace = "(SELECT id FROM $trees WHERE tenant = $1::text AND root = $2::text)";

interface OuterPage<Kind extends OuterKind> {
  readonly tenant: string;
  readonly kind: Kind;
  readonly after?: string | undefined;
  readonly limit: number;
}

type DeletionList = DeletionQuery & { readonly limit: number };

const turnColumns =
  "turn_id, number, tenant, session_id, owner_id, turn_key, hash, status, stop_reason, opened_at, changed_at";

/** Reads rows of one tree, one statement each; `$1` and `$2` name the tree. */
export class PostgresReader {
  readonly #schema: string;
  readonly #damaged = new CorruptTimers();

  constructor(schema: string) {
    this.#schema = schema;
  }

  async agent(query: Query, key: AgentKey): Promise<AgentRecord | undefined> {
    const [row] = await this.#ofAgent(query, key, "agents", "record AS body");
    return row && recordIn(row, key);
  }

  async head(query: Query, key: AgentKey): Promise<HeadRow | undefined> {
    const [row] = await this.#ofAgent(query, key, "heads", headColumns);
    return row && headIn(row, key.agentId);
  }

  async childrenOf(query: Query, { tenant, agentId }: AgentKey): Promise<AgentRecord[]> {
    const rows = await this.#ofTree(query, tenant, agentId, {
      select: "agent_id, record AS body FROM $agents",
      where: "AND parent = $3::text ORDER BY n",
      values: [columnText(agentId, "agent id")],
    });
    return rows.map((row) => this.#recordOf(row, tenant));
  }

  /** In the order in which they were created. */
  async agentsOfTree(query: Query, tenant: string, rootAgentId: string): Promise<AgentRecord[]> {
    const rows = await this.#ofTree(query, tenant, rootAgentId, {
      select: "agent_id, record AS body FROM $agents",
      where: "ORDER BY n",
    });
    // The id of a subagent belongs to the tree of another root.
    return rows.map((row) => this.#recordOf(row, tenant)).filter((record) => record.rootAgentId === rootAgentId);
  }

  async inbox(query: Query, key: AgentKey): Promise<InboxItem[]> {
    const rows = await this.#ofAgent(query, key, "inbox", "item_key AS sub, item AS body", "ORDER BY n");
    return [...itemsIn(rows, key.agentId).values()];
  }

  async account(query: Query, tenant: string, agentId: string, accountId: string): Promise<Account | undefined> {
    const [row] = await this.#ofTree(query, tenant, agentId, {
      select: "account AS body FROM $accounts",
      where: "AND account_id = $3::text",
      values: [columnText(accountId, "account id")],
    });
    return row && accountIn(row, accountId);
  }

  async accounts(query: Query, tenant: string, rootAgentId: string): Promise<Account[]> {
    const rows = await this.#ofTree(query, tenant, rootAgentId, {
      select: "account_id, account AS body FROM $accounts",
      where: "ORDER BY n",
    });
    return rows.map((row) => accountIn(row, textOfColumn(textColumn(row, "account_id", "an account of the tree"))));
  }

  async waiters(query: Query, tenant: string, agentId: string, accountId: string): Promise<Waiter[]> {
    const rows = await this.#ofTree(query, tenant, agentId, {
      select: "waiter AS body FROM $waiters",
      where: "AND account_id = $3::text ORDER BY position",
      values: [columnText(accountId, "account id")],
    });
    return waitersIn(rows, accountId);
  }

  async processes(query: Query): Promise<ProcessRow[]> {
    const rows = await query(
      this.#statement(
        `SELECT process_id, process FROM $processes WHERE tree = (SELECT id FROM $trees WHERE tenant = $1::text AND root = $2::text)
         ORDER BY n`,
      ),
      [...columnsOf(processesTree)],
    );
    return rows.map((row) => processOf(row));
  }

  async process(query: Query, processId: string): Promise<ProcessRow | undefined> {
    const rows = await query(
      this.#statement(
        `SELECT process_id, process FROM $processes
         WHERE tree = (SELECT id FROM $trees WHERE tenant = $1::text AND root = $2::text) AND process_id = $3::text`,
      ),
      [...columnsOf(processesTree), columnText(processId, "process id")],
    );
    const [row] = rows;
    return row && processOf(row);
  }

  async newestRow(query: Query, key: AgentKey): Promise<JournalRow | undefined> {
    const select = "agent_id, cursor, version, entries";
    const [row] = await this.#ofAgent(query, key, "journal", select, "ORDER BY last_seq DESC LIMIT 1");
    return row && journalRowOf(row);
  }

  /** Starts with the row that contains `fromSeq`. */
  async rowsFrom(query: Query, key: AgentKey, fromSeq: number): Promise<JournalRow[]> {
    const { tenant, agentId } = key;
    const found = await this.#ofTree(query, tenant, agentId, {
      select: "agent_id, cursor, version, entries FROM $journal",
      where: "AND agent_id = $3::text AND last_seq >= $4::bigint ORDER BY last_seq",
      values: [columnText(agentId, "agent id"), Math.max(0, fromSeq)],
    });
    const rows = found.map((row) => journalRowOf(row));
    let next = Math.max(1, fromSeq);
    for (const { cursor, entries } of rows) {
      const [first = next] = entries.map(({ seq }) => seq);
      if (first > next) {
        throw new CorruptRecordError(
          `row ${cursor} of the journal (agent ${agentId}) does not follow entry ${next - 1}`,
        );
      }
      next = (entries.at(-1)?.seq ?? next - 1) + 1;
    }
    return rows;
  }

  async treeRows(
    query: Query,
    { tenant, rootAgentId }: { readonly tenant: string; readonly rootAgentId: string },
    after: number,
    limit: number,
  ): Promise<JournalRow[]> {
    const rows = await this.#ofTree(query, tenant, rootAgentId, {
      select: "agent_id, cursor, version, entries FROM $journal",
      where: "AND cursor > $3::bigint ORDER BY cursor LIMIT $4::bigint",
      values: [after, limit],
    });
    return rows.map((row) => journalRowOf(row));
  }

  async storedRows(query: Query, tenant: string, rootAgentId: string): Promise<StoredRow[]> {
    const messages = await this.#ofTree(query, tenant, rootAgentId, {
      select: "agent_id, cursor, message FROM $messages",
      where: "ORDER BY cursor, n",
    });
    const byCursor = Map.groupBy(messages, (row) => integerOf(row, "cursor", "a message of the tree"));
    const rows = await this.treeRows(query, { tenant, rootAgentId }, 0, Number.MAX_SAFE_INTEGER);
    return rows.map((row) => ({
      ...row,
      messages: (byCursor.get(row.cursor) ?? []).map((message) => messageIn(message, row.agentId)),
    }));
  }

  /** 0 if the tree is not stored. */
  async lastCursor(query: Query, tenant: string, rootAgentId: string): Promise<number> {
    const [row] = await query(
      this.#statement("SELECT last_cursor FROM $trees WHERE tenant = $1::text AND root = $2::text"),
      [...columnsOf(treeOf(tenant, rootAgentId))],
    );
    return row ? integerOf(row, "last_cursor", "a tree") : 0;
  }

  /** Oldest first; `newest` limits the result to the newest messages. */
  async messages(query: Query, { tenant, agentId }: AgentKey, newest: number | undefined): Promise<Message[]> {
    const rows = await this.#ofTree(query, tenant, agentId, {
      select: "message FROM $messages",
      where: "AND agent_id = $3::text ORDER BY n DESC LIMIT $4::bigint",
      values: [columnText(agentId, "agent id"), newest ?? null],
    });
    return rows.toReversed().map((row) => messageIn(row, agentId));
  }

  async messagesById(query: Query, { tenant, agentId }: AgentKey, ids: readonly string[]): Promise<Message[]> {
    const rows = await this.#ofTree(query, tenant, agentId, {
      select: "message_id, message FROM $messages",
      where: "AND agent_id = $3::text AND message_id = ANY($4::text[])",
      values: [columnText(agentId, "agent id"), ids.map((id) => columnText(id, "message id"))],
    });
    const byId = new Map(rows.map((row) => [textOfColumn(textColumn(row, "message_id", "a message")), row]));
    return ids.flatMap((id) => {
      const row = byId.get(id);
      if (!row) return [];
      const message = messageIn(row, agentId);
      if (message.id === id) return message;
      throw new CorruptRecordError(
        `the row of message ${id} of agent ${agentId} holds message ${message.id}; it is not changed`,
      );
    });
  }

  /** In the order of their first save. */
  async artifacts(query: Query, key: AgentKey): Promise<ArtifactMeta[]> {
    const rows = await this.#ofAgent(query, key, "artifacts", "description", "ORDER BY n");
    return rows.map((row) => descriptionOf(row, key));
  }

  async artifact(query: Query, key: AgentKey, artifactId: string): Promise<Artifact | undefined> {
    const { tenant, agentId } = key;
    const [row] = await this.#ofTree(query, tenant, agentId, {
      select: "description, content FROM $artifacts",
      where: "AND agent_id = $3::text AND artifact_id = $4::text",
      values: [columnText(agentId, "agent id"), columnText(artifactId, "artifact id")],
    });
    if (!row) return undefined;
    const where = `the content of an artifact of agent ${agentId}`;
    return { ...descriptionOf(row, key), content: parsed(contentSchema, textColumn(row, "content", where), where) };
  }

  async request(query: Query, { tenant, agentId }: AgentKey, requestId: string): Promise<AgentRequest | undefined> {
    const [row] = await this.#ofTree(query, tenant, agentId, {
      select: "request_id AS sub, request AS body FROM $requests",
      where: "AND agent_id = $3::text AND request_id = $4::text",
      values: [columnText(agentId, "agent id"), columnText(requestId, "request id")],
    });
    return row && requestIn(row);
  }

  /** The input for an open turn, the turn or the decision that was made with a key. */
  async meaningOf(query: Query, { tenant, agentId }: AgentKey, text: string): Promise<KeyMeaning | undefined> {
    const [row] = await query(
      this.#statement(
        `WITH t AS (SELECT id FROM $trees WHERE tenant = $1::text AND root = $2::text)
         SELECT 'steer' AS kind, turn_id, hash, state, step, null AS sub, null AS body FROM t JOIN $steers ON tree = t.id
           WHERE agent_id = $3::text AND steer_id = $4::text
         UNION ALL SELECT 'turn', turn_id, hash, null, null, null, null FROM t JOIN $turns ON tree = t.id
           WHERE agent_id = $3::text AND md5(turn_key) = md5($4::text) AND turn_key = $4::text
         UNION ALL SELECT 'request', turn_id, null, null, null, request_id, request FROM t JOIN $requests ON tree = t.id
           WHERE md5(decision_key) = md5($4::text) AND decision_key = $4::text`,
      ),
      [...columnsOf(treeOf(tenant, agentId)), columnText(agentId, "agent id"), columnText(text, "key")],
    );
    if (!row) return undefined;
    if (row["kind"] === "request") {
      const { requestId, decidedWith } = requestIn(row);
      return decidedWith && { requestId, turnId: decidedWith.turnId };
    }
    const where = `the input of key ${text}`;
    const turnId = textOfColumn(textColumn(row, "turn_id", where));
    if (row["kind"] === "turn") return { turnId, hash: textColumn(row, "hash", where) };
    const { state, step, hash } = row;
    return fitting(steerSchema, { steer: state, turnId, step, hash }, where);
  }

  /** By number. */
  async turnsOf(query: Query, key: AgentKey): Promise<StoredTurn[]> {
    const rows = await this.#ofAgent(query, key, "turns", turnColumns, "ORDER BY number");
    return rows.map((row) => ({ ...turnIn(row), hash: textOrNullOf(row, "hash", "a turn") }));
  }

  async outerRow<Kind extends OuterKind>(
    query: Query,
    tenant: string,
    kind: Kind,
    id: string,
  ): Promise<OuterRows[Kind] | undefined> {
    const [row] = await query(
      this.#statement(
        `SELECT value FROM $outer_rows WHERE tree = ${treeOfPlace} AND kind = $3::text AND id = $4::text`,
      ),
      [...columnsOf(aboveTrees(tenant)), kind, columnText(id, "id")],
    );
    return row && outerRowIn(kind, id, textColumn(row, "value", `${kind} ${id}`));
  }

  /** In the order of their ids. */
  async outerRows<Kind extends OuterKind>(
    query: Query,
    { tenant, kind, after = "", limit }: OuterPage<Kind>,
  ): Promise<{ readonly id: string; readonly row: Held<OuterRows[Kind]> }[]> {
    const rows = await query(
      this.#statement(
        `SELECT id, value FROM $outer_rows WHERE tree = ${treeOfPlace} AND kind = $3::text AND id > $4::text
         ORDER BY id LIMIT $5::bigint`,
      ),
      [...columnsOf(aboveTrees(tenant)), kind, columnText(after, "id"), limit],
    );
    return rows.map((row) => {
      const id = textOfColumn(textColumn(row, "id", `the ids of kind ${kind}`));
      return { id, row: new Lazy(() => outerRowIn(kind, id, textColumn(row, "value", `${kind} ${id}`))) };
    });
  }

  async deletion(query: Query, tenant: string, idHash: string): Promise<Deletion | undefined> {
    const [row] = await query(
      this.#statement(`SELECT deletion FROM $deletions WHERE tree = ${treeOfPlace} AND id_hash = $3::text`),
      [...columnsOf(deletionsOf(tenant)), columnText(idHash, "hash of an id")],
    );
    return row && deletionIn(row);
  }

  /** Oldest first, then by hash. */
  async deletions(query: Query, { tenant, since, isPending, limit }: DeletionList): Promise<Deletion[]> {
    const rows = await query(
      this.#statement(
        `SELECT deletion FROM $deletions WHERE tree = ${treeOfPlace} ${isPending === true ? "AND is_pending" : ""}
           AND deleted_at >= $3::bigint ORDER BY deleted_at, id_hash LIMIT $4::bigint`,
      ),
      [...columnsOf(deletionsOf(tenant)), wholeOf(since ?? Number.MIN_SAFE_INTEGER), limit],
    );
    return rows.map(deletionIn);
  }

  async definition(
    query: Query,
    { tenant, rootAgentId }: { readonly tenant: string; readonly rootAgentId: string },
    hash: string,
  ): Promise<StoredDefinition | undefined> {
    const [row] = await this.#ofTree(query, tenant, rootAgentId, {
      select: "hash, definition FROM $definitions",
      where: "AND hash = $3::text",
      values: [columnText(hash, "hash of a definition")],
    });
    return row && definitionOf(row);
  }

  async definitionsOf(query: Query, tenant: string, rootAgentId: string): Promise<StoredDefinition[]> {
    const rows = await this.#ofTree(query, tenant, rootAgentId, {
      select: "hash, definition FROM $definitions",
      where: "ORDER BY hash",
    });
    return rows.map(definitionOf);
  }

  async timer(query: Query, { tenant, agentId }: AgentKey, timerId: string): Promise<Timer | undefined> {
    const [row] = await this.#ofTree(query, tenant, agentId, {
      select: "timer FROM $timers",
      where: "AND agent_id = $3::text AND timer_id = $4::text",
      values: [columnText(agentId, "agent id"), columnText(timerId, "timer id")],
    });
    return row && timerIn(row, "a timer");
  }

  async timersOf(query: Query, key: AgentKey): Promise<Timer[]> {
    const rows = await this.#ofAgent(query, key, "timers", "timer", "ORDER BY due_at, timer_id");
    return rows.map((row) => timerIn(row, "a timer"));
  }

  /** Earliest first. Corrupt timers are skipped, so more may have to be read than are returned. */
  async dueTimers(query: Query, moment: Moment, limit: number): Promise<Timer[]> {
    const due: Timer[] = [];
    const statement = this.#statement(
      `SELECT agent_id, timer_id, timer FROM $timers
       WHERE due_at <= $1::bigint AND due_at <= CASE WHEN is_steady THEN $2::bigint ELSE $3::bigint END
       ORDER BY due_at, tree, agent_id, timer_id LIMIT $4::bigint OFFSET $5::bigint`,
    );
    const latest = Math.max(moment.now, moment.steady);
    for (let read = 0; due.length < limit; ) {
      const count = limit - due.length;
      const values = [latest, moment.steady, moment.now, count, read].map(wholeOf);
      const rows = await query(statement, values);
      for (const row of rows) {
        const timer = this.#damaged.skipCorrupt(() => {
          const of = textOfColumn(textColumn(row, "agent_id", "a timer"));
          return timerIn(row, `timer ${textOfColumn(textColumn(row, "timer_id", "a timer"))} of agent ${of}`);
        });
        if (timer && isDue(timer, moment)) due.push(timer);
      }
      read += rows.length;
      if (rows.length < count) break;
    }
    return due;
  }

  async nextTimerAt(query: Query): Promise<number | undefined> {
    const [row] = await query(this.#statement("SELECT due_at FROM $timers ORDER BY due_at LIMIT 1"), []);
    return row && integerOf(row, "due_at", "a timer");
  }

  async projections(query: Query, tenant: string, rootAgentId: string): Promise<StoredTree["projections"]> {
    const where = `the projections of ${rootAgentId}`;
    const rows = await this.#ofTree(query, tenant, rootAgentId, {
      select: "name, cursor FROM $projections",
      where: "",
    });
    return rows.map((row) => ({
      name: textOfColumn(textColumn(row, "name", where)),
      cursor: integerOf(row, "cursor", where),
    }));
  }

  async webhooks(query: Query, tenant: string, rootAgentId: string): Promise<TreeWebhooks | undefined> {
    const [row] = await this.#ofTree(query, tenant, rootAgentId, { select: "webhooks FROM $webhooks", where: "" });
    const found = row && webhooksIn(row);
    // The id of a subagent belongs to the tree of another root.
    return found?.rootAgentId === rootAgentId ? found : undefined;
  }

  async dueWebhooks(query: Query, tenant: string, now: number, limit: number): Promise<TreeWebhooks[]> {
    const rows = await query(
      this.#statement(
        `SELECT webhooks FROM $webhooks WHERE tenant = $1::text AND due_at <= $2::bigint
         ORDER BY due_at, root LIMIT $3::bigint`,
      ),
      [columnText(tenant, "tenant"), wholeOf(now), limit],
    );
    return rows.map(webhooksIn);
  }

  #recordOf(row: Row, tenant: string): AgentRecord {
    return recordIn(row, { tenant, agentId: textOfColumn(textColumn(row, "agent_id", "an agent of the tree")) });
  }

  async #ofAgent(
    query: Query,
    { tenant, agentId }: AgentKey,
    table: string,
    columns: string,
    order = "",
  ): Promise<readonly Row[]> {
    return await this.#ofTree(query, tenant, agentId, {
      select: `${columns} FROM $${table}`,
      where: `AND agent_id = $3::text ${order}`,
      values: [columnText(agentId, "agent id")],
    });
  }

  async #ofTree(
    query: Query,
    tenant: string,
    agentId: string,
    {
      select,
      where,
      values = [],
    }: { readonly select: string; readonly where: string; readonly values?: readonly unknown[] },
  ): Promise<readonly Row[]> {
    return await query(this.#statement(`SELECT ${select} WHERE tree = ${treeOfPlace} ${where}`), [
      ...columnsOf(treeOf(tenant, agentId)),
      ...values,
    ]);
  }

  /** `$name` stands for a table of the schema. */
  #statement(text: string): Statement {
    return prepared(inSchema(text, this.#schema));
  }
}

/** A number as a bigint of Postgres. */
export function wholeOf(value: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Math.floor(value)));
}

/** Replaces `$name` by the name of a table in the schema; parameters are numbers. */
export function inSchema(text: string, schema: string): string {
  return text.replaceAll(/\$([a-z_]+)/g, `"${schema}".$1`);
}

export function turnIn(row: Row): TurnRecord {
  const turnId = textOfColumn(textColumn(row, "turn_id", "a turn"));
  const text = (column: string): string | null => {
    const value = textOrNullOf(row, column, `turn ${turnId}`);
    return value === null ? null : textOfColumn(value);
  };
  const turn = turnRecordSchema.safeParse({
    turnId,
    number: row["number"],
    tenant: text("tenant"),
    status: row["status"],
    agentId: agentOfTurn(turnId),
    sessionId: text("session_id"),
    ownerId: text("owner_id"),
    key: text("turn_key"),
    stopReason: row["stop_reason"],
    openedAt: row["opened_at"],
    changedAt: row["changed_at"],
  });
  if (turn.success) return turn.data;
  const [issue] = turn.error.issues;
  throw new CorruptRecordError(`turn ${turnId}: ${issue?.message} at ${issue?.path.join(".")}; it is not changed`);
}

export const columnsOfTurns = turnColumns;

export function journalRowOf(row: Row): JournalRow {
  const agentId = textOfColumn(textColumn(row, "agent_id", "a row of the journal"));
  const cursor = integerOf(row, "cursor", "a row of the journal");
  const where = `row ${cursor} of the journal (agent ${agentId})`;
  const version = integerOf(row, "version", where);
  const entries: readonly Entry[] = readEntries(version, jsonOf(textColumn(row, "entries", where), where), where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}

function deletionIn(row: Row): Deletion {
  const where = "the deletion of a tree";
  return parsed(deletionSchema, textColumn(row, "deletion", where), where);
}

function processOf(row: Row): ProcessRow {
  const processId = textOfColumn(textColumn(row, "process_id", "a process"));
  return processIn(textColumn(row, "process", "a process"), `process ${processId}`, processId);
}

function messageIn(row: Row, agentId: string): Message {
  const where = `a message of agent ${agentId}`;
  return parsed(messageSchema, textColumn(row, "message", where), where);
}

function descriptionOf(row: Row, { agentId }: AgentKey): ArtifactMeta {
  const where = `an artifact of agent ${agentId}`;
  return parsed(descriptionSchema, textColumn(row, "description", where), where);
}

function timerIn(row: Row, where: string): Timer {
  return parsed(timerSchema, textColumn(row, "timer", where), where);
}

function definitionOf(row: Row): StoredDefinition {
  const hash = textOfColumn(textColumn(row, "hash", "a definition"));
  const where = `definition ${hash}`;
  return definitionIn(textColumn(row, "definition", where), hash, where);
}

function webhooksIn(row: Row): TreeWebhooks {
  const where = "the webhooks of a tree";
  return parsed(treeWebhooksSchema, textColumn(row, "webhooks", where), where);
}
