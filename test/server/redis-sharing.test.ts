import { memoryStores } from "troupe";
import { redisStores } from "troupe/stores/redis";
import { apiSurface, redisSharing, serveRuntime, tokenAuth } from "troupe/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { identities, requestOf, runtimeOf, serve } from "./served.ts";

describe.skipIf(!redisProgram)("servers that share a Redis", () => {
  test("a ticket from one opens one stream at another", async () => {
    const place = await RedisServer.start({ isLogged: false });
    onTestFinished(() => place.stop());
    const runtime = await runtimeOf();
    const authenticate = tokenAuth({ tokens: identities });
    const open = async () => {
      const sharing = await redisSharing({ url: place.url });
      onTestFinished(() => sharing.close());
      const surfaces = [apiSurface({ tickets: sharing.tickets })];
      const server = serveRuntime(runtime, { authenticate, surfaces, limits: { redis: sharing } });
      onTestFinished(() => server.close());
      return server;
    };
    const [one, two] = [await open(), await open()];
    const made = await one.fetch(requestOf("/api/agents", { method: "POST", body: { definition: "desk" } }));
    const { agentId } = (await made.json()) as { agentId: string };
    const issued = await one.fetch(requestOf("/api/tickets", { method: "POST", body: { rootAgentId: agentId } }));
    const { ticket } = (await issued.json()) as { ticket: string };
    const use = () => two.fetch(new Request(`http://127.0.0.1/api/trees/${agentId}/events?ticket=${ticket}`));
    const first = await use();
    expect(first.status).toBe(200);
    await first.body?.cancel();
    expect((await use()).status).toBe(401);
    // Redis only stores its hash, which has been removed.
    const client = place.client();
    expect(await client.keys("*ticket*")).toEqual([]);
    client.disconnect();
  });
});

describe.skipIf(!redisProgram)("servers over the stores of their runtime", () => {
  test("use the connection and the prefix of the stores, and leave both open", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    const stores = redisStores({ url: place.url, prefix: "desk:" });
    onTestFinished(() => stores.close());
    const client = place.client();
    onTestFinished(() => client.disconnect());
    const connections = async () =>
      String(await client.client("LIST"))
        .trim()
        .split("\n").length;
    await stores.requests({ tenant: "default" });
    const before = await connections();
    const sharing = await redisSharing({ stores: { ...stores } });
    const runtime = await runtimeOf();
    const { ask } = serve(runtime, {
      surfaces: [apiSurface({ tickets: sharing.tickets })],
      limits: { redis: sharing },
    });
    const made = await ask("/api/agents", { method: "POST", body: { definition: "desk" } });
    const { agentId } = (await made.json()) as { agentId: string };
    expect((await ask("/api/tickets", { method: "POST", body: { rootAgentId: agentId } })).status).toBe(201);
    expect(await connections()).toBe(before);
    expect(await client.keys("*rate:*")).toEqual([expect.stringMatching(/^desk:rate:requests:/)]);
    expect(await client.keys("*ticket:*")).toEqual([expect.stringMatching(/^desk:ticket:/)]);
    await sharing.close();
    expect(await stores.requests({ tenant: "default" })).toEqual([]);
  });
});

test("stores of a file are refused", async () => {
  await expect(redisSharing({ stores: memoryStores() })).rejects.toThrow("these stores are not in Redis; give a url");
});

test("a missing or invalid address is refused", async () => {
  await expect(redisSharing({})).rejects.toThrow("redisSharing() takes one of url, client and cluster; 0 are given");
  await expect(redisSharing({ url: "http://x" })).rejects.toThrow("url: invalid Redis URL");
});
