import { prepared, type Statement } from "../../postgres/index.ts";
import type { TreeCache, WriteSession } from "./postgres-session.ts";
import { type Table, type TableName, tableNames, type TableRow, tables, tablesOfTree } from "./postgres-rows.ts";
import { columnsOf } from "./postgres-text.ts";

interface Step {
  readonly statement: Statement;
  readonly values: readonly unknown[];
}

/** Names a write, so that its process can find out whether it was applied. */
export interface WriteMark {
  readonly schema: string;
  readonly writer: string;
  readonly writeNo: number;
  /** The notification for other processes; `undefined` if there is none. */
  readonly notice: { readonly channel: string; readonly text: string } | undefined;
}

/**
 * The statements that write a session's changes, usually one: it takes the tree's row only under the version that the session has read,
 * and all other changes depend on that. It returns no row if the tree has another version. Several statements need a transaction: rows
 * that are deleted and inserted again cannot be in one statement.
 */
export function stepsOf(session: WriteSession, cache: TreeCache, mark: WriteMark): Step[] {
  const deleting = new StatementText(mark.schema);
  const writing = new StatementText(mark.schema);
  const { id } = cache;
  const isApart =
    id !== undefined && (session.isRemoved || session.cleared.messages.size + session.cleared.artifacts.size > 0);
  const told = (text: StatementText): string =>
    mark.notice
      ? `, pg_notify(${text.param(mark.notice.channel, "text")}, ${text.param(mark.notice.text, "text")})`
      : "";
  if (session.isPurged) {
    const place = `id = ${deleting.param(id, "bigint")} AND version = ${deleting.param(cache.version, "bigint")}`;
    deleting.part(`t AS (DELETE FROM ${deleting.table("trees")} WHERE ${place} RETURNING id, version)`);
    for (const name of [...tablesOfTree, "projections", "receipts"]) deleting.part(deleteTree(deleting, name));
    return [deleting.ending(`SELECT id, version${told(deleting)} FROM t`)];
  }
  if (isApart) {
    takeTree(deleting, session, cache, mark);
    if (session.isRemoved) for (const name of tablesOfTree) deleting.part(deleteTree(deleting, name));
    else for (const name of ["messages", "artifacts"] as const) clearAgents(deleting, name, session.cleared[name]);
    writing.part(`t AS (SELECT id, version FROM ${writing.table("trees")} WHERE id = ${writing.param(id, "bigint")})`);
  } else takeTree(writing, session, cache, mark);
  // Always in this order, so that equal changes have equal statements.
  for (const name of tableNames) {
    const rows = session.changes.get(name);
    if (rows) changeRows(writing, name, [...rows.values()]);
  }
  const steps = [writing.ending(`SELECT id, version${told(writing)} FROM t`)];
  return isApart ? [deleting.ending("SELECT id, version FROM t"), ...steps] : steps;
}

function takeTree(text: StatementText, session: WriteSession, cache: TreeCache, mark: WriteMark): void {
  const { id, version = 0 } = cache;
  const imports = cache.imports + (session.isRemoved ? 1 : 0);
  const state = [session.lastCursor, session.agents, imports] as const;
  const [cursor, agents, imported] = state.map((value, at) => text.param(value, at === 0 ? "bigint" : "int"));
  const [writer, writeNo] = [text.param(mark.writer, "text"), text.param(mark.writeNo, "bigint")];
  // A time, so that no version is used twice, even if the server has lost the last ones.
  const now = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
  if (id === undefined) {
    const [tenant, root] = columnsOf(session.tree);
    text.part(
      `t AS (INSERT INTO ${text.table("trees")} (tenant, root, version, last_cursor, agents, imports, writer, write_no)
        VALUES (${text.param(tenant, "text")}, ${text.param(root, "text")}, ${now}, ${cursor}, ${agents}, ${imported},
          ${writer}, ${writeNo})
        ON CONFLICT (tenant, root) DO NOTHING RETURNING id, version)`,
    );
    return;
  }
  text.part(
    `t AS (UPDATE ${text.table("trees")} SET version = greatest(version + 1, ${now}), last_cursor = ${cursor},
      agents = ${agents}, imports = ${imported}, writer = ${writer}, write_no = ${writeNo}
      WHERE id = ${text.param(id, "bigint")} AND version = ${text.param(version, "bigint")} RETURNING id, version)`,
  );
  if (cache.writer === mark.writer) return;
  text.part(
    `receipt AS (INSERT INTO ${text.table("receipts")} (tree, writer, write_no, at)
      SELECT t.id, ${text.param(cache.writer, "text")}, ${text.param(cache.writeNo, "bigint")}, now() FROM t
      ON CONFLICT (tree, writer) DO UPDATE SET write_no = excluded.write_no, at = excluded.at)`,
  );
  text.part(
    `expired AS (DELETE FROM ${text.table("receipts")} AS r USING t
      WHERE r.tree = t.id AND r.at < now() - interval '1 hour' AND r.writer <> ${text.param(cache.writer, "text")})`,
  );
}

