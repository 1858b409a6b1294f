import { describe, expect, it } from "vitest";
import { Gathering } from "../../src/stores/redis/redis-gathering.ts";
import { script } from "../../src/stores/redis/redis-scripts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";

/** Writes its argument into its key, and gives what it found there. Fails where the key is no text. */
const swap = script("swap", `local was = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return {was}`);

function gathering(redis: ReturnType<typeof redisOfSuite>) {
  const sent: number[] = [];
  const calls = new Gathering(swap, async ({ text }, keys, args) => {
    const all = keys.flat();
    sent.push(all.length);
    return redis.client.eval(text, all.length, ...all, ...args(0).flat());
  });
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
    expect(sent.toSorted((a, b) => a - b)).toEqual([1, 1, 8]);
  });
});
