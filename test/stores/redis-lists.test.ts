import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { NewAccount } from "../../src/budget/index.ts";
import type { AgentIdentity, AgentRecord } from "../../src/state/index.ts";
import type { AgentFilter, Stores } from "../../src/stores/index.ts";
import { RedisKeys } from "../../src/stores/redis/redis-keys.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { approved, opening, requestOf } from "../contracts/request-fixtures.ts";
import { accountOf, identityOf, agentKey, type Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { amount } from "../support/full.ts";
import { commandsOf } from "../support/redis-counts.ts";
import { redisProgram } from "../support/redis-server.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

function changes(index: number): Partial<AgentIdentity> {
  // Opened after its deadline, so there is no earlier warning.
  return { sessionId: index % 30 === 0 ? "s1" : null, ownerId: "ann", createdAt: NOW + 10_000 };
}

function account(agentId: string, deadline: number): NewAccount {
  return accountOf(`agent:${agentId}`, { deadline }, { agentId });
}

describe.skipIf(!redisProgram)("lists over trees", () => {
  const redis = redisOfSuite();
  let prefix: string;
  let stores: Stores;
  beforeEach(() => {
    prefix = ownPrefix();
    stores = storesOn(redis.server, { prefix });
  });
  afterEach(() => stores.close());

  const trees = amount(3_000, 1_200);

  test(`are paged over ${trees} trees, in order, with nothing twice and nothing left out`, async () => {
    const ids = Array.from({ length: trees }, (_, index) => `tree-${(index * 7919) % trees}`);
    for (let at = 0; at < ids.length; at += 100) {
      const some = ids.slice(at, at + 100);
      await Promise.all(
        some.map((id, index) =>
          stores.createAgent(identityOf(id, changes(at + index)), account(id, NOW + at + index + 1)),
        ),
      );
    }
    const paged: string[] = [];
    for (let page: readonly { agentId: string }[] = []; paged.length === 0 || page.length > 0; ) {
      page = await stores.listAgents({ tenant: TENANT, limit: 250, after: paged.at(-1) });
      paged.push(...page.map(({ agentId }) => agentId));
    }
    expect(paged).toEqual(ids.toSorted());
    // The work for a page depends only on its length, with any number of trees and any filter.
    const page = async (filter: Partial<AgentFilter>, length: number): Promise<number> => {
      let found: readonly AgentRecord[] = [];
      const commands = await commandsOf(redis.client, async () => {
        found = await stores.listAgents({ tenant: TENANT, ...filter });
      });
      expect(found).toHaveLength(length);
      return commands;
    };
    expect(await page({ limit: 20 }, 20)).toBeLessThan(20 + 5);
    expect(await page({ limit: 20, rootsOnly: true, after: paged[trees / 2] }, 20)).toBeLessThan(20 + 5);
    expect(await page({ limit: 20, ownerId: "ann" }, 20)).toBeLessThan(20 + 5);
    expect(await page({ sessionId: "s1" }, trees / 30)).toBeLessThan(trees / 30 + 20);
    expect(await page({ sessionId: "nobody's" }, 0)).toBe(1);

    expect(await stores.nextTimerAt()).toBe(NOW + 1);
    expect((await stores.dueTimers(NOW + 1000, 5)).map((timer) => timer.dueAt)).toEqual(
      [1, 2, 3, 4, 5].map((n) => NOW + n),
    );
    expect(await stores.dueTimers(NOW + 1000, 5000)).toHaveLength(1000);
    expect(await commandsOf(redis.client, () => stores.nextTimerAt())).toBe(2);
    expect(await commandsOf(redis.client, () => stores.dueTimers(NOW, 1000))).toBe(1);
  });

  test("of open requests contain the open ones, in order, without decided ones", async () => {
    const owners: Owner[] = [];
    for (let index = 0; index < 40; index += 1) {
      const owner = await openAgent(stores, { agentId: `desk-${index}` });
      await owner.commit(opening({ ...requestOf(owner, 0), openedAt: NOW + (index % 20) }));
      owners.push(owner);
    }
    const open = await stores.requests({ tenant: TENANT, status: "open", limit: 15 });
    const rest = await stores.requests({ tenant: TENANT, status: "open", after: open.at(-1)?.requestId });
    const order = [...open, ...rest].map(({ openedAt, requestId }) => `${openedAt} ${requestId}`);
    expect(order).toEqual(order.toSorted());
    expect(new Set(order).size).toBe(40);
    for (const request of rest) await stores.decide(request, request.requestId, approved, NOW);
    expect(await stores.requests({ tenant: TENANT, status: "open" })).toEqual(open);
    expect(await stores.requests({ tenant: TENANT })).toHaveLength(40);
    expect(await stores.requests({ tenant: TENANT, status: "decided" })).toHaveLength(25);
  });

  test("that contain missing trees, or lack true entries, do no harm", async () => {
    await openAgent(stores);
    const names = new RedisKeys(prefix);
    for (let index = 0; index < 20; index += 1) {
      const id = `nobody-${index}`;
      const tree = names.treeOf(TENANT, id);
      await redis.client.zadd(names.index("agents", tree.partition, TENANT).list, 0, id);
      await redis.client.zadd(names.index("timers", tree.partition).list, NOW, tree.tag);
      await redis.client.zadd(
        names.index("open", tree.partition, TENANT).list,
        NOW,
        JSON.stringify([`${id}#1:1:0:1`, id]),
      );
    }
    expect((await stores.listAgents({ tenant: TENANT })).map(({ agentId }) => agentId)).toEqual([ROOT]);
    expect(await stores.requests({ tenant: TENANT, status: "open" })).toEqual([]);
    expect(await stores.nextTimerAt()).toBeUndefined();
    expect(await stores.dueTimers(NOW + 9, 10)).toEqual([]);
    await stores.close();
    // The `-told` lists do not contain the missing trees, so no process can be about to create them.
    const left = (await redis.client.keys(`${prefix}*hints*`)).map((key) => key.replace(/^.*\}:/, ""));
    expect(left.toSorted()).toEqual(
      ["agents", "holders", "newest", "posts", "roots"].flatMap((name) => [
        `${name}-told:${TENANT}`,
        `${name}:${TENANT}`,
      ]),
    );
  });

  test("a tree with a time to live expires as a whole after it came to rest, and not while it works", async () => {
    const brief = storesOn(redis.server, { prefix, ttl: 1 });
    const owner = await openAgent(brief);
    await owner.commit({ entries: [note("x")], messages: [messageOf("m1")] });
    const other = await openAgent(brief, { agentId: "other" });
    await owner.stores.release(agentKey(), owner.epoch, { as: "leaving" });
    // Closing immediately checks the trees that came to rest.
    await brief.close();
    const keys = async (name: string): Promise<string[]> => redis.client.keys(`${prefix}{${TENANT}/${name}}*`);
    const ttls = async (name: string): Promise<number[]> =>
      Promise.all((await keys(name)).map((key) => redis.client.pttl(key)));
    expect(await brief.close()).toBeUndefined();
    const ofTree = await keys(ROOT);
    const times = await Promise.all(ofTree.map((key) => redis.client.pexpiretime(key)));
    expect(new Set(times).size).toBe(1);
    expect(times[0]).toBeGreaterThan(0);
    expect((await ttls("other")).filter((ttl) => ttl >= 0 && ttl <= 1000)).toEqual([]);

    // After a write no key of the tree expires soon.
    await stores.pause(agentKey(), "ann", NOW);
    expect((await ttls(ROOT)).filter((ttl) => ttl >= 0 && ttl <= 1000)).toEqual([]);
    expect(await stores.messages(agentKey())).toEqual([messageOf("m1")]);
    expect(other.epoch).toBe(1);

    const last = storesOn(redis.server, { prefix, ttl: 1 });
    await last.resume(agentKey(), "ann", NOW);
    await last.close();
    while (await redis.client.exists(`${prefix}{${TENANT}/${ROOT}}:rows`)) await redis.client.ping();
    expect(await keys(ROOT)).toEqual([]);
    expect(await stores.readAgent(agentKey())).toBeUndefined();
    expect((await stores.listAgents({ tenant: TENANT })).map(({ agentId }) => agentId)).toEqual(["other"]);
    expect(await openAgent(stores)).toMatchObject({ epoch: 1 });
  });
});
