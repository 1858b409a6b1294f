import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { StoreUnavailableError, UnsupportedError } from "../../src/errors/index.ts";
import { type Migration, migrations } from "../../src/stores/redis/migrations/index.ts";
import { migrate } from "../../src/stores/redis/redis-layout.ts";
import { ROOT, TENANT } from "../contracts/names.ts";
import { openAgent } from "../contracts/stores-fixtures.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";

const present = migrations.at(-1)?.number ?? 0;

/** A migration step that appends its number to a list. */
const step = (number: number, before?: () => Promise<unknown>): Migration => ({
  number,
  troupe: `0.${number}.0`,
  apply: async (client, prefix) => {
    await before?.();
    await client.rpush(`${prefix}steps`, number);
  },
});

describe.skipIf(!redisProgram)("the layout of the keys under a prefix", () => {
  const redis = redisOfSuite();
  const layoutUnder = (prefix: string): Promise<string | null> => redis.client.get(`${prefix}{processes}:layout`);

  const stepsUnder = (prefix: string): Promise<string[]> => redis.client.lrange(`${prefix}steps`, 0, -1);

  test("has steps numbered from 1", () => {
    expect(migrations.map(({ number }) => number)).toEqual(migrations.map((_, at) => at + 1));
  });

  test("is stored at first use, and the rows are JSON with field names", async () => {
    const prefix = ownPrefix();
    const stores = storesOn(redis.server, { prefix });
    await openAgent(stores);
    await stores.close();
    expect(JSON.parse((await layoutUnder(prefix)) ?? "")).toEqual({ number: present, troupe: "0.1.0" });
    const row = await redis.client.hget(`${prefix}{${TENANT}/${ROOT}}:rows`, `agent:${ROOT}`);
    expect(JSON.parse(row?.replace(/^\d+\|/, "") ?? "")).toMatchObject({ agentId: ROOT, tenant: TENANT });
  });

  test("of a newer version is refused with that version, and nothing is changed", async () => {
    const prefix = ownPrefix();
    await redis.client.set(`${prefix}{processes}:layout`, '{"number":7,"troupe":"0.9.0","more":1}');
    const stores = storesOn(redis.server, { prefix });
    const refused = openAgent(stores);
    await expect(refused).rejects.toThrow(UnsupportedError);
    await expect(refused).rejects.toThrow(
      `the keys under "${prefix}" have layout 7, and this version of troupe reads layouts up to ${present}; use troupe 0.9.0 or later`,
    );
    await stores.close();
    expect(await redis.client.keys(`${prefix}*`)).toEqual([`${prefix}{processes}:layout`]);
  });

  test("without a number is refused", async () => {
    const prefix = ownPrefix();
    await redis.client.hset(`${prefix}{processes}:meta`, "v", "1700000000000000");
    const stores = storesOn(redis.server, { prefix });
    await expect(openAgent(stores)).rejects.toThrow("before its layouts were numbered");
    await stores.close();
  });

  test("is migrated step by step by one of the processes that start at the same time", async () => {
    const prefix = ownPrefix();
    const options = { prefix, timeoutMs: 20_000 };
    await migrate(redis.client, { ...options, steps: [step(1)] });
    const steps = [step(1), step(2, () => delay(50)), step(3)];
    await Promise.all(Array.from({ length: 5 }, () => migrate(redis.client, { ...options, steps })));
    expect(await stepsUnder(prefix)).toEqual(["1", "2", "3"]);
    expect(JSON.parse((await layoutUnder(prefix)) ?? "")).toEqual({ number: 3, troupe: "0.3.0" });
    await migrate(redis.client, { ...options, steps });
    expect(await stepsUnder(prefix)).toEqual(["1", "2", "3"]);
  });

  test("stays at the last completed step if a step fails, and the next process continues there", async () => {
    const prefix = ownPrefix();
    const options = { prefix, timeoutMs: 20_000 };
    const failing = [step(1), step(2, () => Promise.reject(new Error("no memory left"))), step(3)];
    await expect(migrate(redis.client, { ...options, steps: failing })).rejects.toThrow("no memory left");
    expect(await layoutUnder(prefix)).toContain('"number":1');
    await migrate(redis.client, { ...options, steps: [step(1), step(2), step(3)] });
    expect(await stepsUnder(prefix)).toEqual(["1", "2", "3"]);
  });

  test("is awaited no longer than the command timeout", async () => {
    const prefix = ownPrefix();
    const gate = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const waits = async (): Promise<void> => {
      begun.resolve();
      await gate.promise;
    };
    const first = migrate(redis.client, { prefix, timeoutMs: 20_000, steps: [step(1, waits)] });
    await begun.promise;
    const second = migrate(redis.client, { prefix, timeoutMs: 200, steps: [step(1)] });
    await expect(second).rejects.toThrow(StoreUnavailableError);
    gate.resolve();
    await first;
    expect(await stepsUnder(prefix)).toEqual(["1"]);
  });

  test("is stored again if all data was lost under a running process", async () => {
    const prefix = ownPrefix();
    const stores = storesOn(redis.server, { prefix });
    await openAgent(stores);
    await redis.client.del(await redis.client.keys(`${prefix}{processes}*`));
    await stores.heartbeat("here", 1_000);
    await stores.close();
    expect(await layoutUnder(prefix)).toContain(`"number":${present}`);
  });
});
