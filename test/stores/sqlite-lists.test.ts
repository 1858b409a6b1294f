import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { requestQuery } from "../../src/stores/sqlite/sqlite-small-tables.ts";
import { turnQueries } from "../../src/stores/sqlite/sqlite-turns.ts";
import { temporaryFile } from "./temporary-file.ts";

const tenant = "t";

test.each([
  [["turns_unfinished", "turns_by_change"], {}, undefined],
  [["turns_unfinished", "turns_by_owner"], { ownerId: "ann" }, undefined],
  [["turns_unfinished", "turns_by_session"], { sessionId: "s" }, undefined],
  [["turns_unfinished", "turns_by_owner"], { sessionId: "s", ownerId: "ann" }, undefined],
  [["turns_by_owner"], { ownerId: "ann", status: "completed" }, undefined],
  [["turns_unfinished"], { status: "open" }, undefined],
  [["turns_unfinished"], { status: "queued", ownerId: "ann", sessionId: "s" }, undefined],
  [["PRIMARY KEY (agent=?)"], { agentId: "a" }, 1],
  [["PRIMARY KEY (agent=?)"], { agentId: "a", ownerId: "ann" }, 1],
] as const)("a list of turns is read by %s for %j", async (indexes, filter, agent) => {
  const path = temporaryFile();
  await sqliteStores(path).close();
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  for (const place of [undefined, { changedAt: 5, turnId: "a#1" }]) {
    const queries = turnQueries({ tenant, ...filter }, agent, place);
    expect(queries).toHaveLength(indexes.length);
    for (const [index, { sql, values }] of queries.entries()) {
      const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values, 5);
      const details = plan.map(({ detail }) => String(detail));
      expect(details[0]).toContain(indexes[index]);
      // Only the turns of one agent are sorted.
      expect(details.some((detail) => detail.includes("TEMP B-TREE"))).toBe(agent !== undefined);
    }
  }
});

test.each([
  ["requests_by_opening", {}, undefined],
  ["requests_open (", { status: "open" }, undefined],
  ["requests_by_owner", { ownerId: "ann" }, undefined],
  ["requests_by_owner", { ownerId: "ann", status: "decided" }, undefined],
  ["requests_open_by_owner", { ownerId: "ann", status: "open" }, undefined],
  ["requests_by_root", { ownerId: "ann", status: "open" }, 1],
  ["requests_by_root", { status: "open" }, 1],
] as const)("a list of requests is read by %s for %j, without sorting", async (index, filter, tree) => {
  const path = temporaryFile();
  await sqliteStores(path).close();
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  for (const after of [undefined, { openedAt: 5, requestId: "a#1:1:0:1" }]) {
    const { sql, values } = requestQuery({ tenant, ...filter }, { root: tree }, after);
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values, 5);
    expect(plan).toHaveLength(1);
    expect(plan[0]?.["detail"]).toContain(index);
  }
});
