import { afterAll, beforeAll, describe } from "vitest";
import { queuesContract } from "../contracts/queues.contract.ts";
import { subjectOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

describe.skipIf(!redisProgram)("one server", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start({ isLogged: false });
  });
  afterAll(() => server.stop());

  queuesContract("BullMQ", () => subjectOn(server));
});
