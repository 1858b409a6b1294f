import { DatabaseSync } from "node:sqlite";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { turnConditions } from "../../src/stores/sqlite/sqlite-turns.ts";
import { temporaryFile } from "./temporary-file.ts";

const tenant = "t";

test.each([
  ["turns_by_change", {}, undefined],
  ["turns_by_owner", { ownerId: "ann" }, undefined],
  ["turns_by_session", { sessionId: "s" }, undefined],
  ["turns_by_owner", { ownerId: "ann", status: "completed" }, undefined],
  ["turns_unfinished", { status: "open" }, undefined],
  ["turns_unfinished", { status: "queued", ownerId: "ann", sessionId: "s" }, undefined],
  ["PRIMARY KEY (agent=?)", { agentId: "a" }, 1],
  ["PRIMARY KEY (agent=?)", { agentId: "a", ownerId: "ann" }, 1],
] as const)("a list of turns is read by %s for %j", async (index, filter, agent) => {
  const path = temporaryFile();
  await sqliteStores(path).close();
  const database = new DatabaseSync(path);
  onTestFinished(() => database.close());
  for (const place of [undefined, { changedAt: 5, turnId: "a#1" }]) {
    const { conditions, values } = turnConditions({ tenant, ...filter }, agent, place);
    const sql = `SELECT turn_id FROM turns WHERE ${conditions.join(" AND ")} ORDER BY changed_at DESC, turn_id LIMIT 5`;
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
    const details = plan.map(({ detail }) => String(detail));
    expect(details[0]).toContain(index);
    // Only the turns of one agent are sorted.
    expect(details.some((detail) => detail.includes("TEMP B-TREE"))).toBe(agent !== undefined);
  }
});
