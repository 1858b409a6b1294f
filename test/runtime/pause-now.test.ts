import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type Runtime, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

describeRuntimes("pause({ now: true })", (stage) => {
  it("cancels the model call in flight and repeats it after the pause", async () => {
    const gate = createGate<string>();
    const aborted: boolean[] = [];
    const model = scriptedModel(async (_request, { index, signal }) => {
      if (index > 0) return "done";
      signal.addEventListener("abort", () => aborted.push(true));
      return await gate.pass(signal);
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause({ now: true });
    expect(agent.state.status).toBe("paused");
    expect(aborted).toEqual([true]);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "done", steps: 1 });
    expect(model.calls).toHaveLength(2);
    const [account] = await runtime.accounts("a");
    expect(account?.reserved).toEqual({ tokens: 0, costMicros: 0 });
  });

  it("ends the wait of a pause() for the call in flight", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(async (_request, { index, signal }) => (index > 0 ? "done" : await gate.pass(signal)));
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const slow = agent.pause();
    await agent.pause({ now: true });
    await slow;
    await agent.resume();
    expect((await turn.result).text).toBe("done");
  });

  it("cancels the calls of subagents too", async () => {
    const gate = createGate<string>();
    const reader = defineAgent({
      name: "reader",
      model: scriptedModel(async (_request, { index, signal }) => (index > 0 ? "read" : await gate.pass(signal))),
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([calling({ name: "reader", arguments: { input: "x" } }), "done"]),
      tools: [subagent(reader)],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause({ now: true });
    await restOf(runtime);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
  });

  it("does not wait for a tool that only waits in generate()", async () => {
    const gate = createGate<string>();
    const think = defineTool({
      name: "think",
      description: "Thinks.",
      parameters: z.object({}),
      effect: "none",
      execute: async (_args, run) => {
        await gate.pass(run.signal);
        return (await run.generate({ messages: [{ role: "user", content: "sub" }] })).content;
      },
    });
    const model = scriptedModel([calling("think"), "thought", "done"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model, tools: [think] })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    await gate.reached();
    const paused = agent.pause();
    gate.open("");
    await paused;
    expect(agent.state.status).toBe("paused");
    expect(model.calls).toHaveLength(1);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    expect((await events).map(({ type }) => type)).toContain("tool.completed");
  });
});

/** Resolves when every agent of the tree is paused. */
async function restOf(runtime: Runtime): Promise<void> {
  for (;;) {
    const agents = await runtime.list({ rootAgentId: "a" });
    if (agents.every(({ status }) => status === "paused")) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
