import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { atRest, price, startTree, usage } from "../support/spending-tree.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

describeRuntimes("waits for others' reservations", (stage) => {
  it("a call that can never fit stops at once; only calls that can fit later wait", async () => {
    const gate = createGate<{ text: string; usage: typeof usage }>();
    const child = defineAgent({
      name: "child",
      model: scriptedModel((_request, { signal }) => gate.pass(signal)),
      price,
      maxOutputTokens: 1_000,
    });
    const calls = [
      { name: "child", arguments: { input: "small" } },
      { name: "child", arguments: { input: "x".repeat(12_000) } },
      { name: "child", arguments: { input: "small too" } },
    ];
    const { runtime, agent, looked } = await startTree(stage(), {
      child,
      lead: { budget: { maxTokens: 2_000 }, maxOutputTokens: 300 },
      calls,
    });
    const waiting = nextEvent(runtime, (event) => event.type === "turn.waiting");
    const stopped = nextEvent(runtime, (event) => event.type === "turn.stopped" && event.agentId !== "root-1");
    const { result } = agent.executeTurn("go");
    await Promise.all([waiting, stopped, gate.reached()]);
    expect(gate.count).toBe(1);
    gate.open({ text: "a part", usage });
    await result;
    const texts = await toolTextsOf(agent);
    expect(texts.filter((text) => text === "a part")).toHaveLength(2);
    expect(texts.filter((text) => text.includes("(token_limit)"))).toHaveLength(1);
    await looked();
  });

  it("a side call also waits for others' reservations", async () => {
    let running = 0;
    let most = 0;
    const gate = createGate();
    const lead = scriptedModel(async ({ messages }) => {
      if (messages.at(-1)?.content !== "side question") {
        return messages.at(-1)?.role === "tool" ? "the end" : calling("digest", "digest", "digest");
      }
      running += 1;
      most = Math.max(most, running);
      await gate.pass();
      running -= 1;
      return { text: "a summary", usage: { inputTokens: 20, outputTokens: 20 } };
    });
    const digest = defineTool({
      name: "digest",
      description: "Digests.",
      parameters: z.object({}),
      effect: "none",
      async execute(_args, run) {
        const messages = [{ role: "user", content: "side question" }] as const;
        return (await run.generate({ messages, maxOutputTokens: 1_000 })).content;
      },
    });
    const definition = defineAgent({
      name: "lead",
      model: lead,
      tools: [digest],
      budget: { maxTokens: 2_000 },
      maxOutputTokens: 300,
    });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("lead", { agentId: "root-1" });
    await agent.start();
    const { result } = agent.executeTurn("go");
    await gate.reached();
    await loopTurns(3);
    gate.open();
    expect(await result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual(["a summary", "a summary", "a summary"]);
    expect(most).toBe(1);
    await atRest(runtime);
  });

  it("a parent's deadline cuts children in flight and children that wait for room", async () => {
    const gate = createGate<string>();
    const child = defineAgent({
      name: "child",
      model: scriptedModel((_request, { signal }) => gate.pass(signal)),
      price,
      maxOutputTokens: 1_000,
    });
    const deadline = stage().clock.now() + 5_000;
    const { runtime, agent, looked } = await startTree(stage(), {
      child,
      lead: { budget: { maxTokens: 3_000, deadline }, maxOutputTokens: 300 },
    });
    const { result } = agent.executeTurn("go");
    const waiting = nextEvent(runtime, (event) => event.type === "turn.waiting");
    await Promise.all([gate.reached(), waiting]);
    stage().clock.advance(5_000);
    expect(await result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    const children = (await runtime.list({ rootAgentId: "root-1" })).filter(({ depth }) => depth === 1);
    expect(children).toHaveLength(8);
    for (const { agentId } of children) {
      const ended = await (await runtime.find(agentId)).turn(`${agentId}#1`).result;
      expect(ended).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    }
    await looked();
  });
});
