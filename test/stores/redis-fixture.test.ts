import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { UnsupportedError } from "../../src/errors/index.ts";
import { migrations } from "../../src/stores/redis/migrations/index.ts";
import { continueTeam, endedTurns, fixtureEntryTypes, openInputs } from "../support/fixture-team.ts";
import { dumpOf, restoreDump } from "../support/redis-dump.ts";
import { redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";

const folder = new URL("../fixtures/", import.meta.url);
/** One fixture of each version. */
const fixtures = readdirSync(folder).map((version) => `${version}/redis.jsonl`);
const tenant = "default";
const present = migrations.at(-1)?.number ?? 0;

describe.skipIf(!redisProgram)("data that an earlier version has stored in Redis (F33)", () => {
  const redis = redisOfSuite();

  /** The prefix of a loaded fixture. */
  async function restored(name: string, change = (dump: string): string => dump): Promise<string> {
    const prefix = ownPrefix();
    await restoreDump(redis.client, prefix, change(readFileSync(new URL(name, folder), "utf8")));
    return prefix;
  }

  test.each(fixtures)("%s is read completely", async (name) => {
    const prefix = await restored(name);
    const stores = storesOn(redis.server, { prefix });
    onTestFinished(() => stores.close());
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
    expect(await redis.client.get(`${prefix}{processes}:layout`)).toContain(`"number":${present},`);
  });

  test.each(fixtures)("the open turns of %s continue to their ends", async (name) => {
    const stores = storesOn(redis.server, { prefix: await restored(name) });
    const { runtime, results } = await continueTeam(stores);
    onTestFinished(() => runtime.shutdown());
    expect(results.map(({ status }) => status)).toEqual(Object.keys(openInputs).map(() => "completed"));
  });

  test("a newer layout is refused with the version that reads it, and nothing is changed", async () => {
    const later = { number: present + 1, troupe: "9.1.0" };
    const [name = ""] = fixtures.toSorted();
    const prefix = await restored(name, (dump) =>
      dump.replace(/(\{processes\}:layout","string":).*/, (_, start: string) => {
        return `${start}${JSON.stringify(JSON.stringify(later))}}`;
      }),
    );
    const before = await dumpOf(redis.client, prefix);
    const stores = storesOn(redis.server, { prefix });
    onTestFinished(() => stores.close());
    const read = stores.readAgent({ tenant, agentId: "clerk" });
    await expect(read).rejects.toThrow(UnsupportedError);
    await expect(read).rejects.toThrow("use troupe 9.1.0 or later");
    expect(await dumpOf(redis.client, prefix)).toBe(before);
  });
});
