import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { leadScript } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { atRest, eight, price, startTree, usage } from "../support/spending-tree.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

describeRuntimes("budgets of a tree", (stage) => {
  it("M4: 8 parallel children under maxTreeSteps 9 make exactly 8 calls, and the lead makes no second call", async () => {
    const childModel = scriptedModel({ text: "a part", usage });
    const child = defineAgent({ name: "child", model: childModel, price });
    const { agent, model, looked } = await startTree(stage(), { child, lead: { budget: { maxTreeSteps: 9 } } });
    const result = await agent.executeTurn("go").result;
    expect(childModel.calls).toHaveLength(8);
    expect(model.calls).toHaveLength(1);
    expect(result).toMatchObject({ status: "stopped", stopReason: "steps_limit" });
    expect(result.signal).toMatchObject({ limit: "maxTreeSteps", accountId: "turn:root-1#1" });
    expect(await looked()).toBeGreaterThan(8);
  });

  it("M4: under maxTreeSteps 5 four children get their call, and the others report that they were stopped", async () => {
    const childModel = scriptedModel({ text: "a part", usage });
    const child = defineAgent({ name: "child", model: childModel, price });
    const { agent, looked } = await startTree(stage(), { child, lead: { budget: { maxTreeSteps: 5 } } });
    await agent.executeTurn("go").result;
    expect(childModel.calls).toHaveLength(4);
    const texts = await toolTextsOf(agent);
    expect(texts.filter((text) => text === "a part")).toHaveLength(4);
    expect(texts.filter((text) => text.startsWith("The subagent was stopped (steps_limit)"))).toHaveLength(4);
    await looked();
  });

  it("maxTreeToolCalls counts the children's tool calls and the spawns", async () => {
    const step = defineTool({
      name: "step",
      description: "Steps.",
      parameters: z.object({}),
      effect: "none",
      execute: () => 1,
    });
    const child = defineAgent({ name: "child", model: scriptedModel(calling("step")), price, tools: [step] });
    const { runtime, agent, looked } = await startTree(stage(), {
      child,
      lead: { budget: { maxTreeToolCalls: 5 } },
      calls: eight.slice(0, 2),
    });
    await agent.executeTurn("go").result;
    const account = (await runtime.accounts("root-1")).find(({ id }) => id === "turn:root-1#1");
    expect(account?.used).toMatchObject({ toolCalls: 2, treeToolCalls: 5 });
    await looked();
  });

  it.each([
    { title: "tokens", budget: { maxTokens: 3_000 } },
    { title: "cost", budget: { maxCost: 0.02 } },
  ])(
    "mustWait: children wait repeatedly for each other's reservations of $title, and all finish",
    async ({ budget }) => {
      const step = defineTool({
        name: "step",
        description: "Steps.",
        parameters: z.object({}),
        effect: "none",
        execute: () => 1,
      });
      const small = { inputTokens: 20, outputTokens: 10 };
      const childModel = scriptedModel(({ messages }) =>
        messages.filter(({ role }) => role === "tool").length < 3
          ? { toolCalls: [{ name: "step" }], usage: small }
          : { text: "a part", usage: small },
      );
      const child = defineAgent({ name: "child", model: childModel, price, tools: [step], maxOutputTokens: 1_000 });
      const { runtime, agent, looked } = await startTree(stage(), { child, lead: { budget, maxOutputTokens: 300 } });
      let waits = 0;
      runtime.subscribe((event) => {
        if (event.type === "turn.waiting" && event.reason === "budget") waits += 1;
      });
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "completed", text: "the end" });
      expect(await toolTextsOf(agent)).toEqual(Array.from({ length: 8 }, () => "a part"));
      expect(childModel.calls).toHaveLength(32);
      expect(waits).toBeGreaterThan(8);
      await looked();
    },
  );

  it("a child is limited by its own lifetime budget, even if its parent has more left", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel({ text: "a part", usage }), price });
    const { runtime, agent, looked } = await startTree(stage(), {
      child,
      lead: { budget: { maxTokens: 50_000 } },
      childBudget: { maxTokens: 200 },
      calls: eight.slice(0, 1),
    });
    await agent.executeTurn("go").result;
    expect((await toolTextsOf(agent))[0]).toMatch(/stopped \(token_limit\).*child, its whole life: /);
    const [spawned] = await entriesOfType(stage().look(), "root-1", "child.spawned");
    const life = (await runtime.accounts("root-1")).find(({ id }) => id === `agent:${spawned?.childId}`);
    expect(life).toMatchObject({ parentId: "turn:root-1#1", used: { tokens: 0 } });
    await looked();
  });

  it("a child's last step that passes 80 % of the parent's budget triggers the warning", async () => {
    const child = defineAgent({
      name: "child",
      model: scriptedModel({ text: "a part", usage: { inputTokens: 100, outputTokens: 4_000 } }),
      price,
    });
    const { agent } = await startTree(stage(), {
      child,
      lead: { budget: { maxTokens: 5_000 }, maxOutputTokens: 300 },
      calls: eight.slice(0, 1),
    });
    const events = await eventsOfTurn(agent.executeTurn("go"));
    const warnings = events.filter((event) => event.type === "budget.warning");
    expect(warnings.map(({ accountId, limit, used }) => [accountId, limit, used])).toEqual([
      ["turn:root-1#1", "maxTokens", 4_300],
    ]);
  });

  it("F15: after a crash, reservations below are settled once on every account above", async () => {
    const hold = createGate<string>();
    const definitionsOf = (held: boolean) => {
      const model = scriptedModel(() => (held ? hold.pass() : { text: "a part", usage }));
      const child = defineAgent({ name: "child", model, price, maxOutputTokens: 600 });
      return defineAgent({
        name: "lead",
        model: scriptedModel(leadScript(eight.slice(0, 2), { usage })),
        price,
        tools: [subagent(child)],
        budget: { maxTokens: 20_000 },
      });
    };
    const doomed = await stage().openProcess({ agents: [definitionsOf(true)] });
    const before = await doomed.runtime.agent("lead", { agentId: "root-1" });
    await before.start();
    before.executeTurn("go");
    await hold.reached(2);
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [definitionsOf(false)] });
    const agent = await survivor.find("root-1");
    await survivor.recover();
    const result = await elapse(stage().clock, agent.turn("root-1#1").result);
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    const accounts = await survivor.accounts("root-1");
    const turn = accounts.find(({ id }) => id === "turn:root-1#1");
    const below = accounts.filter(({ parentId }) => parentId === "turn:root-1#1");
    const lost = below.reduce((sum, { unconfirmed }) => sum + unconfirmed.tokens, 0);
    expect(lost).toBeGreaterThan(1_200);
    expect(turn?.unconfirmed.tokens).toBe(lost);
    expect(turn?.used.tokens).toBe(lost + 4 * 200);
    expect(turn?.used.treeSteps).toBe(4);
    await atRest(survivor);
  });
});
