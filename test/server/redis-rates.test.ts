import { Redis } from "ioredis";
import { expect, it, onTestFinished } from "vitest";
import { redisProgram, RedisServer } from "../support/redis-server.ts";
import { routeAt, runtimeOf, serve, surfaceOf } from "./served.ts";

const surfaces = [surfaceOf(routeAt("who", () => Response.json({})))];

it.skipIf(!redisProgram)(
  "servers with one Redis count the requests of a caller together, and continue without Redis",
  async () => {
    const place = await RedisServer.start({ isLogged: false });
    onTestFinished(() => place.stop());
    const redis = new Redis({
      port: place.port,
      host: "127.0.0.1",
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      lazyConnect: true,
    });
    redis.on("error", () => undefined);
    onTestFinished(() => redis.disconnect());
    await redis.connect();
    const limits = { requestsPerMinute: 4, redis: { client: redis, prefix: "desk:" } };
    const runtime = await runtimeOf();
    const servers = [serve(runtime, { surfaces, limits }), serve(runtime, { surfaces, limits })];
    const ask = async (): Promise<number[]> =>
      await Promise.all(servers.flatMap((server) => [1, 2, 3].map(async () => (await server.ask("/test/who")).status)));
    expect((await ask()).filter((status) => status === 429)).toHaveLength(2);
    expect((await servers[0]?.ask("/test/who", { as: "bob" }))?.status).toBe(200);
    const keys = await redis.keys("*");
    expect(keys.filter((key) => key.includes("rate:")).every((key) => key.startsWith("desk:rate:requests:"))).toBe(
      true,
    );
    expect(keys).not.toEqual([]);
    await place.kill();
    // From here on each counts separately.
    expect((await ask()).filter((status) => status === 429)).toHaveLength(0);
  },
);
