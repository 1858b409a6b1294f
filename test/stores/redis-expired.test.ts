// Lists over trees drop expired trees, even if no process reads the lists.
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { RedisConnection } from "../../src/stores/redis/redis-connection.ts";
import { RedisExpired } from "../../src/stores/redis/redis-expired.ts";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";

describe.skipIf(!redisProgram)("trees that have expired", () => {
  const redis = redisOfSuite();
  let prefix: string;
  let expired: RedisExpired;
  let connection: RedisConnection;
  beforeEach(() => {
    prefix = ownPrefix();
    connection = new RedisConnection({ place: { url: redis.server.url }, prefix, timeoutMs: 5_000, ttl: undefined });
    expired = new RedisExpired(connection, new RedisKeys(prefix));
  });
  afterEach(async () => {
    await expired.close();
    await connection.close();
  });

  const keysOf = (pattern: string): Promise<string[]> => redis.client.keys(`${prefix}${pattern}`);

  /** The number of entries in each index over trees. */
  async function listed(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const key of await keysOf("{hints-*")) {
      const name = key.replace(/^.*\}:/, "").replace(/:.*/, "");
      if ((await redis.client.type(key)) === "zset")
        counts[name] = (counts[name] ?? 0) + (await redis.client.zcard(key));
    }
    return counts;
  }

  /** Simulates that the time to live, and the time in which entries count as recent, have passed. */
  async function pass(tags: readonly string[]): Promise<void> {
    for (const tag of tags) {
      const keys = await keysOf(`{${tag}}*`);
      if (keys.length > 0) await redis.client.del(...keys);
    }
    for (const key of await keysOf("{hints-*-told:*")) {
      for (const member of await redis.client.hkeys(key)) await redis.client.hset(key, member, "1");
    }
    await due();
  }

  async function due(): Promise<string[]> {
    const key = `${prefix}{processes}:expired`;
    const tags = await redis.client.zrange(key, "0", "-1");
    for (const tag of tags) await redis.client.zadd(key, "1", tag);
    return tags;
  }

  /** Trees with an entry in every list: subagents, owners, sessions, requests, open and ended turns, timers. */
  async function plant(count: number): Promise<void> {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: '{"type":"object"}',
      effect: "once",
      needsApproval: true,
      execute: () => "paid",
    });
    const helper = defineAgent({ name: "helper", model: scriptedModel(() => "helped") });
    const model = scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").length;
      if (results === 0) return calling({ name: "helper", arguments: { input: "x" } });
      return results === 1 ? calling("pay") : "done";
    });
    const clerk = defineAgent({ name: "clerk", model, tools: [pay, subagent(helper)] });
    const stores = storesOn(redis.server, { prefix, ttl: 1 });
    const runtime = await createRuntime({ agents: [clerk], stores });
    onTestFinished(() => runtime.shutdown());
    for (let number = 0; number < count; number += 1) {
      const budget = { deadline: Date.now() + 3_600_000 };
      const agent = await runtime.agent("clerk", {
        agentId: `desk-${number}`,
        ownerId: "ann",
        sessionId: "s1",
        budget,
      });
      await agent.start();
      const turn = agent.executeTurn("go");
      await turn.settled;
      const [request] = await agent.requests();
      await agent.decide(request?.requestId ?? "", { verdict: "approved" });
      await turn.result;
      await agent.shutdown();
    }
    await runtime.shutdown();
  }

  test("leave no entry in any list, even if the process that created them is gone", async () => {
    await plant(3);
    const before = await listed();
    expect(Object.keys(before)).toEqual(
      expect.arrayContaining(["agents", "roots", "newest", "owner", "session", "requests", "turns", "timers"]),
    );
    expect((await due()).toSorted()).toEqual(["default/desk-0", "default/desk-1", "default/desk-2"]);
    await pass(["default/desk-0", "default/desk-1", "default/desk-2"]);
    expect(await expired.forget()).toBe(3);
    expect(await listed()).toEqual({});
    expect(await keysOf("{processes}:expired*")).toEqual([]);
    expect(await expired.forget()).toBe(0);
  });

  test("are kept in the lists while they exist or their entries are recent", async () => {
    await plant(2);
    const before = await listed();
    // The trees are complete, because they were changed before they expired.
    await due();
    await redis.client.del(...(await keysOf("{default/desk-1}*")));
    expect(await expired.forget()).toBe(2);
    expect(await listed()).toMatchObject({
      agents: before["agents"],
      owner: before["owner"],
      requests: before["requests"],
    });
  });

  test("that are created again under the same id keep their new entries", async () => {
    await plant(1);
    await pass(["default/desk-0"]);
    const stores = storesOn(redis.server, { prefix });
    onTestFinished(() => stores.close());
    const clerk = defineAgent({ name: "clerk", model: scriptedModel(() => "again") });
    const runtime = await createRuntime({ agents: [clerk], stores });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent("clerk", { agentId: "desk-0", ownerId: "ann" });
    await agent.start();
    await agent.executeTurn("go").result;
    expect(await expired.forget()).toBe(1);
    expect(await runtime.list({ ownerId: "ann" })).toHaveLength(1);
    expect(await runtime.turns({ ownerId: "ann" })).toHaveLength(1);
  });

  test("are removed a hundred at a time", async () => {
    const { due: key } = new RedisKeys(prefix).expired();
    for (let number = 0; number < 130; number += 1) await redis.client.zadd(key, "1", `default/gone-${number}`);
    expect(await expired.forget()).toBe(100);
    expect(await expired.forget()).toBe(30);
    expect(await redis.client.zcard(key)).toBe(0);
  });
});
