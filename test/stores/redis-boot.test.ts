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
    ["no place", {}, /takes one of url, client and cluster; 0 are given/],
    ["two places", { url: "redis://a", cluster: { nodes: [{ port: 1 }] } }, /2 are given/],
    ["no address", { url: "http://user:secret-word@a" }, /^url: invalid Redis URL; expected redis:/],
    ["a database without a number", { url: "redis://a/main" }, /^url: invalid Redis URL/],
    ["an empty cluster", { cluster: { nodes: [] } }, /cluster.nodes is empty/],
    ["a prefix with braces", { url: "redis://a", prefix: "{a}" }, /prefix is "\{a\}"/],
    [
      "more time than a timer has",
      { url: "redis://a", timeoutMs: 2 ** 31 },
      /timeoutMs is 2147483648; it takes .*from 1 to/,
    ],
    ["no time", { url: "redis://a", timeoutMs: 0 }, /timeoutMs is 0; it takes a whole number from 1 to 2000000000/],
    ["half a second to live", { url: "redis://a", ttl: 0.5 }, /ttl is 0.5; it takes a whole number of at least 1/],
  ])("%s is refused, in words that say what would be right", (_what, options, words) => {
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

  test("refuses a Redis that throws data away when it is full, and says what to set (F8)", async () => {
    const evicting = await begin({ settings: ["--maxmemory-policy", "allkeys-lru"] });
    const stores = storesOn(evicting);
    await expect(stores.createAgent(identityOf(), null)).rejects.toThrow(InvalidInputError);
    await expect(stores.readAgent(agentKey())).rejects.toThrow(/allkeys-lru.*set maxmemory-policy noeviction/);
    const client = evicting.client();
    expect(await client.dbsize()).toBe(0);
    // Nothing has to be started anew when it was set right.
    await client.config("SET", "maxmemory-policy", "noeviction");
    expect(await stores.createAgent(identityOf(), null)).toMatchObject({ created: true });
    client.disconnect();
    await stores.close();
  });

  test("warns once of a Redis that may forget what it acknowledged, and says what to set", async () => {
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
  ] as const)("%j: says what a sudden end may lose", async (settings, words) => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const stores = storesOn(await begin({ settings }));
    await stores.readAgent(agentKey());
    await stores.close();
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual(words.map((one) => expect.stringMatching(one)));
  });

  test("warns where it may not look, and works all the same", async () => {
    const emitWarning = vi.spyOn(process, "emitWarning").mockReturnValue();
    const managed = await begin({ settings: ["--rename-command", "CONFIG", ""] });
    const stores = storesOn(managed);
    await openAgent(stores);
    expect(emitWarning.mock.calls.map(([message]) => message)).toEqual([
      expect.stringMatching(/cannot check whether Redis syncs every write \(CONFIG is refused\)/),
    ]);
    await stores.close();
  });

  test("a client of the user's gives its settings; it is not used itself, and stays open", async () => {
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

  test("used after it was closed, it says so; what was begun before is finished", async () => {
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
