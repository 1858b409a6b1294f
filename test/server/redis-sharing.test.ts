import { apiSurface, redisSharing, serveRuntime, tokenAuth } from "troupe/server";
import { describe, expect, onTestFinished, test } from "vitest";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { identities, requestOf, runtimeOf } from "./served.ts";

describe.skipIf(!redisProgram)("servers that share a Redis", () => {
  test("a ticket that one gave opens one stream at another", async () => {
    const place = await RedisServer.start({ isLogged: false });
    onTestFinished(() => place.stop());
    const runtime = await runtimeOf();
    const authenticate = tokenAuth({ tokens: identities });
    const open = async () => {
      const sharing = await redisSharing({ url: place.url });
      onTestFinished(() => sharing.close());
      const surfaces = [apiSurface({ tickets: sharing.tickets })];
      const server = serveRuntime(runtime, { authenticate, surfaces, limits: { redis: sharing.client } });
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
    // All that Redis has of it is a hash, and that is gone.
    const client = place.client();
    expect(await client.keys("*ticket*")).toEqual([]);
    client.disconnect();
  });
});

test("a place that is none is refused", async () => {
  await expect(redisSharing({})).rejects.toThrow("redisSharing() takes one of url, client and cluster; 0 are given");
  await expect(redisSharing({ url: "http://x" })).rejects.toThrow("url is no address of Redis");
});
