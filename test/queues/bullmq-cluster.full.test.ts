import { afterAll, beforeAll, describe } from "vitest";
import { queuesContract } from "../contracts/queues.contract.ts";
import { subjectOn } from "../support/bullmq-queues.ts";
import { RedisCluster } from "../support/redis-cluster.ts";
import { redisProgram } from "../support/redis-server.ts";

describe.skipIf(!redisProgram)("a cluster of three", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.start();
  });
  afterAll(() => cluster.stop());

  queuesContract("BullMQ cluster", () => subjectOn(cluster));
});
