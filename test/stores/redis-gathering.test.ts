import { describe, expect, it } from "vitest";
import { sendCommand } from "../../src/redis/index.ts";
import type { ForeignWrite } from "../../src/stores/rules/foreign-writes.ts";
import { RedisConnection } from "../../src/stores/redis/redis-connection.ts";
import { Gathering, type Send } from "../../src/stores/redis/redis-gathering.ts";
import { script } from "../../src/stores/redis/redis-scripts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { NOW } from "../contracts/names.ts";
import { keyOf, openAgent } from "../contracts/stores-fixtures.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";

/** Writes its argument into its key, and gives what it found there. Fails where the key is no text. */
const swap = script("swap", `local was = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return {was}`);

function gathering(redis: ReturnType<typeof redisOfSuite>) {
  const sent: number[] = [];
  const send: Send = async ({ text }, keys, args) => {
    const all = keys.flat();
    sent.push(all.length);
    return redis.client.eval(text, all.length, ...all, ...args(0).flat());
  };
  const calls = new Gathering(swap, send, (error) => Promise.reject(error));
  return { calls, sent };
}

describe.skipIf(!redisProgram)("calls of one moment", () => {
  const redis = redisOfSuite();

  it("are one command, are made in their order, and get their own answers", async () => {
    const { calls, sent } = gathering(redis);
    const [one, other] = [ownPrefix(), ownPrefix()];
    const answers = [one, other, one].map((key, at) => calls.call([key], () => [`${at}`]));
    expect(await Promise.all(answers)).toEqual([[null], [null], ["0"]]);
    expect(sent).toEqual([3]);
    expect(await calls.call([other], () => ["last"])).toEqual(["1"]);
    expect(sent).toEqual([3, 1]);
  });

  it("do not share an error", async () => {
    const { calls } = gathering(redis);
    const [good, bad, after] = [ownPrefix(), ownPrefix(), ownPrefix()];
    await redis.client.hset(bad, "a", "b");
    const answers = await Promise.allSettled([good, bad, after].map((key) => calls.call([key], () => ["x"])));
    expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(answers[1]).toMatchObject({ reason: { name: "ReplyError", message: expect.stringContaining("WRONGTYPE") } });
    expect(await redis.client.hget(bad, "a")).toBe("b");
  });

  it("that are large are sent alone, and no command has more than eight", async () => {
    const { calls, sent } = gathering(redis);
    const large = calls.call([ownPrefix()], () => Array.from({ length: 1_000 }, () => "x"));
    const few = Array.from({ length: 9 }, () => calls.call([ownPrefix()], () => ["x"]));
    await Promise.all([large, ...few]);
    expect(sent).toEqual([1, 8, 1]);
  });

  it("keep their order, whether they are large or not", async () => {
    const { calls, sent } = gathering(redis);
    const key = ownPrefix();
    const large = Array.from({ length: 1_000 }, () => "large");
    const answers = [["one"], large, ["other"], ["last"]].map((texts) => calls.call([key], () => texts));
    expect(await Promise.all(answers)).toEqual([[null], ["one"], ["large"], ["other"]]);
    expect(sent).toEqual([1, 1, 2]);
  });

  it("are told to others with one message, which names all that was written", async () => {
    const prefix = ownPrefix();
    const [stores, others] = [storesOn(redis.server, { prefix }), storesOn(redis.server, { prefix })];
    const agentIds = ["ann", "bea", "cleo"];
    for (const agentId of agentIds) {
      await openAgent(stores, { agentId });
      // What a pause reads is known from here on: one that has to read is not of the same moment.
      await stores.pause(keyOf(agentId), "ann", NOW);
      await stores.resume(keyOf(agentId), "ann", NOW);
    }
    const ear = redis.server.client();
    const messages: string[] = [];
    ear.on("message", (_channel, message) => messages.push(message));
    await ear.subscribe(`${prefix}writes`);
    const heard: ForeignWrite[] = [];
    const all = Promise.withResolvers<void>();
    const isSubscribed = Promise.withResolvers<void>();
    others.onForeignWrite((writes) => {
      // The first call says that it listens.
      if (writes === "any") return isSubscribed.resolve();
      heard.push(...writes.all);
      if (heard.length === agentIds.length) all.resolve();
    });
    await isSubscribed.promise;
    await Promise.all(agentIds.map((agentId) => stores.pause(keyOf(agentId), "ann", NOW)));
    await all.promise;
    expect(heard.map(({ rootAgentId }) => rootAgentId)).toEqual(agentIds);
    expect(heard.map(({ posted, records }) => [posted, records])).toEqual(agentIds.map((id) => [[id], [id]]));
    // One, unless the machine is so busy that what belongs to one moment does not come together.
    expect(messages.length).toBeLessThan(agentIds.length);
    ear.disconnect();
    await stores.close();
    await others.close();
  });

  it("say the same over a client of this package and over one of another copy of it", async () => {
    const lists = [["return ARGV", 0], ["", "ä€😀", 7, "x".repeat(3_000)], ["two\r\nlines"]] as const;
    const own = new RedisConnection({ place: { url: redis.server.url }, prefix: "", timeoutMs: 5_000, ttl: undefined });
    const written = await own.run((client) => sendCommand(client, "eval", lists));
    expect(written).toEqual(["", "ä€😀", "7", "x".repeat(3_000), "two\r\nlines"]);
    // The suite's client was not made by this package, which so knows nothing of its commands.
    expect(await sendCommand(redis.client, "eval", lists)).toEqual(written);
    await own.close();
  });
});
