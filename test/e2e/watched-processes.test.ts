// Processes that work, watched by `troupe inspect`, whose feed this process reads.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { FeedMessage } from "../../src/inspector/feed/wire.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { type Connection, connect, get } from "../inspector/http-client.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { storesOn } from "../support/redis-stores.ts";
import { allotment, answer, type CliProcess, eventOf, question, startCli, workFolder } from "./cli-process.ts";
import { WorkPlace } from "./work-folder.ts";

const timeout = 120_000;

interface Served {
  readonly origin: string;
  readonly tokens: { readonly watch: string; readonly act: undefined };
}

/** The URL that `troupe inspect --read-only` prints. */
async function servedBy(process: CliProcess): Promise<Served> {
  const line = await process.line((text) => text.startsWith("Inspect "));
  const { origin, hash } = new URL(line.slice(line.indexOf("http")));
  return { origin, tokens: { watch: hash.slice("#token=".length), act: undefined } };
}

function watching(served: Served, run: string): Promise<Connection> {
  const nothing = { url: "", watchUrl: "", close: async () => {} };
  return connect({ ...nothing, ...served }, { run, credit: 20 });
}

function endsRun(message: FeedMessage): boolean {
  if (message.type !== "rows") return false;
  const ofRoot = message.rows.filter(({ agentId }) => !agentId.includes("~"));
  return ofRoot.some(({ entries }) => entries.some(({ type }) => type === "turn.ended"));
}

/** All stored rows arrived, each once, in order. Some may be stored after the end of the turn. */
async function expectAll(connection: Connection, stores: Stores, run: string): Promise<void> {
  const stored = (await stores.readTree("default", run, 0, 100_000)).map(({ cursor }) => cursor);
  const came = (): number[] => connection.rows.map(({ cursor }) => cursor);
  await connection.until((message) => message.type === "rows" && message.head >= (stored.at(-1) ?? 0));
  expect(came()).toEqual(stored);
  expect(new Set(connection.rows.map(({ agentId }) => agentId)).size).toBeGreaterThan(1);
}

function textsIn({ messages }: Connection): number {
  return messages.filter((message) => message.type === "live" && message.event.type.startsWith("text.")).length;
}

test("two processes that write one SQLite file: a third shows both, each text with its commit", {
  timeout,
}, async () => {
  const folder = workFolder(allotment);
  const ask = ["ask", "--files", "notes", "--question", question, "--json"];
  const jobs = [1, 2].map(() => startCli(folder.path, ask, { TROUPE_OFFLINE_SPEED: "20" }));
  const runs = await Promise.all(
    jobs.map(
      async (job) => eventOf(await job.line((text) => text.includes('"type":"turn.started"')))?.rootAgentId ?? "",
    ),
  );
  expect(new Set(runs).size).toBe(2);
  const inspector = startCli(folder.path, ["inspect", "--read-only"]);
  const served = await servedBy(inspector);
  const connections = await Promise.all(runs.map((run) => watching(served, run)));
  await Promise.all(connections.map((connection) => connection.until(endsRun)));
  for (const job of jobs) expect((await job.ended).code).toBe(0);
  const file = join(folder.path, ".troupe", "ask.db");
  expect(existsSync(file)).toBe(true);
  const stores = sqliteStores(file);
  for (const [index, connection] of connections.entries()) {
    await expectAll(connection, stores, runs[index] ?? "");
    expect(textsIn(connection)).toBe(0);
    connection.socket.terminate();
  }
  const { items } = await get<{ items: { runId: string; status: string }[] }>(
    { ...served, url: "", watchUrl: "", close: async () => {} },
    "/api/runs",
  );
  expect(items.map(({ runId }) => runId).toSorted()).toEqual(runs.toSorted());
  await stores.close();
  inspector.signal("SIGINT");
  expect((await inspector.ended).code).toBe(0);
  folder.remove();
});

describe.skipIf(!redisProgram)("three workers on one Redis", () => {
  let server: RedisServer | undefined;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server?.stop());

  test("are watched by a process that runs no agents: all rows, and the text as it is written", {
    timeout,
  }, async () => {
    if (!server) throw new Error("redis-server is not available; the test should have been skipped");
    const place = new WorkPlace(server, allotment);
    try {
      const team = ["--ask", "--files", "notes", "--model", "offline"];
      const workers = await Promise.all([1, 2, 3].map(() => place.worker(team, { TROUPE_OFFLINE_SPEED: "20" })));
      // It starts before the runs: on a busy machine they might otherwise be over before it has started.
      const served = await servedBy(place.start(["inspect", "--read-only"]));
      const words = ["ask", "--files", "notes", "--question", question, "--model", "offline", "--json"];
      const clients = [1, 2].map(() => place.start(words));
      const runs = await Promise.all(
        clients.map(
          async (client) =>
            eventOf(await client.line((text) => text.includes('"type":"turn.started"')))?.rootAgentId ?? "",
        ),
      );
      const connections = await Promise.all(runs.map((run) => watching(served, run)));
      const asked = { ...served, url: "", watchUrl: "", close: async () => {} };
      let isOver = false;
      const ends = connections.map((connection) => connection.until(endsRun));
      const over = Promise.all(ends).finally(() => (isOver = true));
      // At times all agents of the run may wait, and have no owner.
      const owned = new Set<string>();
      while (!isOver) {
        const { items } = await get<{ items: { agentId: string }[] }>(asked, `/api/runs/${runs[0]}/owners`);
        for (const { agentId } of items) owned.add(agentId);
      }
      await over;
      for (const client of clients) expect((await client.ended).stdout).toMatch(answer);
      const stores = storesOn(server, { prefix: place.prefix });
      for (const [index, connection] of connections.entries()) {
        await expectAll(connection, stores, runs[index] ?? "");
        connection.socket.terminate();
      }
      await stores.close();
      expect(connections.map(textsIn).every((count) => count > 0)).toBe(true);
      expect([...owned].every((agentId) => agentId.startsWith(runs[0] ?? ""))).toBe(true);
      expect(owned.size).toBeGreaterThan(0);
      expect(workers).toHaveLength(3);
    } finally {
      await place.close();
    }
  });
});
