// Effects outside that no function of this process has: remote agents, tools of MCP servers, and tools whose effect a newer
// definition no longer declares.
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores } from "../../src/index.ts";
import { fork, scriptedModel } from "../../src/testing/index.ts";
import { callerOf, connected, openDesk } from "../mcp/served-desk.ts";
import { deskCaller, openRemoteServer } from "../remote/remote-server.ts";
import { toolTextsOf } from "../support/journal-probes.ts";

const at = { turn: 1, step: 1 };

test("a remote agent gets no task from a fork, which has the recorded answer", async () => {
  const desk = await openRemoteServer();
  const { agent, runtime, stores } = await deskCaller(desk, { says: ["hello"] });
  await agent.executeTurn("go").result;
  const made = await fork({ stores, agentId: "caller" }, { at, runtime });
  expect(await made.turn.result).toMatchObject({ status: "completed", text: "the end" });
  expect(await toolTextsOf(made.agent)).toEqual(["1: hello"]);
  expect(await desk.tasks()).toHaveLength(1);
});

test("a tool of an MCP server is not called by a fork, except one without an effect", async () => {
  const desk = await openDesk("http modern");
  const { tools } = await connected({
    name: "desk",
    ...desk.options,
    tools: { pay: { idempotencyArgument: "key" }, echo: { effect: "none" } },
  });
  const { agent, runtime, stores } = await callerOf(tools, [
    { name: "desk__pay", arguments: { amount: 5 } },
    { name: "desk__echo", arguments: { text: "hello" } },
  ]);
  await agent.executeTurn("go").result;
  const texts = await toolTextsOf(agent);
  expect(desk.effects()).toHaveLength(1);
  const made = await fork({ stores, agentId: "caller" }, { at, runtime });
  expect((await made.turn.result).status).toBe("completed");
  expect(await toolTextsOf(made.agent)).toEqual(texts);
  expect(desk.effects()).toHaveLength(1);
});

test("a call with an effect stays held back if a newer definition declares none, also after an approval", async () => {
  let paid = 0;
  const deskOf = (effect: "once" | "none") =>
    defineAgent({
      name: "desk",
      model: scriptedModel((_request, { call }) => (call?.step === 1 ? { toolCalls: [{ name: "pay" }] } : "Done.")),
      tools: [
        defineTool({
          name: "pay",
          description: "Pays.",
          parameters: z.object({}),
          effect,
          needsApproval: true,
          execute: () => `payment ${(paid += 1)}`,
        }),
      ],
    });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [deskOf("once")], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("desk", { agentId: "shop" });
  await agent.start();
  await agent.executeTurn("Pay.").settled;
  const made = await fork({ stores, agentId: "shop" }, { at: { turn: 1 }, agents: deskOf("none") });
  onTestFinished(() => made.close());
  for (const { requestId } of await made.runtime.requests({}))
    await made.runtime.decide(requestId, { verdict: "approved" });
  expect((await made.turn.result).status).toBe("completed");
  expect(await toolTextsOf(made.agent)).toEqual([expect.stringContaining("The tool pay was not run")]);
  expect(paid).toBe(0);
});