function deleteTree(text: StatementText, name: string): string {
  return `without_${name} AS (DELETE FROM ${text.table(name)} AS r USING t WHERE r.tree = t.id)`;
}

function clearAgents(text: StatementText, name: "messages" | "artifacts", agentIds: ReadonlySet<string>): void {
  if (agentIds.size === 0) return;
  text.part(
    `without_${name} AS (DELETE FROM ${text.table(name)} AS r USING t
      WHERE r.tree = t.id AND r.agent_id = ANY(${text.param([...agentIds], "text[]")}))`,
  );
}

function changeRows(text: StatementText, name: TableName, rows: readonly TableRow[]): void {
  const table = tables[name];
  const put = rows.filter(({ values }) => values !== null);
  const gone = rows.filter(({ values }) => values === null);
  if (put.length > 0) text.part(putRows(text, name, table, put));
  if (gone.length === 0) return;
  const given = table.keys.length === 0 ? "" : `, ${unnested(text, table.keys, gone)}`;
  const isRow = table.keys.map(([key]) => ` AND r.${key} = u.${key}`).join("");
  text.part(`without_${name} AS (DELETE FROM ${text.table(name)} AS r USING t${given} WHERE r.tree = t.id${isRow})`);
}

function putRows(text: StatementText, name: TableName, table: Table, rows: readonly TableRow[]): string {
  const { keys, values, stored, isUpdate } = table;
  const given = unnested(text, [...keys, ...values], rows);
  if (isUpdate !== undefined) {
    const set = values.map(([column]) => `${column} = u.${column}`).join(", ");
    const isRow = keys.map(([key]) => ` AND r.${key} = u.${key}`).join("");
    return `${name} AS (UPDATE ${text.table(isUpdate)} AS r SET ${set} FROM t, ${given} WHERE r.tree = t.id${isRow})`;
  }
  const columns = [...keys, ...values].map(([column]) => column).join(", ");
  const newest = [...keys, ...values].map(([column]) => `u.${column}`).join(", ");
  const replaced = values.map(([column]) => `${column} = excluded.${column}`).join(", ");
  const unique = ["tree", ...keys.map(([key]) => key)].join(", ");
  return `put_${name} AS (INSERT INTO ${text.table(name)} AS stored (tree, ${columns})
    SELECT t.id, ${newest} FROM t, ${given} ORDER BY u.place
    ON CONFLICT (${unique}) DO ${stored ?? `UPDATE SET ${replaced}`})`;
}

/** The rows as a table `u`, from one array for each column. */
function unnested(text: StatementText, columns: Table["keys"], rows: readonly TableRow[]): string {
  const arrays = columns.map(([, type], at) => {
    const column = rows.map(({ key, values }) => (at < key.length ? key[at] : values?.[at - key.length]) ?? null);
    return text.param(column, `${type}[]`);
  });
  const names = columns.map(([column]) => column).join(", ");
  return `unnest(${arrays.join(", ")}) WITH ORDINALITY AS u (${names}, place)`;
}

/** A statement of several parts that take effect together. */
class StatementText {
  readonly #schema: string;
  readonly #parts: string[] = [];
  readonly #values: unknown[] = [];

  constructor(schema: string) {
    this.#schema = schema;
  }

  table(name: string): string {
    return `"${this.#schema}".${name}`;
  }

  param(value: unknown, type: string): string {
    return `$${this.#values.push(value)}::${type}`;
  }

  part(text: string): void {
    this.#parts.push(text);
  }

  ending(text: string): Step {
    return { statement: prepared(`WITH ${this.#parts.join(",\n")}\n${text}`), values: this.#values };
  }
}
