import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const save = defineTool({
  name: "save",
  description: "Saves.",
  parameters: z.object({ text: z.string() }),
  effect: "keyed",
  execute: async ({ text }, run) =>
    await run.saveArtifact({ name: "report", contentType: "text/plain", content: text }),
});
const saving = (text: string) => calling({ name: "save", arguments: { text } });

describeRuntimes("artifacts, clear() and resetConversation()", (stage) => {
  async function desk(script: Parameters<typeof scriptedModel>[0]) {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model, tools: [save] })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return { model, runtime, agent };
  }

  it("artifacts with one name are versions, and each version can be read", async () => {
    const { agent, model } = await desk([saving("one"), saving("two"), "done"]);
    await agent.executeTurn("go").result;
    expect((await agent.getArtifacts()).map(({ name, version, size }) => [name, version, size])).toEqual([
      ["report", 1, 3],
      ["report", 2, 3],
    ]);
    expect((await agent.getArtifact("report"))?.content).toBe("two");
    expect((await agent.getArtifact("report", 1))?.content).toBe("one");
    expect(await agent.getArtifact("report", 3)).toBeUndefined();
    const [first] = await agent.getArtifacts();
    expect((await agent.getArtifact(first?.artifactId ?? ""))?.content).toBe("one");
    const told = model.calls.at(-1)?.messages.filter(({ role }) => role === "tool") ?? [];
    expect(told.map(({ content }) => JSON.parse(textOf(content)).version)).toEqual([1, 2]);
  });

  it("clear() deletes messages and artifacts; the next turn starts empty and keeps its number", async () => {
    const { agent, model } = await desk([saving("one"), "first", "second", saving("again"), "third"]);
    await agent.executeTurn("go").result;
    await agent.clear();
    expect(await agent.getMessages()).toEqual([]);
    expect(await agent.getArtifacts()).toEqual([]);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
    expect(await agent.executeTurn("anew").result).toMatchObject({ turnId: "a#2", text: "second" });
    expect(model.calls.at(-1)?.messages.map(({ content }) => content)).toEqual(["anew"]);
    await agent.executeTurn("more").result;
    expect((await agent.getArtifacts()).map(({ version }) => version)).toEqual([1]);
  });

  it("H9: resetConversation() keeps the artifacts", async () => {
    const { agent } = await desk([saving("one"), "first"]);
    await agent.executeTurn("go").result;
    await agent.resetConversation();
    expect(await agent.getMessages()).toEqual([]);
    expect(await agent.getArtifacts()).toHaveLength(1);
  });

  it("a clear is kept across a restart", async () => {
    const { agent, runtime } = await desk(["first"]);
    await agent.executeTurn("go").result;
    await agent.clear();
    await runtime.shutdown();
    const model = scriptedModel("second");
    const later = await stage().open({ agents: [defineAgent({ name: "desk", model, tools: [save] })] });
    const again = await later.find("a");
    await again.start();
    await again.executeTurn("anew").result;
    expect(model.calls[0]?.messages.map(({ content }) => content)).toEqual(["anew"]);
    expect((await again.getTrace("a#1")).map(({ type }) => type)).toEqual(["user_input", "llm_call"]);
  });

  it("is refused while a turn is open, and changes nothing", async () => {
    const gate = createGate<string>();
    const { agent } = await desk(async (_request, { signal }) => await gate.pass(signal));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await expect(agent.clear()).rejects.toMatchObject({ code: "agent_busy", details: { openTurnId: "a#1" } });
    gate.open("done");
    await turn.result;
    expect(await agent.getMessages()).toHaveLength(2);
  });
});
