import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { repositoryRoot } from "../scripts/run-command.ts";
import { every, rows } from "./support/full.ts";
import { runOffline } from "./support/programs.ts";
import { PostgresServer, postgresProgram } from "./support/postgres-server.ts";
import { RedisServer, redisProgram } from "./support/redis-server.ts";

const folder = join(repositoryRoot, "examples");
const examples = existsSync(folder)
  ? readdirSync(folder)
      .filter((name) => name.endsWith(".ts"))
      .sort()
  : [];
const directory = mkdtempSync(join(tmpdir(), "troupe-examples-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("examples are numbered from 01 without a gap", () => {
  const numbers = examples.map(
    (name) => /^(\d\d)-[a-z0-9-]+\.ts$/.exec(name)?.[1] ?? `${name} is not named NN-name.ts`,
  );
  expect(numbers).toEqual(examples.map((_, index) => String(index + 1).padStart(2, "0")));
});

test.each(rows(examples, every(6)))("%s runs offline, ends by itself and prints something", async (name) => {
  const result = await runOffline("node", [join(folder, name)], directory);
  expect(result.ok, `examples/${name}\n${result.output}`).toBe(true);
  expect(result.stdout.trim()).not.toBe("");
});

test.skipIf(!redisProgram)("what goes over Redis in an example does so where there is one", async () => {
  const server = await RedisServer.start();
  try {
    const program = `REDIS_URL=${server.url} exec node "$0"`;
    const result = await runOffline("bash", ["-c", program, join(folder, "14-slow-browser-tool.ts")], directory);
    expect(result.ok, result.output).toBe(true);
    expect(result.stdout).toMatch(/^Seen: Allotment society; .*\nAt most 2 pages were open at a time\.\n$/m);
    const client = server.client();
    expect(await client.keys("*example-14:queue:browser*")).not.toEqual([]);
    client.disconnect();
  } finally {
    await server.stop();
  }
});

test.skipIf(!redisProgram || !postgresProgram)("the same with agents in Postgres, beside queues in Redis", async () => {
  const [redis, postgres] = await Promise.all([RedisServer.start(), PostgresServer.start()]);
  try {
    const program = `REDIS_URL=${redis.url} POSTGRES_URL=${postgres.url} exec node "$0"`;
    const result = await runOffline("bash", ["-c", program, join(folder, "14-slow-browser-tool.ts")], directory);
    expect(result.ok, result.output).toBe(true);
    expect(result.stdout).toMatch(/^Seen: Allotment society; .*\nAt most 2 pages were open at a time\.\n$/m);
    const client = redis.client();
    expect(await client.keys("*example-14:queue:browser*")).not.toEqual([]);
    expect(await client.keys("example-14:{*")).toEqual([]);
    client.disconnect();
    expect(await postgres.query("SELECT name, status FROM example_14.team")).toMatchObject([{ name: "scout" }]);
  } finally {
    await redis.stop();
    await postgres.stop();
  }
});

test("an example that reaches for the network fails and says so", async () => {
  const program = `await fetch("http://model.invalid/v1").catch((error) => { throw error.cause; });`;
  const result = await runOffline("node", ["--input-type=module", "--eval", program], directory);
  expect(result.ok).toBe(false);
  expect(result.output).toContain("This program must run offline, but it connects to model.invalid.");
});
