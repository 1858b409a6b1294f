import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

describeRuntimes("ends of subagents", (stage) => {
  async function started(lead: AgentDefinition, others: readonly AgentDefinition[] = []) {
    const runtime = await stage().open({ agents: [lead, ...others] });
    const agent = await runtime.agent(lead.name, { agentId: "root-1" });
    await agent.start();
    return { runtime, agent };
  }

  it("a child's failure is an error of its call, and the parent continues", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel({ error: new RangeError("out of range") }) });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("child", "go")])),
      tools: [subagent(child)],
    });
    const { agent } = await started(lead);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect(result.errors).toMatchObject([{ code: "subagent_failed" }]);
    expect(await toolTextsOf(agent)).toEqual(["The subagent failed: out of range"]);
  });

  it("a child stopped by its own budget returns its partial result with a note, and the parent continues", async () => {
    const step = defineTool({ name: "step", description: "Steps.", parameters: z.object({}), execute: () => "on" });
    const child = defineAgent({
      name: "child",
      model: scriptedModel(() => ({ text: "so far, so good", toolCalls: [{ name: "step" }] })),
      tools: [step],
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("child", "go")])),
      tools: [subagent(child, { budget: { maxSteps: 2 } })],
    });
    const { runtime, agent } = await started(lead);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect(await toolTextsOf(agent)).toEqual([
      "The subagent was stopped (steps_limit) before it had finished. What it has: so far, so good",
    ]);
    const [ended] = await entriesOfType(stage().look(), "root-1", "child.ended");
    const accounts = await runtime.accounts("root-1");
    const life = accounts.find(({ id }) => id === `agent:${ended?.childId}`);
    expect(life).toMatchObject({ limits: { maxSteps: 2 }, used: { steps: 2 } });
  });

  it("M5: aborting the parent's turn ends its awaited children and theirs", async () => {
    const gate = createGate<string>();
    const aborted: string[] = [];
    const leaf = defineAgent({
      name: "leaf",
      model: scriptedModel((_request, { signal }) => {
        signal.addEventListener("abort", () => aborted.push("leaf"), { once: true });
        return gate.pass(signal);
      }),
    });
    const middle = defineAgent({
      name: "middle",
      model: scriptedModel(leadScript([asks("leaf", "x"), asks("leaf", "y")])),
      tools: [subagent(leaf)],
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript([asks("middle", "a"), asks("middle", "b")])),
      tools: [subagent(middle)],
    });
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await gate.reached(4);
    const ends: Promise<unknown>[] = [];
    for (const { agentId, openTurnId } of await runtime.list({ rootAgentId: "root-1" })) {
      if (openTurnId !== null) ends.push((await runtime.find(agentId)).turn(openTurnId).result);
    }
    await turn.abort("enough");
    const results = await Promise.all(ends);
    expect(results).toHaveLength(7);
    for (const result of results) expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(aborted).toHaveLength(4);
    for (const record of await runtime.list({ rootAgentId: "root-1" })) expect(record.openTurnId).toBeNull();
    for (const account of await runtime.accounts("root-1")) {
      expect(account).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
    }
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    gate.open("leaf's answer");
    expect((await agent.executeTurn("again").result).status).toBe("completed");
  });

  it("M5: aborting the agent also ends children spawned with agent.spawn()", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const lead = defineAgent({ name: "lead", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const { agent } = await started(lead, [child]);
    const spawned = await agent.spawn(child, "go", { key: "a" });
    const turn = agent.executeTurn("go");
    await gate.reached(2);
    await agent.abort("enough");
    expect(await Promise.all([turn.result, spawned.turn.result])).toMatchObject([
      { status: "stopped", stopReason: "user_requested" },
      { status: "stopped", stopReason: "user_requested" },
    ]);
  });

  it("a child that its tool did not await ends with the parent's turn", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const forget = defineTool({
      name: "forget",
      description: "Starts and forgets.",
      parameters: z.object({}),
      effect: "none",
      async execute(_args, run) {
        const { agentId } = await run.spawn(child, "go", { key: "a" });
        await gate.reached();
        return agentId;
      },
    });
    const lead = defineAgent({ name: "lead", model: scriptedModel(leadScript(["forget"])), tools: [forget] });
    const { runtime, agent } = await started(lead, [child]);
    const result = await agent.executeTurn("go").result;
    expect(result.status).toBe("completed");
    const [childId = ""] = await toolTextsOf(agent);
    const ended = await (await runtime.find(childId)).turn(`${childId}#1`).result;
    expect(ended).toMatchObject({ status: "stopped", stopReason: "user_requested" });
  });

  it("a crash spawns nothing twice: awaited children continue", async () => {
    const hold = createGate<string>();
    const asked: string[] = [];
    const definitionsOf = (name: string, held: boolean) => {
      const child = defineAgent({
        name: "child",
        model: scriptedModel(({ messages }) => {
          const input = textOf(messages.at(-1)?.content ?? "");
          asked.push(`${name}: ${input}`);
          return held && input === "slow" ? hold.pass() : `answer to ${input}`;
        }),
      });
      const model = scriptedModel(leadScript([asks("child", "quick"), asks("child", "slow")]));
      return defineAgent({ name: "lead", model, tools: [subagent(child)] });
    };
    const doomed = await stage().openProcess({ agents: [definitionsOf("first", true)] });
    const before = await doomed.runtime.agent("lead", { agentId: "root-1" });
    await before.start();
    const quickEnded = new Promise<void>((resolve) => {
      doomed.runtime.subscribe((event) => {
        if (event.type === "subagent.ended") resolve();
      });
    });
    before.executeTurn("go");
    await Promise.all([hold.reached(), quickEnded]);
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [definitionsOf("second", false)] });
    const agent = await survivor.find("root-1");
    await survivor.recover();
    const result = await agent.turn("root-1#1").result;
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 2 });
    expect(asked.toSorted()).toEqual(["first: quick", "first: slow", "second: slow"]);
    expect((await toolTextsOf(agent)).toSorted()).toEqual(["answer to quick", "answer to slow"]);
    expect(await survivor.list({ rootAgentId: "root-1" })).toHaveLength(3);
    expect(await entriesOfType(stage().look(), "root-1", "child.spawned")).toHaveLength(2);
  });

  it("a keyed tool that is repeated after a crash finds the children it had started", async () => {
    const hold = createGate<string>();
    const spawned: string[] = [];
    const definitionsOf = (held: boolean) => {
      const child = defineAgent({ name: "child", model: scriptedModel("child's answer") });
      const delegate = defineTool({
        name: "delegate",
        description: "Delegates.",
        parameters: z.object({}),
        effect: "keyed",
        async execute(_args, run) {
          const { agentId, result } = await run.spawn(child, "go", { key: "a" });
          spawned.push(agentId);
          const { text } = await result;
          return held ? await hold.pass() : text;
        },
      });
      const lead = defineAgent({ name: "lead", model: scriptedModel(leadScript(["delegate"])), tools: [delegate] });
      return [lead, child];
    };
    const doomed = await stage().openProcess({ agents: definitionsOf(true) });
    const before = await doomed.runtime.agent("lead", { agentId: "root-1" });
    await before.start();
    before.executeTurn("go");
    await hold.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: definitionsOf(false) });
    const agent = await survivor.find("root-1");
    await survivor.recover();
    const result = await agent.turn("root-1#1").result;
    expect(result).toMatchObject({ status: "completed", toolCalls: 2 });
    expect(await toolTextsOf(agent)).toEqual(["child's answer"]);
    expect(new Set(spawned).size).toBe(1);
    expect(await survivor.list({ rootAgentId: "root-1" })).toHaveLength(2);
    expect(await entriesOfType(stage().look(), "root-1", "child.spawned")).toHaveLength(1);
    const account = (await survivor.accounts("root-1")).find(({ id }) => id === "turn:root-1#1");
    expect(account?.used.treeToolCalls).toBe(2);
  });
});
