import { describe, expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, defineTool } from "../../src/index.ts";
import { forkPoints } from "../../src/runtime/index.ts";
import { fork, scriptedModel } from "../../src/testing/index.ts";
import { redisProgram } from "../support/redis-server.ts";
import { storesOn } from "../support/redis-stores.ts";
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
});
