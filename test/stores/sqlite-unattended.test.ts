import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { candidateQueries } from "../../src/stores/sqlite/sqlite-pending.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { openTurn } from "../contracts/queued-fixtures.ts";
import { LEASE_MS } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

const query = { processId: "asker", leaseMs: LEASE_MS };

test("an unreadable agent does not hide another unattended one", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  await openTurn(stores, { agentId: "broken" });
  await openTurn(stores);
  await stores.close();
  const database = new DatabaseSync(path);
  database.exec("UPDATE agents SET record = '{' WHERE agent_id = 'broken'");
  database.close();
  const again = sqliteStores(path);
  expect(await again.unattended(TENANT, query, NOW + LEASE_MS + 1)).toEqual([{ tenant: TENANT, agentId: ROOT }]);
  await again.close();
});

test("unattended agents are found by indexes, however many agents there are", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  await openTurn(stores);
  await stores.close();
  const database = new DatabaseSync(path);
  for (const [name, sql] of Object.entries(candidateQueries)) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    const steps = plan.map((row) => String(row["detail"]));
    expect(steps, name).toEqual([expect.stringMatching(/^SEARCH .* USING .*(INDEX|PRIMARY KEY)/)]);
  }
  database.close();
});
