// The days of schedules with two processes of the operating system, which are killed at fault points and from outside.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { randomCases } from "../support/full.ts";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { type PlayedDays, playDays } from "../support/schedule-days.ts";
import { assertDays } from "../support/schedule-days-checks.ts";
import { ProcessDeployment } from "../support/schedule-days-processes.ts";

const days = randomCases(20, 20);
const options = { days, seed: Number(process.env["TROUPE_SEED"] ?? 42), deathRate: 0.1, awakeRate: 0 };
const title = `each time of ${days} days opens one turn over two processes that are killed`;

async function played(deployment: ProcessDeployment): Promise<PlayedDays> {
  try {
    return await playDays(deployment, options);
  } finally {
    await deployment.close();
  }
}

test(`${title}, on SQLite`, { timeout: 7_200_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-days-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "troupe.db");
  const found = await played(await ProcessDeployment.create(sqliteStores(file), [file]));
  assertDays(found);
  expect(found.deaths).toBeGreaterThan(days / 20);
});

test.skipIf(!redisProgram)(`${title}, on Redis`, { timeout: 7_200_000 }, async () => {
  const server = await RedisServer.start();
  onTestFinished(() => server.stop());
  const prefix = "days:";
  const stores = redisStores({ url: server.url, prefix });
  const found = await played(await ProcessDeployment.create(stores, [server.url, prefix]));
  assertDays(found);
  expect(found.deaths).toBeGreaterThan(days / 20);
});
