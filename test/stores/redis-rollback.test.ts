import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { RolledBackTree, Stores } from "../../src/stores/index.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { here, identityOf, agentKey, LEASE_MS, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { cutLogs, cutPower, type LogSizes, logSizes } from "../support/redis-log.ts";
import { freePort, RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("a Redis that has lost what it had acknowledged", () => {
  let folder: string;
  let server: RedisServer;
  let stores: Stores;
  const opened: Stores[] = [];
  const prefix = ownPrefix();
  const warned = vi.spyOn(process, "emitWarning");
  const another = (options: { readonly ttl?: number } = {}): Stores => {
    const one = storesOn(server, { prefix, ...options });
    opened.push(one);
    return one;
  };
  beforeEach(async () => {
    warned.mockReset().mockReturnValue();
    folder = mkdtempSync(join(tmpdir(), "troupe-rolled-back-"));
    server = await RedisServer.start({ folder });
    stores = another();
  });
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const loseSince = (then: LogSizes): Promise<void> => cutPower(server, folder, then);

  /** All that was written since then is lost; before the stores reconnect, another process writes to what is left. */
  const loseUnseen = async (then: LogSizes): Promise<void> => {
    await server.kill();
    expect(cutLogs(folder, then)).toBeGreaterThan(0);
    const port = await freePort();
    await server.launch(port);
    const others = redisStores({ url: `redis://127.0.0.1:${port}`, prefix });
    await others.pause(agentKey(), "ann", NOW);
    await others.close();
    await server.kill();
    await server.launch();
  };

  test("an owner that writes on is refused, and the loss is told with its times", async () => {
    const owner = await openAgent(stores);
    await owner.commit({ entries: [note("kept")] });
    const then = logSizes(folder);
    await owner.commit({ entries: [note("lost")] });
    const { all } = told(stores);
    await loseSince(then);
    expect(await stores.commit([owner.batch({ entries: [note("on")] })], NOW)).toEqual([
      { type: "stale", epoch: owner.epoch, seq: owner.seq - 1 },
    ]);
    expect(all).toEqual([
      { tenant: TENANT, rootAgentId: ROOT, hadAt: expect.any(Number), foundAt: expect.any(Number) },
    ]);
    expect(all[0]?.hadAt).toBeGreaterThanOrEqual(all[0]?.foundAt ?? Infinity);
    expect(warned).toHaveBeenCalledExactlyOnceWith(
      expect.stringMatching(new RegExp(`^Redis has lost acknowledged writes of the trees of ${ROOT} \\(changes`)),
      { code: "TROUPE_REDIS_ROLLED_BACK" },
    );
    const entries = (await stores.readJournal(agentKey(), 1)).flatMap((row) => row.entries);
    expect(entries.at(-1)).toMatchObject({ message: "kept" });
    await new Owner(stores, agentKey()).acquire().then((next) => next.commit({ entries: [note("on")] }));
    expect(all).toHaveLength(1);
  });

  test("a listener is told of it without writing, also of a tree that is gone", async () => {
    stores.onForeignWrite(() => undefined);
    const owner = await openAgent(stores);
    const then = logSizes(folder);
    await owner.commit({ entries: [note("lost")] });
    const { all, first } = told(stores);
    await stores.createAgent(identityOf("gone"), null);
    await loseSince(then);
    await first;
    await vi.waitFor(() => expect(all).toHaveLength(2), 30_000);
    expect(new Map(all.map(({ rootAgentId, foundAt }) => [rootAgentId, foundAt]))).toEqual(
      new Map([
        [ROOT, expect.any(Number)],
        ["gone", null],
      ]),
    );
  });

  describe("and to which a process that did not know of it has written since", () => {
    test("a listener is told of it, and goes on from what is stored", async () => {
      stores.onForeignWrite(() => undefined);
      const owner = await openAgent(stores);
      await owner.commit({ entries: [note("kept")] });
      const then = logSizes(folder);
      await owner.commit({ entries: [note("lost")] });
      const { all, first } = told(stores);
      await loseUnseen(then);
      expect(await first).toMatchObject({ rootAgentId: ROOT, foundAt: expect.any(Number) });
      await new Owner(stores, agentKey()).acquire().then((next) => next.commit({ entries: [note("on")] }));
      expect(all).toHaveLength(1);
    });

    test("a process that has read what was written since is told of it all the same", async () => {
      const owner = await openAgent(stores);
      const then = logSizes(folder);
      await owner.commit({ entries: [note("lost")] });
      const { all, first } = told(stores);
      await loseUnseen(then);
      expect((await stores.readAgent(agentKey()))?.pause).toMatchObject({ by: "ann" });
      stores.onForeignWrite(() => undefined);
      expect(await first).toMatchObject({ rootAgentId: ROOT });
      expect(all).toHaveLength(1);
    });

    test.each(["listens", "writes"])(
      "a process that %s is told of it where no more is left of an agent than its creation",
      async (how) => {
        if (how === "listens") stores.onForeignWrite(() => undefined);
        await stores.createAgent(identityOf(ROOT), null);
        const then = logSizes(folder);
        const owner = await new Owner(stores, agentKey()).acquire();
        await owner.commit({ entries: [note("lost")] });
        const { all, first } = told(stores);
        await loseUnseen(then);
        const batch = owner.batch({ entries: [note("on")] });
        const outcomes = how === "writes" ? await stores.commit([batch], NOW) : [];
        expect(outcomes.filter(({ type }) => type !== "stale")).toEqual([]);
        expect(await first).toMatchObject({ rootAgentId: ROOT });
        await new Owner(stores, agentKey()).acquire().then((next) => next.commit({ entries: [note("on")] }));
        expect(all).toHaveLength(1);
      },
    );
  });

  test("a tree that may have expired does not count as lost", async () => {
    const client = server.client();
    await another({ ttl: 1 }).createAgent(identityOf("gone"), null);
    await stores.createAgent(identityOf("gone"), null);
    const { all } = told(stores);
    await vi.waitFor(async () => expect(await client.keys("*/gone}:meta")).toEqual([]), 30_000);
    client.disconnect();
    expect((await stores.createAgent(identityOf("gone"), null)).created).toBe(true);
    await stores.listAgents({ tenant: TENANT });
    expect(all).toEqual([]);
    expect(warned).not.toHaveBeenCalled();
  });

  test("an epoch that was given a second time is not that of its first owner", async () => {
    const first = await openAgent(stores);
    expect(await stores.release(agentKey(), first.epoch)).toBe(true);
    const then = logSizes(folder);
    const lost = await new Owner(stores, agentKey()).acquire();
    await lost.commit({ entries: [note("lost")] });
    await loseSince(then);
    const others = another();
    const next = { ...here, processId: "next" };
    const second = await new Owner(others, agentKey()).acquire(next, NOW + 9 * LEASE_MS);
    await second.commit({ entries: [note("instead")] });
    expect(second).toMatchObject({ epoch: lost.epoch, seq: lost.seq });
    const late = { ...lost.batch({ entries: [note("fork")] }), processId: here.processId };
    expect(await stores.commit([late], NOW)).toEqual([{ type: "stale", epoch: second.epoch, seq: second.seq }]);
    await second.commit({ entries: [note("on")] });
  });
});

/** What the stores tell of losses from now on. */
function told(from: Stores): { readonly all: RolledBackTree[]; readonly first: Promise<RolledBackTree> } {
  const { promise, resolve } = Promise.withResolvers<RolledBackTree>();
  const all: RolledBackTree[] = [];
  from.onRolledBack((found) => {
    all.push(found);
    resolve(found);
  });
  return { all, first: promise };
}
