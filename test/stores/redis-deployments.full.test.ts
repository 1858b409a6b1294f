// The contract of stores on Redis deployments other than one client of one server.
import { afterAll, beforeAll, describe } from "vitest";
import { storesContract } from "../contracts/stores.contract.ts";
import { RedisCluster } from "../support/redis-cluster.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { alternating, ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  storesContract("two alternating clients of Redis", () => {
    const prefix = ownPrefix();
    return alternating(storesOn(server, { prefix }), storesOn(server, { prefix }));
  });
});

describe.skipIf(!redisProgram)("a cluster of three", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster.stop());

  storesContract("Redis cluster", () => storesOn(cluster));
});
