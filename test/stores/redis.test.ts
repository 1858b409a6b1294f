import { afterAll, beforeAll, describe } from "vitest";
import { storesContract } from "../contracts/stores.contract.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  storesContract("Redis", () => storesOn(server));
});
