import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { here, agentKey, LEASE_MS, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { inFull } from "../support/full.ts";
import { RedisServer, type RedisServerOptions, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("faults of Redis", () => {
  let server: RedisServer;
  let stores: Stores;
  let client: Redis;
  const prefix = ownPrefix();
  const begin = async (options?: RedisServerOptions): Promise<void> => {
    server = await RedisServer.start(options);
    client = server.client();
    stores = storesOn(server, { prefix, timeoutMs: 3000 });
  };
  beforeEach(() => begin());
  afterEach(async () => {
    server.thaw();
    await stores.close();
    client.disconnect();
    await server.stop();
  });

  /** Commits until stopped; every batch is sent again until it is answered, as the journal writer does. */
  const write = async (owner: Owner, isOver: () => boolean): Promise<number> => {
    let failures = 0;
    for (let count = 0; !isOver(); count += 1) {
      const id = `m${count}`;
      const batch = { ...owner.batch({ entries: [note(id)], messages: [messageOf(id)] }), id: randomUUID() };
      for (;;) {
        try {
          owner.moved((await stores.commit([batch], NOW))[0]);
          break;
        } catch (error) {
          expect(error).toBeInstanceOf(StoreUnavailableError);
          failures += 1;
        }
      }
    }
    return failures;
  };

  const expectWhole = async (owner: Owner): Promise<void> => {
    const rows = await stores.readJournal(agentKey(), 1);
    const entries = rows.flatMap((row) => row.entries);
    expect(entries.map((entry) => entry.seq)).toEqual(entries.map((_, index) => index + 1));
    expect(entries.at(-1)?.seq).toBe(owner.seq);
    const notes = entries.flatMap((entry) => (entry.type === "warning" ? entry.message : []));
    expect((await stores.messages(agentKey())).map((message) => message.id)).toEqual(notes);
    expect(new Set(notes).size).toBe(notes.length);
  };

  test("callers do not notice SCRIPT FLUSH and CLIENT KILL during the work (F9)", async () => {
    const owner = await openAgent(stores);
    let isOver = false;
    const writing = write(owner, () => isOver);
    for (let round = 0; round < 40; round += 1) {
      await client.script("FLUSH");
      await client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await delay(5);
    }
    isOver = true;
    expect(await writing).toBe(0);
    await expectWhole(owner);
  });

  test("killed and restarted with its log, it has lost no acknowledged write (F5)", async () => {
    const owner = await openAgent(stores);
    let isOver = false;
    const writing = write(owner, () => isOver);
    for (let round = 0; round < 8; round += 1) {
      await delay(20 + round * 5);
      await server.kill();
      await server.launch();
    }
    isOver = true;
    await writing;
    await expectWhole(owner);
    const other = storesOn(server, { prefix });
    expect(await other.readJournal(agentKey(), 1)).toEqual(await stores.readJournal(agentKey(), 1));
    await other.close();
  });

  test("while it is away every command fails within its timeout, and works again as soon as it is back (F6)", async () => {
    const owner = await openAgent(stores);
    const hasty = storesOn(server, { prefix, timeoutMs: 300 });
    await hasty.readAgent(agentKey());
    await server.kill();
    const start = performance.now();
    const asked = await Promise.allSettled([
      hasty.readAgent(agentKey()),
      hasty.pause(agentKey(), "ann", NOW),
      hasty.heartbeat("here", NOW),
      hasty.listAgents({ tenant: TENANT }),
      hasty.dueTimers(NOW, 10),
      hasty.readTree(TENANT, ROOT, 0, 10),
    ]);
    expect(performance.now() - start).toBeLessThan(2000);
    for (const one of asked) {
      expect(one).toMatchObject({ status: "rejected", reason: { code: "store_unavailable", retryable: true } });
    }
    await server.launch();
    expect(await stores.readAgent(agentKey())).toMatchObject({ agentId: ROOT });
    await owner.commit({ entries: [note("on")] });
    expect(await hasty.inbox(agentKey())).toEqual([]);
    await hasty.close();
  });

  test("when it stalls, no call takes longer than the stall, and an unanswered write is neither lost nor duplicated (F7)", async () => {
    const owner = await openAgent(stores);
    const hasty = storesOn(server, { prefix, timeoutMs: 300 });
    const same = Object.assign(new Owner(hasty, agentKey()), { epoch: owner.epoch, seq: owner.seq });
    await hasty.readAgent(agentKey());
    server.freeze();
    const batch = { ...same.batch({ entries: [note("x")], messages: [messageOf("m1")] }), id: "stalled" };
    const start = performance.now();
    for (let round = 0; round < 5; round += 1) {
      await expect(hasty.commit([batch], NOW)).rejects.toThrow(StoreUnavailableError);
    }
    expect(performance.now() - start).toBeLessThan(4000);
    server.thaw();
    same.moved((await hasty.commit([batch], NOW))[0]);
    await same.commit({ entries: [note("y")] });
    expect((await hasty.readJournal(agentKey(), owner.seq + 1)).map((row) => row.entries[0])).toMatchObject([
      { message: "x" },
      { message: "y" },
    ]);
    await hasty.close();
  });

  test("an address without a server, or with a server that refuses it, is reported without its password", async () => {
    const url = `redis://user:secret-word@127.0.0.1:${server.port}/0`;
    const closed = storesOn(server, { url: url.replace(String(server.port), "1"), timeoutMs: 200 });
    const failure = await closed.readAgent(agentKey()).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    expect(JSON.stringify(failure) + String(failure) + String((failure as Error).cause)).not.toContain("secret-word");
    await closed.close();
    const refused = storesOn(server, { url, timeoutMs: 500 });
    const wrong = await refused.readAgent(agentKey()).catch((error: unknown) => error);
    expect(wrong).toBeInstanceOf(StoreUnavailableError);
    expect(JSON.stringify(wrong) + String(wrong)).not.toContain("secret-word");
    await refused.close();
  });

  inFull(() => {
    test("an owner whose lease was taken while Redis was away gets a stale outcome and writes nothing (F3)", async () => {
      const owner = await openAgent(stores);
      await server.kill();
      const late = stores.commit([owner.batch({ entries: [note("late")] })], NOW).catch((error: unknown) => error);
      await late;
      await server.launch();
      await stores.registerProcess({ ...here, processId: "next" }, NOW + 9 * LEASE_MS);
      const next = await stores.acquire(agentKey(), "next", LEASE_MS, NOW + 9 * LEASE_MS);
      expect(next).toMatchObject({ type: "acquired", epoch: owner.epoch + 1 });
      expect(await stores.commit([owner.batch({ entries: [note("late")] })], NOW)).toMatchObject([{ type: "stale" }]);
    });
  });
});

test.skipIf(!redisProgram)(
  "with its memory full it refuses writes as retryable and never writes half a batch (F8)",
  async () => {
    const server = await RedisServer.start({ settings: ["--maxmemory", "6mb"] });
    const stores = storesOn(server);
    const owner = await openAgent(stores);
    const large = "x".repeat(200_000);
    let failure: unknown;
    for (let count = 0; failure === undefined && count < 100; count += 1) {
      const id = `m${count}`;
      const batch = owner.batch({ entries: [note(id)], messages: [messageOf(id, large)] });
      try {
        owner.moved((await stores.commit([batch], NOW))[0]);
      } catch (error) {
        failure = error;
      }
    }
    expect(failure).toBeInstanceOf(StoreUnavailableError);
    expect(failure).toMatchObject({ details: { code: "OOM" } });
    const entries = (await stores.readJournal(agentKey(), 1)).flatMap((row) => row.entries);
    expect(entries.at(-1)?.seq).toBe(owner.seq);
    expect(await stores.messages(agentKey())).toHaveLength(entries.length - 1);
    const client = server.client();
    await client.config("SET", "maxmemory", "100mb");
    await owner.commit({ entries: [note("on")], messages: [messageOf("on", large)] });
    client.disconnect();
    await stores.close();
    await server.stop();
  },
);
