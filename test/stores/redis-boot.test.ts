import { Redis } from "ioredis";
import { afterEach, describe, expect, test, vi } from "vitest";
import { InvalidInputError, InvariantError, StoreUnavailableError } from "../../src/errors/index.ts";
import { type RedisStoresOptions, redisStores } from "../../src/stores/redis.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { identityOf, agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { RedisServer, type RedisServerOptions, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";

describe("options", () => {
  test.each<[string, RedisStoresOptions, RegExp]>([
    ["an empty object", {}, /takes one of url, client and cluster; 0 are given/],
    ["two of url, client and cluster", { url: "redis://a", cluster: { nodes: [{ port: 1 }] } }, /2 are given/],
    ["an HTTP URL", { url: "http://user:secret-word@a" }, /^url: invalid Redis URL; expected redis:/],
    ["a database that is not a number", { url: "redis://a/main" }, /^url: invalid Redis URL/],
    ["an empty cluster", { cluster: { nodes: [] } }, /cluster.nodes is empty/],
    ["a prefix with braces", { url: "redis://a", prefix: "{a}" }, /prefix is "\{a\}"/],
    [
      "a timeout above the maximum of a timer",
      { url: "redis://a", timeoutMs: 2 ** 31 },
      /timeoutMs is 2147483648; expected .*from 1 to/,
    ],
    [
      "a timeout of 0",
      { url: "redis://a", timeoutMs: 0 },
      /timeoutMs is 0; expected a whole number from 1 to 2000000000/,
    ],
    ["a ttl of half a second", { url: "redis://a", ttl: 0.5 }, /ttl is 0.5; expected a whole number of at least 1/],
  ])("%s is refused, and the error names the expected value", (_what, options, words) => {
    expect(() => redisStores(options)).toThrow(InvalidInputError);
    expect(() => redisStores(options)).toThrow(words);
  });
});

describe.skipIf(!redisProgram)("the first use", () => {
  let server: RedisServer | undefined;
  const begin = async (options: RedisServerOptions): Promise<RedisServer> =>
    (server = await RedisServer.start(options));
  afterEach(async () => {
    vi.restoreAllMocks();
    await server?.stop();
  });

  test("refuses a Redis that evicts keys when memory is full, and names the setting (F8)", async () => {
    const evicting = await begin({ settings: ["--maxmemory-policy", "allkeys-lru"] });
    const stores = storesOn(evicting);
    await expect(stores.createAgent(identityOf(), null)).rejects.toThrow(InvalidInputError);
    await expect(stores.readAgent(agentKey())).rejects.toThrow(/allkeys-lru.*set maxmemory-policy noeviction/);
    const client = evicting.client();
    expect(await client.dbsize()).toBe(0);
    // No restart is needed once the setting is correct.
    await client.config("SET", "maxmemory-policy", "noeviction");
    expect(await stores.createAgent(identityOf(), null)).toMatchObject({ created: true });
    client.disconnect();
    await stores.close();
  });

  test("warns once if Redis may lose acknowledged writes, and names the setting", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const unlogged = await begin({ isLogged: false });
    for (let round = 0; round < 2; round += 1) {
      const stores = storesOn(unlogged);
      await stores.readAgent(agentKey());
      await stores.close();
    }
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual([
      expect.stringMatching(/appendonly no.*Set appendonly yes and appendfsync always/),
    ]);
    await unlogged.stop();
  });

  test.each([
    [["--appendfsync", "everysec"], [/appendfsync is everysec.*about the last second.*Set appendfsync always/]],
    [["--appendfsync", "no"], [/appendfsync is no\).*all data that the system has not written yet/]],
    [["--no-appendfsync-on-rewrite", "yes"], [/while it rewrites its log.*Set no-appendfsync-on-rewrite no/]],
    [["--appendfsync", "always"], []],
  ] as const)("%j: warns what a crash may lose", async (settings, words) => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const stores = storesOn(await begin({ settings }));
    await stores.readAgent(agentKey());
    await stores.close();
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual(words.map((one) => expect.stringMatching(one)));
  });

  test("warns if it may not read the configuration, and still works", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const managed = await begin({ settings: ["--rename-command", "CONFIG", ""] });
    const stores = storesOn(managed);
    await openAgent(stores);
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual([
      expect.stringMatching(/cannot check whether Redis syncs every write \(CONFIG is refused\)/),
    ]);
    await stores.close();
  });

  test("copies the settings of a given client, does not use the client itself, and leaves it open", async () => {
    const shared = await begin({ password: "secret-word" });
    const client = new Redis(shared.url, { password: "secret-word", keyPrefix: "mine:" });
    const prefix = ownPrefix();
    const stores = redisStores({ client, prefix });
    const owner = await openAgent(stores);
    await owner.commit({ entries: [note("one")] });
    await stores.close();
    expect(await client.ping()).toBe("PONG");
    const again = redisStores({ client, prefix });
    expect(await again.listAgents({ tenant: TENANT })).toHaveLength(1);
    await again.close();
    const stranger = storesOn(shared, { timeoutMs: 500 });
    await expect(stranger.readAgent(agentKey())).rejects.toThrow(StoreUnavailableError);
    await expect(stranger.readAgent(agentKey())).rejects.toMatchObject({ details: { code: "NOAUTH" } });
    await stranger.close();
    client.disconnect();
  });

  test("closed stores refuse calls; earlier calls are finished", async () => {
    const stores = storesOn(await begin({}));
    await openAgent(stores);
    const last = stores.pause(agentKey(), "ann", NOW);
    const looks = [stores.readAgent(agentKey()), stores.listAgents({ tenant: TENANT }), stores.nextTimerAt()];
    await stores.close();
    await stores.close();
    expect(await Promise.all(looks)).toMatchObject([{ agentId: "desk" }, [{ agentId: "desk" }], undefined]);
    expect(await last).toMatchObject({ type: "marked" });
    await expect(stores.readAgent(agentKey())).rejects.toThrow(InvariantError);
    await expect(stores.pause(agentKey(), "ann", NOW)).rejects.toThrow(/are closed/);
  });
});
