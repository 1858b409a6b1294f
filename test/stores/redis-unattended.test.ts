import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { RedisKeys, type TreeKeys } from "../../src/stores/redis/redis-keys.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "../contracts/names.ts";
import { openTurn } from "../contracts/queued-fixtures.ts";
import { elsewhere, here, identityOf, agentKey, LEASE_MS, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { openChild } from "../contracts/tree-fixtures.ts";
import { commandsOf, workOf } from "../support/redis-counts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

const LATE = NOW + LEASE_MS + 1;
const turn = { input: "go", actorId: null, limits: null, ifBusy: "queue" } as const;

describe.skipIf(!redisProgram)("agents without an owner in Redis", () => {
  const redis = redisOfSuite();
  let prefix: string;
  let stores: Stores;
  let names: RedisKeys;
  beforeEach(() => {
    prefix = ownPrefix();
    names = new RedisKeys(prefix);
    stores = storesOn(redis.server, { prefix });
  });
  afterEach(() => stores.close());

  const tree = (agentId: string): TreeKeys => names.treeOf(TENANT, agentId);
  const unattended = async (steady = LATE, from: Stores = stores): Promise<string[]> => {
    const keys = await from.unattended(TENANT, { processId: "asker", leaseMs: LEASE_MS }, steady);
    return keys.map(({ agentId }) => agentId);
  };
  const members = async (list: "posts" | "holders", agentId: string = ROOT): Promise<string[]> => {
    const { tag, partition } = tree(agentId);
    const all = await redis.client.zrange(names.index(list, partition, TENANT).list, "0", "-1");
    return all.filter((member) => member.endsWith(tag));
  };
  const forgetLists = async (): Promise<void> => {
    await redis.client.del(await redis.client.keys(`${prefix}{hints-*}:posts*`));
    await redis.client.del(await redis.client.keys(`${prefix}{hints-*}:holders*`));
  };
  /** Enough trees that one partial scan does not reach those created later. */
  const crowd = async (): Promise<void> => {
    for (let index = 0; index < 20; index += 1) await stores.createAgent(identityOf(`a${index}`), null);
  };

  test("are found by the lists alone among many other trees", async () => {
    await crowd();
    const root = await openTurn(stores, { agentId: ROOT });
    const kid = await openChild(root, "kid");
    await kid.commit({ entries: [note("works")] });
    await openAgent(stores, { agentId: "posted" });
    await stores.openTurn(agentKey("posted"), turn, NOW);
    expect(await unattended(NOW)).toEqual([]);
    expect((await unattended()).toSorted()).toEqual([ROOT, `${ROOT}~kid`, "posted"]);
    await stores.release(root.key, root.epoch, { as: "leaving" });
    expect(await unattended(NOW)).toEqual([ROOT]);
  });

  test("a tree without unattended agents is removed from the lists, and added again with the next item", async () => {
    await crowd();
    const owner = await openTurn(stores);
    expect(await members("posts")).toHaveLength(1);
    expect(await unattended(NOW)).toEqual([]);
    // The tree was changed since the last scan.
    expect(await members("posts")).toHaveLength(1);
    expect(await unattended(NOW)).toEqual([]);
    expect(await members("posts")).toEqual([]);
    // A living process holds it.
    expect(await members("holders")).toHaveLength(1);
    await stores.release(agentKey(), owner.epoch, { as: "parked" });
    await stores.openTurn(agentKey(), turn, NOW);
    await stores.pause(agentKey(), "ann", NOW);
    expect(await members("posts")).toHaveLength(1);
    expect(await unattended(NOW)).toEqual([ROOT]);
    expect(await members("posts")).toHaveLength(1);
  });

  test("a process is removed from the list of holders with its last lease of the tree", async () => {
    const root = await openAgent(stores);
    const kid = await openChild(root, "kid");
    await stores.release(root.key, root.epoch);
    expect(await members("holders")).toEqual([`here ${tree(ROOT).tag}`]);
    await new Owner(stores, root.key).acquire(elsewhere);
    expect(await members("holders")).toHaveLength(2);
    await stores.release(kid.key, kid.epoch);
    await stores.close();
    expect(await members("holders")).toEqual([`elsewhere ${tree(ROOT).tag}`]);
  });

  test("an idle agent of a dead process is scanned once, and found when an item arrives for it", async () => {
    await crowd();
    const owner = await openAgent(stores);
    expect(await unattended()).toEqual([]);
    expect(await members("holders")).toEqual([]);
    const again = await workOf(redis.client, () => unattended());
    expect(again.commands.filter((name) => name.startsWith("zrange")).length).toBeLessThanOrEqual(32);
    await stores.openTurn(agentKey(), turn, LATE);
    expect(await unattended()).toEqual([ROOT]);
    // The process was not dead, only slow.
    await stores.heartbeat(here.processId, LATE);
    const acknowledged = (await stores.inbox(agentKey())).map(({ key }) => key);
    await owner.commit({ entries: [note("begins")], acknowledged }, LATE);
    expect(await members("holders")).toHaveLength(1);
    expect(await unattended(LATE)).toEqual([]);
    expect(await unattended(LATE + LEASE_MS + 1)).toEqual([ROOT]);
  });

  test("lost lists are repaired by scanning all trees, a few at a time", async () => {
    await crowd();
    const owner = await openTurn(stores);
    await forgetLists();
    expect(await unattended()).toEqual([]);
    expect(await unattended()).toEqual([ROOT]);
    expect(await members("posts")).toHaveLength(1);
    // Another process finds it immediately from the list.
    const other = storesOn(redis.server, { prefix });
    expect(await unattended(LATE, other)).toEqual([ROOT]);
    await other.close();
    expect(owner.epoch).toBe(1);
  });

  test("a list with entries of missing trees is repaired, and hides nothing", async () => {
    await openTurn(stores);
    const nobody = tree("nobody");
    await redis.client.zadd(names.index("posts", nobody.partition, TENANT).list, 0, nobody.tag);
    await redis.client.zadd(names.index("holders", nobody.partition, TENANT).list, 0, `dead%20one ${nobody.tag}`);
    await redis.client.zadd(names.index("holders", tree(ROOT).partition, TENANT).list, 0, `gone ${tree(ROOT).tag}`);
    expect(await unattended(NOW)).toEqual([]);
    expect(await members("posts", "nobody")).toEqual([]);
    expect(await members("holders", "nobody")).toEqual([]);
    expect(await members("holders")).toEqual([`here ${tree(ROOT).tag}`]);
    expect(await redis.client.keys(`${prefix}{${nobody.tag}}*`)).toEqual([]);
    expect(await unattended()).toEqual([ROOT]);
  });

  test("a tree with an unreadable record does not hide other trees", async () => {
    await openTurn(stores, { agentId: "broken" });
    await openTurn(stores);
    await redis.client.hset(tree("broken").rows, "agent:broken", "7|{");
    expect(await unattended()).toEqual([ROOT]);
  });

  test("concurrent posts and scans lose no item", async () => {
    const other = storesOn(redis.server, { prefix });
    const owner = await openTurn(stores);
    await stores.release(agentKey(), owner.epoch, { as: "parked" });
    for (let round = 0; round < 40; round += 1) {
      const item = { kind: "pause", by: "ann" } as const;
      const [, , marked] = await Promise.all([
        unattended(NOW, other),
        unattended(NOW),
        round % 2 ? stores.resume(agentKey(), item.by, NOW) : stores.pause(agentKey(), item.by, NOW),
      ]);
      expect(marked).toMatchObject({ type: "marked", posted: [ROOT] });
      expect(await unattended(NOW, other)).toEqual([ROOT]);
      const next = await new Owner(stores, agentKey()).acquire();
      const acknowledged = (await stores.inbox(agentKey())).map(({ key }) => key);
      await next.commit({ entries: [note("took it")], acknowledged });
      await stores.release(agentKey(), next.epoch, { as: "parked" });
    }
    await other.close();
  });

  test("cost the posts and steps of a tree no command once it is listed", async () => {
    const owner = await openTurn(stores);
    const count = (): Promise<number> =>
      commandsOf(redis.client, () =>
        stores.abort(agentKey(), { turnId: TURN, by: "a", reason: "b", stopReason: "error" }, NOW),
      );
    expect(await count()).toBeLessThanOrEqual(2);
    expect(await commandsOf(redis.client, () => owner.commit({ entries: [note("x")] }))).toBe(1);
    expect(await commandsOf(redis.client, () => stores.pause(agentKey(), "ann", NOW))).toBe(1);
  });
});
