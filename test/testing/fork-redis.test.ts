import { describe, expect, onTestFinished, test } from "vitest";
import { type AgentDefinition, createRuntime, defineAgent, defineTool, type RuntimeOptions } from "../../src/index.ts";
import { forkPoints } from "../../src/runtime/index.ts";
import { fork, scriptedModel } from "../../src/testing/index.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { redisOfSuite } from "../support/redis-suite.ts";
import { z } from "zod";

describe.skipIf(!redisProgram)("fork on Redis", () => {
  const redis = redisOfSuite();

  test("a run of a fork in the same stores pays nothing, and its forks neither", async () => {
    let paid = 0;
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({ order: z.string() }),
      effect: "once",
      execute: () => `payment ${(paid += 1)}`,
    });
    const model = scriptedModel((_request, { call }) =>
      call?.step === 1 ? { toolCalls: [{ name: "pay", arguments: { order: "1" } }] } : "Paid.",
    );
    const desk = defineAgent({ name: "desk", model, tools: [pay] });
    const runtime = await createRuntime({ agents: [desk], stores: storesOn(redis.server) });
    onTestFinished(() => runtime.shutdown());
    const agent = await runtime.agent(desk, { agentId: "shop" });
    await agent.start();
    await agent.executeTurn("Pay.").result;
    let originId = "shop";
    for (let round = 0; round < 3; round += 1) {
      const made = await fork({ stores: runtime.stores, agentId: originId }, { at: { turn: 1, step: 1 }, runtime });
      expect(await made.turn.result).toMatchObject({ status: "completed", text: "Paid." });
      await made.close();
      originId = made.agentId;
    }
    const tree = await runtime.stores.exportTree("default", originId);
    expect([paid, tree && forkPoints(tree).length]).toEqual([1, 3]);
  });

  test.each(["once", "keyed"] as const)("a worker for which a queued tool is %s does not run it", async (effect) => {
    const ran: string[] = [];
    const deskOf = (of: string, declared: "none" | "once" | "keyed") =>
      defineAgent({
        name: "desk",
        model: scriptedModel((_request, { call }) => (call?.step === 1 ? { toolCalls: [{ name: "pay" }] } : "Done.")),
        tools: [
          defineTool({
            name: "pay",
            description: "Pays.",
            parameters: z.object({}),
            queue: "payments",
            effect: declared,
            execute: () => `payment ${ran.push(of)}`,
          }),
        ],
      });
    const prefix = ownPrefix();
    const queuePrefix = ownQueuePrefix();
    const opened = async (agents: readonly AgentDefinition[], options: Partial<RuntimeOptions>) => {
      const runtime = await createRuntime({
        agents: [...agents],
        stores: storesOn(redis.server, { prefix }),
        queues: queuesOn(redis.server, { prefix: queuePrefix }),
        ...options,
      });
      onTestFinished(() => runtime.shutdown());
      return runtime;
    };
    const owner = await opened([deskOf("owner", "none")], { work: { queues: {} } });
    await opened([deskOf("worker", effect)], {});
    const agent = await owner.agent("desk", { agentId: "shop" });
    await agent.start();
    expect(await agent.executeTurn("Pay.").result).toMatchObject({ status: "completed" });
    expect(ran).toEqual(["worker"]);
    const made = await fork({ stores: owner.stores, agentId: "shop" }, { at: { turn: 1, step: 1 }, runtime: owner });
    expect(await made.turn.result).toMatchObject({ status: "completed" });
    expect(await toolTextsOf(made.agent)).toEqual([expect.stringContaining("The tool pay was not run")]);
    expect(ran).toEqual(["worker"]);
  });
});
