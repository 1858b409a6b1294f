import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { SqliteConnection } from "../../src/stores/sqlite/sqlite-connection.ts";
import { SqlitePosts } from "../../src/stores/sqlite/sqlite-pending.ts";
import type { Statement } from "../../src/stores/sqlite/sqlite-statement.ts";
import { SqliteTables } from "../../src/stores/sqlite/sqlite-tables.ts";
import { temporaryFile } from "./temporary-file.ts";

class RecordingConnection extends SqliteConnection {
  static readonly statements = new Set<string>();

  override prepare(sql: string): Statement {
    RecordingConnection.statements.add(sql);
    return super.prepare(sql);
  }
}

/** Statements that may read more rows than they use or sort what they read, with the reason. */
const allowed: Readonly<Record<string, string>> = {
  "SELECT * FROM processes": "one row for each process, and all are needed",
  "SELECT due_at FROM timers ORDER BY due_at LIMIT 1": "the first entry of an index",
  "SELECT tenant, agent_id FROM agents WHERE id IN (SELECT agent FROM inbox)": "all items in inboxes",
  "SELECT item_key, item FROM inbox WHERE agent = ? ORDER BY id": "all items of one inbox",
  "SELECT timer FROM timers WHERE agent = ? ORDER BY due_at, timer_id": "all timers of one agent",
};

function planOf(database: DatabaseSync, sql: string): string[] {
  return database
    .prepare(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => String(detail));
}

const isCostly = (step: string): boolean => /^SCAN (?!CONSTANT ROW)|TEMP B-TREE/.test(step);

test("no statement of the stores scans a table or sorts", () => {
  const path = temporaryFile();
  const connection = new RecordingConnection(path, {});
  onTestFinished(() => connection.close());
  for (const tables of [SqliteTables, SqlitePosts]) expect(new tables(connection)).toBeDefined();
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  const planned = [...RecordingConnection.statements].filter((sql) => /^\s*(?:SELECT|UPDATE|DELETE)\b/.test(sql));
  expect(planned.length).toBeGreaterThan(50);
  const costly = planned.flatMap((sql) => {
    const steps = planOf(database, sql).filter(isCostly);
    return steps.length > 0 ? [sql] : [];
  });
  expect(costly.toSorted()).toEqual(Object.keys(allowed).toSorted());
});

test("the newest messages of an agent are read from the end of an index, however long the conversation is", () => {
  const path = temporaryFile();
  new SqliteConnection(path, {}).close();
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  const newest = "SELECT message FROM messages WHERE agent = ? ORDER BY id DESC LIMIT ?";
  expect(planOf(database, newest)).toEqual([expect.stringMatching(/^SEARCH messages USING INDEX messages_by_agent/)]);
});
