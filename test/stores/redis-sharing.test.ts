import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ForeignWrites } from "../../src/stores/index.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { noticesContract } from "../contracts/stores-notices.contract.ts";
import { sharingContract } from "../contracts/stores-sharing.contract.ts";
import { spawning } from "../contracts/tree-fixtures.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("Redis, shared", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  sharingContract("Redis", () => {
    const prefix = ownPrefix();
    return { mine: storesOn(server, { prefix }), theirs: storesOn(server, { prefix }) };
  });

  noticesContract(() => {
    const prefix = ownPrefix();
    return { mine: storesOn(server, { prefix }), theirs: storesOn(server, { prefix }) };
  });

  test("a pause of a tree and the concurrent creation of an agent below it do not wait for each other", async () => {
    const stores = storesOn(server, { prefix: ownPrefix(), timeoutMs: 2_000 });
    const root = await openAgent(stores);
    const { entry, order } = spawning(root, "kid");
    const [committed, paused] = await Promise.all([
      root.commit({ entries: [entry], spawns: [order] }),
      stores.pause(agentKey(), "ann", NOW),
    ]);
    expect(committed.entries).toHaveLength(1);
    expect(paused).toMatchObject({ posted: [ROOT, order.identity.agentId] });
    await stores.close();
  });

  test("the outcome of a process's last transaction is kept while it may be needed, and then removed", async () => {
    const prefix = ownPrefix();
    const client = server.client();
    const meta = `${prefix}{${TENANT}/${ROOT}}:meta`;
    const [first, second] = [storesOn(server, { prefix }), storesOn(server, { prefix })];
    await openAgent(first);
    const receipts = async (): Promise<string[]> =>
      (await client.hkeys(meta)).filter((name) => name.startsWith("receipt:")).toSorted();
    const [own = ""] = await receipts();
    const micros = Date.now() * 1000;
    await client.hset(meta, {
      "receipt:lately": `7 ${micros - 500_000_000} 3`,
      "receipt:long ago": `8 ${micros - 700_000_000} 3`,
    });
    await first.pause(agentKey(), "ann", NOW);
    expect(await receipts()).toEqual([own, "receipt:lately", "receipt:long ago"].toSorted());
    // Of a process without a receipt yet.
    await second.resume(agentKey(), "ann", NOW);
    const left = await receipts();
    expect(left).toHaveLength(3);
    expect(left).toEqual(expect.arrayContaining([own, "receipt:lately"]));
    client.disconnect();
    await first.close();
    await second.close();
  });

  test.each([
    ["no JSON", "any"],
    ["[3]", "any"],
    ["{}", "any"],
    [`["${TENANT}/${ROOT}",null,["desk"]]`, { posted: ["desk"], records: null, timerAt: null }],
    [`["${TENANT}/${ROOT}","soon",7,{}]`, { posted: null, records: null, timerAt: null }],
  ])("a notice from another version or program counts as a write of any kind: %s", async (text, what) => {
    const prefix = ownPrefix();
    const stores = storesOn(server, { prefix });
    const client = server.client();
    const heard: ForeignWrites[] = [];
    const again = Promise.withResolvers<void>();
    const isHeard = Promise.withResolvers<void>();
    stores.onForeignWrite((writes) => {
      heard.push(writes);
      isHeard.resolve();
      if (heard.length > 1) again.resolve();
    });
    await isHeard.promise;
    await client.publish(`${prefix}writes`, `somebody ${text}`);
    await again.promise;
    const last = heard.at(-1);
    const said = last === "any" ? last : last?.all;
    expect(said).toEqual(what === "any" ? "any" : [{ tenant: TENANT, rootAgentId: ROOT, ...(what as object) }]);
    client.disconnect();
    await stores.close();
  });
});
