import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 2 };

describeRuntimes("overview", (stage) => {
  it("M7: the numbers of a tree are those of its results", async () => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const child = defineAgent({
      name: "child",
      price,
      model: scriptedModel([calling("look"), "child done"]),
      tools: [look],
    });
    const lead = defineAgent({
      name: "lead",
      price,
      model: scriptedModel([calling("look", { name: "child", arguments: { input: "help" } }), "all done"]),
      tools: [look, subagent(child)],
    });
    const runtime = await stage().open({ agents: [lead] });
    const { overview } = runtime;
    const agent = await runtime.agent("lead", { agentId: "o" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    const { agents } = overview.getSnapshot().context;
    const [top] = Object.values(agents).filter(({ parentAgentId }) => parentAgentId === null);
    const [below] = Object.values(agents).filter(({ parentAgentId }) => parentAgentId === "o");
    expect(Object.keys(agents)).toHaveLength(2);
    expect(top).toMatchObject({
      agentId: "o",
      name: "lead",
      status: "ready",
      activity: "idle",
      turns: 1,
      turnId: "o#1",
      steps: result.steps,
      step: 2,
      toolCalls: result.toolCalls,
      runningTools: {},
      text: "all done",
      stopReason: "completed",
      prompt: "go",
      usage: { inputTokens: result.usage.inputTokens, outputTokens: result.usage.outputTokens },
    });
    expect(top?.costMicros).toBe(Math.round((result.cost ?? 0) * 1_000_000));
    expect(top?.costMicros).toBeGreaterThan(0);
    const childTurn = await (await runtime.find(below?.agentId ?? "")).turn(below?.turnId ?? "").result;
    expect(below).toMatchObject({
      name: "child",
      rootAgentId: "o",
      status: "ready",
      steps: 2,
      toolCalls: 1,
      runningTools: {},
      text: "child done",
      prompt: "help",
      usage: { inputTokens: childTurn.usage.inputTokens, outputTokens: childTurn.usage.outputTokens },
    });
  });

  it("M7: shows an agent's activity while it runs", async () => {
    const thought = createGate<string>();
    const acted = createGate<string>();
    const act = defineTool({
      name: "act",
      description: "Acts.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => acted.pass(run.signal),
    });
    const model = scriptedModel(async (_request, { index, signal }) => {
      if (index > 0) return "done";
      await thought.pass(signal);
      return calling("act");
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [act] })] });
    const { overview } = runtime;
    const now = () => overview.getSnapshot().context.agents["o"];
    const agent = await runtime.agent("worker", { agentId: "o" });
    await agent.start();
    expect(now()).toMatchObject({ status: "ready", activity: "idle" });
    const turn = agent.executeTurn("go");
    await thought.reached();
    expect(now()).toMatchObject({ status: "busy", activity: "thinking", step: 1 });
    const started = nextEvent(runtime, ({ type }) => type === "tool.started");
    thought.open("x");
    await acted.reached();
    await started;
    expect(now()).toMatchObject({ activity: "tools", toolCalls: 1, runningTools: { "o#1:1:0": "act" } });
    const paused = agent.pause();
    acted.open("x");
    await paused;
    expect(now()).toMatchObject({ status: "paused", runningTools: {} });
    await agent.resume();
    await turn.result;
    expect(now()).toMatchObject({ status: "ready", activity: "idle", steps: 2, endedAt: stage().clock.now() });
  });
});
