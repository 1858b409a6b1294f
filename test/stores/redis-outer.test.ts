// Accounts above the roots that two processes charge in turn.
import { afterAll, beforeAll, beforeEach, afterEach, describe } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { outerContract } from "../contracts/stores-outer.contract.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { alternating, ownPrefix, storesOn } from "../support/redis-stores.ts";

describe.skipIf(!redisProgram)("two clients of Redis, call by call", () => {
  let server: RedisServer;
  let stores: Stores;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());
  beforeEach(() => {
    const prefix = ownPrefix();
    stores = alternating(storesOn(server, { prefix }), storesOn(server, { prefix }));
  });
  afterEach(async () => {
    await stores.close();
  });

  outerContract(() => stores);
});
