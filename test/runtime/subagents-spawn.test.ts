import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript, reader } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, eventsOfTurn } from "../support/turn-probes.ts";

describeRuntimes("subagents", (stage) => {
  async function started(lead: AgentDefinition, others: readonly AgentDefinition[] = []) {
    const runtime = await stage().open({ agents: [lead, ...others] });
    const agent = await runtime.agent(lead.name, { agentId: "root-1", sessionId: "desk", ownerId: "mia" });
    await agent.start();
    return { runtime, agent };
  }

  it("M3: spawned by the model: a full agent, and only its result enters the parent's history", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("reader", "the paper")])),
      tools: [subagent(reader())],
    });
    const { runtime, agent } = await started(lead);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(await toolTextsOf(agent)).toEqual(["read: the paper"]);
    const [child] = await runtime.list({ rootAgentId: "root-1" }).then((all) => all.filter(({ depth }) => depth > 0));
    expect(child).toMatchObject({
      parentAgentId: "root-1",
      rootAgentId: "root-1",
      depth: 1,
      sessionId: "desk",
      ownerId: "mia",
      status: "ready",
      turnCount: 1,
      openTurnId: null,
    });
    const handle = await runtime.find(child?.agentId ?? "");
    expect((await handle.getMessages()).map(({ content }) => content)).toEqual(["the paper", "read: the paper"]);
    expect(await agent.getMessages()).toHaveLength(4);
  });

  it("children of one round work at the same time, and every event has its path", async () => {
    const gate = createGate();
    const model = scriptedModel(async ({ messages }) => {
      await gate.pass();
      return `read: ${textOf(messages.at(-1)?.content ?? "")}`;
    });
    const slow = defineAgent({ name: "reader", model });
    const inputs = ["a", "b", "c", "d"];
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript(inputs.map((input) => asks("reader", input)))),
      tools: [subagent(slow)],
    });
    const { agent } = await started(lead);
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    await gate.reached(4);
    expect(agent.state.status).toBe("busy");
    gate.open();
    expect((await turn.result).toolCalls).toBe(4);
    expect((await toolTextsOf(agent)).toSorted()).toEqual(inputs.map((input) => `read: ${input}`));
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    const seen = await events;
    const spawned = seen.flatMap((event) => (event.type === "subagent.spawned" ? [event.childId] : []));
    expect(new Set(spawned).size).toBe(4);
    for (const childId of spawned) {
      const own = seen.filter((event) => event.agentId === childId);
      expect(own.map(({ type }) => type)).toContain("turn.completed");
      expect(
        new Set(own.map(({ parentAgentId, rootAgentId, agentName }) => `${parentAgentId} ${rootAgentId} ${agentName}`)),
      ).toEqual(new Set(["root-1 root-1 reader"]));
    }
    expect(seen.filter(({ type }) => type === "subagent.ended")).toHaveLength(4);
    expect(seen.at(-1)).toMatchObject({ type: "turn.completed", agentId: "root-1" });
  });

  it("spawned by a tool with run.spawn(): the same key returns the same child", async () => {
    const definition = reader();
    const seen: unknown[] = [];
    const delegate = defineTool({
      name: "delegate",
      description: "Delegates.",
      parameters: z.object({}),
      effect: "keyed",
      async execute(_args, run) {
        const [first, twin] = await Promise.all([
          run.spawn(definition, "one", { key: "a" }),
          run.spawn(definition, "not read", { key: "a" }),
        ]);
        const again = await run.spawn(definition, "not read either", { key: "a" });
        const other = await run.spawn(definition, "two", { key: "b" });
        seen.push(new Set([first, twin, again, other].map(({ agentId }) => agentId)).size);
        const results = await Promise.all([first.result, again.result, other.result]);
        return results.map(({ status, text }) => `${status}: ${text}`).join("; ");
      },
    });
    const lead = defineAgent({ name: "lead", model: scriptedModel(leadScript(["delegate"])), tools: [delegate] });
    const { runtime, agent } = await started(lead, [definition]);
    const turn = agent.executeTurn("go");
    const events = await eventsOfTurn(turn);
    expect(await toolTextsOf(agent)).toEqual(["completed: read: one; completed: read: one; completed: read: two"]);
    expect(seen).toEqual([2]);
    expect(await runtime.list({ rootAgentId: "root-1" })).toHaveLength(3);
    expect(events.filter(({ type }) => type === "subagent.spawned")).toHaveLength(2);
    // The tool, and the two children it started.
    expect((await turn.result).toolCalls).toBe(3);
  });

  it("spawned with agent.spawn(): the same key returns the same child and the same turn", async () => {
    const definition = reader();
    const lead = defineAgent({ name: "lead", model: scriptedModel("unused") });
    const { runtime, agent } = await started(lead, [definition]);
    const first = await agent.spawn(definition, "one", { key: "a" });
    const again = await agent.spawn(definition, "not read", { key: "a" });
    expect(again.agent.agentId).toBe(first.agent.agentId);
    expect(await Promise.all([first.turn.result, again.turn.result])).toMatchObject([
      { text: "read: one", status: "completed" },
      { text: "read: one", status: "completed" },
    ]);
    expect(await runtime.list({ rootAgentId: "root-1" })).toHaveLength(2);
    expect(first.agent.agentId.startsWith("root-1~")).toBe(true);
  });
});
