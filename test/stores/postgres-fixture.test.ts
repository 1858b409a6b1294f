import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { migrations } from "../../src/stores/postgres/migrations/index.ts";
import { continueTeam, endedTurns, fixtureEntryTypes, openInputs } from "../support/fixture-team.ts";
import { restoreDump } from "../support/postgres-dump.ts";
import { postgresProgram } from "../support/postgres-server.ts";
import { ownSchema, postgresStoresOn } from "../support/postgres-stores.ts";
import { postgresOfSuite } from "../support/postgres-suite.ts";

const folder = new URL("../fixtures/", import.meta.url);
/** One fixture of each version. */
const fixtures = readdirSync(folder).map((version) => `${version}/postgres.jsonl.gz`);
const tenant = "default";

describe.skipIf(!postgresProgram)("data that an earlier version has stored in Postgres (F33)", () => {
  const postgres = postgresOfSuite();

  test.each(fixtures)("%s is read completely, and its open turns continue to their ends", async (name) => {
    const schema = ownSchema();
    await restoreDump(postgres.server, schema, gunzipSync(readFileSync(new URL(name, folder))).toString("utf8"));
    const stores = postgresStoresOn(postgres.server, { schema });
    const roots = [...Object.keys(endedTurns), ...Object.keys(openInputs)];
    const records = await Promise.all(roots.map((agentId) => stores.readAgent({ tenant, agentId })));
    expect(records.map((record) => record?.agentId)).toEqual(roots);
    const counts = records.map((record) => [record?.agentId, record?.turnCount]);
    expect(Object.fromEntries(counts)).toMatchObject(endedTurns);
    const types = new Set<string>();
    for (const rootAgentId of roots) {
      const rows = await stores.readTree(tenant, rootAgentId, 0, 10_000);
      for (const { entries } of rows) for (const { type } of entries) types.add(type);
    }
    expect(fixtureEntryTypes.filter((type) => !types.has(type))).toEqual([]);
    const layout = await postgres.server.query(`SELECT max(number) AS number FROM "${schema}".troupe_migrations`);
    expect(layout).toEqual([{ number: migrations.at(-1)?.number }]);
    const { runtime, results } = await continueTeam(stores);
    onTestFinished(() => runtime.shutdown());
    expect(results.map(({ status }) => status)).toEqual(Object.keys(openInputs).map(() => "completed"));
  });
});
