import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryStores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { describeLiveChannel, until } from "../contracts/stores-live.contract.ts";
import { inFull } from "../support/full.ts";
import { RedisCluster } from "../support/redis-cluster.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describeLiveChannel("memory", async () => {
  const stores = memoryStores();
  return { one: stores, other: stores };
});

describe("a file", () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-live-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  describeLiveChannel("SQLite, one stores object", async () => {
    const stores = sqliteStores(":memory:");
    return { one: stores, other: stores };
  });

  test("sends no live messages to another stores object", async () => {
    const path = join(folder, "shared.db");
    const [one, other] = [sqliteStores(path), sqliteStores(path)];
    const messages: string[] = [];
    const asked: string[] = [];
    one.live.onAsked("owner", (_tenant, root) => asked.push(root));
    other.live.follow({ tenant: "t", rootAgentId: "r", processId: "a" }, (message) => messages.push(message));
    one.live.send({ tenant: "t", rootAgentId: "r", processId: "owner" }, "x");
    expect(one.live.isFollowed({ tenant: "t", rootAgentId: "r", processId: "owner" })).toBe(false);
    await one.close();
    await other.close();
    expect([messages, asked]).toEqual([[], []]);
  });
});

describe.skipIf(!redisProgram)("Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  const open = () => {
    const prefix = ownPrefix();
    return { one: storesOn(server, { prefix }), other: storesOn(server, { prefix }) };
  };
  const here = { tenant: "t", rootAgentId: "root", processId: "owner" };
  const there = { ...here, processId: "a" };

  describeLiveChannel("Redis, two clients", async () => open());

  test("text that is not the tag of a tree is skipped, and the tags next to it are delivered", async () => {
    const prefix = ownPrefix();
    const stores = storesOn(server, { prefix });
    const asked: string[] = [];
    const end = stores.live.onAsked("owner", (tenant, root) => asked.push(`${tenant} ${root}`));
    const stranger = server.client();
    const publish = (): void => void stranger.publish(`${prefix}live`, "a ask % %E0/root /root t/ t t/root");
    await until(() => asked.length > 0, publish);
    expect(new Set(asked)).toEqual(new Set(["t root"]));
    expect(stores.live.isFollowed(here)).toBe(true);
    end();
    stranger.disconnect();
    await stores.close();
  });

  describeLiveChannel("Redis, one client", async () => {
    const { one } = open();
    return { one, other: one };
  });

  test.each(["the connection is cut", "Redis is restarted"])(
    "after %s a follower asks again and receives further messages",
    async (what) => {
      const { one, other } = open();
      const messages: string[] = [];
      let asked = 0;
      one.live.onAsked("owner", () => {
        asked += 1;
      });
      other.live.follow(there, (message) => messages.push(message));
      await until(() => asked > 0);
      const before = asked;
      const client = server.client();
      if (what.startsWith("the")) await client.call("CLIENT", "KILL", "TYPE", "pubsub");
      else {
        await server.kill();
        await server.launch();
      }
      await until(() => asked > before);
      await until(
        () => messages.length > 0,
        () => one.live.send(here, "again"),
      );
      expect(new Set(messages)).toEqual(new Set(["again"]));
      client.disconnect();
      await one.close();
      await other.close();
    },
  );

  test("while Redis is away no messages wait or pile up: unsent ones are dropped", async () => {
    const { one, other } = open();
    const messages: string[] = [];
    let asked = 0;
    one.live.onAsked("owner", () => {
      asked += 1;
    });
    other.live.follow(there, (message) => messages.push(message));
    await until(() => asked > 0);
    await server.kill();
    const start = performance.now();
    for (let count = 0; count < 10_000; count += 1) one.live.send(here, `lost ${count}`);
    expect(performance.now() - start).toBeLessThan(1_000);
    await server.launch();
    await until(
      () => messages.includes("back"),
      () => one.live.send(here, "back"),
    );
    expect(messages.filter((message) => message.startsWith("lost")).length).toBeLessThan(20);
    await one.close();
    await other.close();
  });

  test("one connection receives all messages for a process; it is closed with the last listener", async () => {
    const { one, other } = open();
    const client = server.client();
    const listeners = async (): Promise<number> =>
      String(await client.call("CLIENT", "LIST", "TYPE", "pubsub"))
        .split("\n")
        .filter((line) => line !== "").length;
    const before = await listeners();
    const followings = ["r1", "r2", "r3"].map((rootAgentId) =>
      other.live.follow({ ...there, rootAgentId }, () => undefined),
    );
    const end = one.live.onAsked("owner", () => undefined);
    one.onForeignWrite(() => undefined);
    await until(() => ["r1", "r2", "r3"].every((rootAgentId) => one.live.isFollowed({ ...here, rootAgentId })));
    expect(await listeners()).toBe(before + 2);
    for (const following of followings) following.end();
    end();
    let left = before + 2;
    while (left > before + 1) left = await listeners();
    await one.close();
    while (left > before) left = await listeners();
    client.disconnect();
    await other.close();
  });
});

inFull(() => {
  describe.skipIf(!redisProgram)("a cluster", () => {
    let cluster: RedisCluster;
    beforeAll(async () => {
      cluster = await RedisCluster.start();
    }, 60_000);
    afterAll(() => cluster.stop());

    describeLiveChannel("Redis cluster, two clients", async () => {
      const prefix = ownPrefix();
      return { one: storesOn(cluster, { prefix }), other: storesOn(cluster, { prefix }) };
    });
  });
});
