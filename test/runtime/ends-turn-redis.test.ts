// A queued tool that ends its turn, run by a worker in another runtime over BullMQ.
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { ownQueuePrefix, queuesOn } from "../support/bullmq-queues.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { storesOn } from "../support/redis-stores.ts";
import { calling } from "../support/turn-probes.ts";

test.skipIf(!redisProgram).each(["of the agent", "of a subagent that ends the turn"])("a tool %s", async (whose) => {
  const server = await RedisServer.start();
  onTestFinished(() => server.stop());
  const prefix = ownQueuePrefix();
  const ran: number[] = [];
  const desk = (index: number) => {
    const submit = defineTool({
      name: "submit",
      description: "Hands in the result.",
      parameters: z.object({}),
      queue: "slow",
      effect: "keyed",
      endsTurn: true,
      execute: () => {
        ran.push(index);
        return "from the worker";
      },
    });
    const own = defineAgent({ name: "desk", model: scriptedModel([calling("submit"), "next"]), tools: [submit] });
    if (whose === "of the agent") return own;
    const child = defineAgent({ name: "child", model: scriptedModel([calling("submit")]), tools: [submit] });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "x" } }), "next"]);
    return defineAgent({ name: "desk", model, tools: [subagent(child, { endsTurn: true })] });
  };
  const open = async (index: number) => {
    const runtime = await createRuntime({
      agents: [desk(index)],
      stores: storesOn(server, { prefix }),
      queues: queuesOn(server, { prefix }),
    });
    onTestFinished(() => runtime.shutdown());
    return runtime;
  };
  const client = await open(1);
  await open(2);
  const agent = await client.agent("desk", { agentId: "a" });
  await agent.start();
  expect(await agent.executeTurn("go").result).toMatchObject({
    status: "completed",
    text: "from the worker",
    steps: 1,
  });
  expect(ran).toHaveLength(1);
  expect((await agent.executeTurn("and now?").result).text).toBe("next");
});
