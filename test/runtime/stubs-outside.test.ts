// Stubs in the place of tools that other programs run, and subagents that go on after the call that started them.
import { createRuntime, defineAgent, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, onTestFinished, test } from "vitest";
import { callerOf, connected, openDesk } from "../mcp/served-desk.ts";
import { deskCaller, openRemoteServer } from "../remote/remote-server.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { look, rounds, stubbedDesk } from "../support/stubbed-desk.ts";

test("a tool of an MCP server is not called", async () => {
  const desk = await openDesk("http modern");
  const { tools } = await connected({ name: "desk", ...desk.options, tools: { echo: { effect: "none" } } });
  const { runtime } = await callerOf(tools, [{ name: "desk__echo", arguments: { text: "hello" } }]);
  const agent = await runtime.agent("caller", { stubs: [{ tool: "desk__echo", output: "from the stub" }] });
  await agent.start();
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  expect(await toolTextsOf(agent)).toEqual(["from the stub"]);
  expect(desk.effects()).toEqual([]);
});

test("a remote agent gets no task", async () => {
  const desk = await openRemoteServer();
  const { runtime } = await deskCaller(desk, { says: ["hello"] });
  const [tool] = runtime.definitions.get("caller")?.tools.tools ?? [];
  const agent = await runtime.agent("caller", { stubs: [{ tool: tool?.name ?? "", output: "from the stub" }] });
  await agent.start();
  expect((await agent.executeTurn("go").result).status).toBe("completed");
  expect(await toolTextsOf(agent)).toEqual(["from the stub"]);
  expect(await desk.tasks()).toEqual([]);
});

test("a mismatch in a background subagent fails the turn that waits for it", async () => {
  const { desk, ran } = stubbedDesk();
  const lead = defineAgent({
    name: "lead",
    tools: [subagent(desk, { description: "Works.", mode: "background" })],
    model: scriptedModel((_request, { call }) =>
      call?.step === 1
        ? { toolCalls: [{ name: "desk", arguments: { input: rounds(look("1")) } }] }
        : { toolCalls: [{ name: "subagent_wait", arguments: {} }] },
    ),
  });
  const runtime = await createRuntime({ agents: [lead] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("lead", { stubs: [{ tool: "pay", output: "paid" }] });
  await agent.start();
  const result = await agent.executeTurn("go").result;
  expect(result.error).toMatchObject({ code: "stub_mismatch" });
  expect(result.error?.message).toContain('No stub names the tool "look"; there are stubs for pay.');
  expect((await agent.getStubs()).mismatches).toMatchObject([{ tool: "look" }]);
  expect(ran).toEqual([]);
});
