// A session with stubs on Redis, whose turns workers run: none of their tools runs, and its queues stay empty.
import { type AgentDefinition, createRuntime, type RuntimeOptions } from "troupe";
import { describe, expect, onTestFinished, test } from "vitest";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { look, pay, rounds, stubbedDesk, stubs } from "../support/stubbed-desk.ts";

describe.skipIf(!redisProgram)("stubs on Redis", () => {
  const redis = redisOfSuite();

  test("workers run turns and subagents of a session with stubs, and no tool of it", async () => {
    const [prefix, queuePrefix] = [ownPrefix(), ownQueuePrefix()];
    const opened = async (agents: readonly AgentDefinition[], options: Partial<RuntimeOptions>) => {
      const runtime = await createRuntime({
        agents: [...agents],
        stores: storesOn(redis.server, { prefix }),
        queues: queuesOn(redis.server, { prefix: queuePrefix }),
        ...options,
      } as RuntimeOptions);
      onTestFinished(() => runtime.shutdown());
      return runtime;
    };
    const [front, worker] = [stubbedDesk({ queue: "payments" }), stubbedDesk({ queue: "payments" })];
    const client = await opened([front.desk], { role: "client" } as Partial<RuntimeOptions>);
    await opened([worker.desk], { role: "worker" } as Partial<RuntimeOptions>);
    const real = await client.agent("desk", { agentId: "real" });
    await real.start();
    expect((await real.executeTurn(rounds(pay("1"))).result).text).toBe("the real pay");
    expect(worker.ran).toEqual(["pay"]);

    const agent = await client.agent("desk", { agentId: "shop", stubs });
    await agent.start();
    const helped = rounds([...look("7"), ["helper", { input: rounds(look("7"), look("8")) }]], pay("1"));
    expect((await agent.executeTurn(helped).result).text).toBe(
      '{"broken":true} | {"broken":true} | Error: no such order | stubbed payment',
    );
    expect((await agent.executeTurn(rounds([["look", { order: "9" }]])).result).error?.code).toBe("stub_mismatch");
    expect((await agent.getStubs()).stubs.map(({ used }) => used)).toEqual([2, 0, 1, 1]);
    expect([front.ran, worker.ran]).toEqual([[], ["pay"]]);
  });
});
