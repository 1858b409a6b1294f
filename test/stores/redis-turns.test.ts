import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import type { TurnRecord } from "../../src/state/index.ts";
import { formatTurnCursor, type Stores, type TurnFilter } from "../../src/stores/index.ts";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { turnEnded } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { identityOf, agentKey, Owner, ready } from "../contracts/stores-fixtures.ts";
import { commandsOf } from "../support/redis-counts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

const command = { input: "go", actorId: null, limits: null, ifBusy: "refuse" } as const;

async function end(owner: Owner, at: number): Promise<void> {
  const turnId = `${owner.key.agentId}#1`;
  await owner.commit({ entries: [turnEnded({ turnId })], closedTurnId: turnId }, NOW + at);
}

describe.skipIf(!redisProgram)("lists of turns", () => {
  const redis = redisOfSuite();
  let prefix: string;
  let stores: Stores;
  beforeEach(() => {
    prefix = ownPrefix();
    stores = storesOn(redis.server, { prefix });
  });
  afterEach(() => stores.close());

  /** From here on the lists are written before and next to the trees, as in a cluster: INFO is refused, so the mode is unknown. */
  async function takeApart(): Promise<void> {
    vi.spyOn(process, "emitWarning").mockReturnValue();
    vi.spyOn(console, "warn").mockReturnValue();
    onTestFinished(() => void vi.restoreAllMocks());
    await stores.close();
    await redis.client.call("ACL", "SETUSER", "apart", "on", ">right", "~*", "&*", "+@all", "-info");
    const url = redis.server.url.replace("//", "//apart:right@");
    stores = storesOn(redis.server, { prefix, url });
  }

  async function opened(agentId: string, at: number): Promise<Owner> {
    await stores.createAgent(identityOf(agentId, { ownerId: "ann" }), null);
    const owner = await new Owner(stores, agentKey(agentId)).acquire();
    await owner.commit({ owned: ready });
    await stores.openTurn(agentKey(agentId), command, NOW + at);
    return owner;
  }

  const idsOf = async (filter: Omit<TurnFilter, "tenant">): Promise<string[]> =>
    (await stores.turns({ tenant: TENANT, ...filter })).map(({ turnId }) => turnId);

  const page = (after?: TurnRecord) =>
    stores.turns({ tenant: TENANT, ownerId: "ann", limit: 5, after: after && formatTurnCursor(after) });

  const index = (name: "turns" | "unfinished", agentId: string, ...of: string[]) => {
    const keys = new RedisKeys(prefix);
    return keys.index(name, keys.treeOf(TENANT, agentId).partition, TENANT, ...of);
  };

  test("are repaired on reading if a crash left an entry at an old position", async () => {
    const [a] = [await opened("a", 1), await opened("b", 2)];
    await end(a, 5);
    expect(await idsOf({ ownerId: "ann" })).toEqual(["a#1", "b#1"]);
    const { list } = index("turns", "a", "owner", "ann");
    await redis.client.zadd(list, -(NOW + 1), "a#1");
    expect(await idsOf({ ownerId: "ann" })).toEqual(["a#1", "b#1"]);
    expect(await redis.client.zscore(list, "a#1")).toBe(String(-(NOW + 5)));
    await redis.client.zadd(list, -(NOW + 9), "gone#4");
    expect(await idsOf({ ownerId: "ann", limit: 1 })).toEqual(["a#1"]);
  });

  test("of unfinished turns drop a turn when it ends", async () => {
    await end(await opened("a", 1), 5);
    expect(await redis.client.zrange(index("unfinished", "a").list, "0", "-1")).toEqual([]);
  });

  test.each([
    ["with the trees", async () => undefined],
    ["apart from the trees", takeApart],
  ])("that cannot be written, %s, block changes of a turn: nothing is half-written", async (_, prepare) => {
    await prepare();
    const a = await opened("a", 1);
    const { list } = index("turns", "a");
    await redis.client.del(list);
    await redis.client.set(list, "no list");
    await expect(end(a, 5)).rejects.toThrow(CorruptRecordError);
    await redis.client.del(list);
    await end(a, 6);
    expect(await stores.readJournal(a.key, 1)).toHaveLength(1);
    await stores.openTurn(a.key, command, NOW + 7);
    expect(await idsOf({ ownerId: "ann" })).toEqual(["a#2", "a#1"]);
  });

  test("of unfinished turns, written apart from the trees, drop ended turns", async () => {
    await takeApart();
    const [a, b] = [await opened("a", 1), await opened("b", 2)];
    await end(a, 5);
    await end(b, 6);
    expect(await idsOf({ status: "open" })).toEqual([]);
    for (const agentId of ["a", "b"]) {
      expect(await redis.client.zrange(index("unfinished", agentId).list, "0", "-1")).toEqual([]);
    }
    await stores.openTurn(b.key, command, NOW + 7);
    expect(await idsOf({ status: "open" })).toEqual(["b#2"]);
  });

  test("have a cost per page, independent of the number of turns", async () => {
    for (let number = 0; number < 40; number += 1) await opened(`t${number}`, number);
    const few = await commandsOf(redis.client, async () => void (await page()));
    for (let number = 40; number < 200; number += 1) await opened(`t${number}`, number);
    const first = await page();
    expect(first.map(({ turnId }) => turnId)).toEqual([199, 198, 197, 196, 195].map((number) => `t${number}#1`));
    const many = await commandsOf(redis.client, async () => void (await page(first.at(-1))));
    expect(many).toBeLessThanOrEqual(few + 16);
  });
});
