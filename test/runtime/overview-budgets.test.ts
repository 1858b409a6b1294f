import { expect, it } from "vitest";
import { defineAgent, type ModelUse, subagent, type UseByModel } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };
const usage = (inputTokens: number, outputTokens: number) => ({ usage: { inputTokens, outputTokens } });
const tokens = (models: UseByModel | undefined): Record<string, number> =>
  Object.fromEntries(
    Object.entries(models ?? {}).map(([name, use]: [string, ModelUse]) => [name, use.inputTokens + use.outputTokens]),
  );

describeRuntimes("budgets in the overview", (stage) => {
  it("overview and result contain the use of the agent, its tree and each model, and the reservations", async () => {
    const gate = createGate<string>();
    const child = defineAgent({
      name: "child",
      price,
      maxOutputTokens: 300,
      model: scriptedModel(
        (_request, { signal }) => ({ text: "seen", delayUntil: gate.pass(signal), ...usage(20, 30) }),
        {
          name: "small",
        },
      ),
    });
    const lead = defineAgent({
      name: "lead",
      price,
      maxOutputTokens: 400,
      budget: { maxTokens: 9_000 },
      model: scriptedModel(
        [
          { toolCalls: [{ name: "child", arguments: { input: "look" } }], ...usage(100, 10) },
          { text: "done", ...usage(150, 5) },
        ],
        { name: "large" },
      ),
      tools: [subagent(child, { budget: { maxTokens: 5_000 } })],
    });
    const runtime = await stage().open({ agents: [lead] });
    const { overview } = runtime;
    const agent = await runtime.agent("lead", { agentId: "o" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const budgets = () => overview.getSnapshot().context.budgets;
    const childId = Object.keys(budgets()).find((id) => id !== "o") ?? "";
    const during = budgets()["o"]?.accounts["turn:o#1"];
    expect(during).toMatchObject({ limits: { maxTokens: 9_000 }, used: { tokens: 110 } });
    expect(during?.reserved.tokens).toBeGreaterThan(300);
    expect(budgets()[childId]?.accounts[`agent:${childId}`]?.reserved).toEqual(during?.reserved);
    gate.open("go on");
    const { spent } = await turn.result;
    expect(spent.own).toMatchObject({
      calls: 2,
      inputTokens: 250,
      outputTokens: 15,
      cost: 0.0004,
      unconfirmedCalls: 0,
    });
    expect(spent.tree).toMatchObject({ calls: 3, inputTokens: 270, outputTokens: 45 });
    expect(spent.byModel).toMatchObject({ large: { calls: 2 }, small: { calls: 1, inputTokens: 20, cost: 0.00032 } });
    expect(tokens(budgets()["o"]?.own)).toEqual({ large: 265 });
    expect(tokens(budgets()["o"]?.tree)).toEqual({ large: 265, small: 50 });
    expect(tokens(budgets()[childId]?.own)).toEqual({ small: 50 });
    expect(budgets()["o"]?.accounts["turn:o#1"]?.reserved).toEqual({ tokens: 0, costMicros: 0 });
    expect((await agent.turn("o#1").result).spent).toEqual(spent);
  });

  it("add up over turns, and only the newest turn's account is kept", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel({ text: "done", ...usage(10, 5) }, { name: "one" }),
    });
    const runtime = await stage().open({ agents: [lead] });
    const { overview } = runtime;
    const agent = await runtime.agent("lead", { agentId: "o" });
    await agent.start();
    for (const input of ["1", "2", "3"]) await agent.executeTurn(input).result;
    const seen = overview.getSnapshot().context.budgets["o"];
    expect(tokens(seen?.own)).toEqual({ one: 45 });
    expect(Object.keys(seen?.accounts ?? {})).toEqual(["turn:o#3"]);
    expect((await agent.turn("o#3").result).spent.tree).toMatchObject({ calls: 1, inputTokens: 10, cost: null });
  });

  it("after a stop, a turn without input continues from the history with a new budget", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.filter(({ role }) => role === "tool").length < 2
          ? calling({ name: "helper", arguments: { input: "x" } })
          : `after ${messages.at(-1)?.role}`,
      ),
      tools: [subagent(defineAgent({ name: "helper", model: scriptedModel("helped") }))],
      budget: { maxSteps: 1 },
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "o" });
    await agent.start();
    const first = await agent.executeTurn("go").result;
    expect(first.stop).toMatchObject({
      message: "lead, this turn: 1 of 1 steps",
      wayOn: "agent.executeTurn(null, { budget: { maxSteps: … } }) continues from here with a new budget",
    });
    expect(await agent.executeTurn(null).result).toMatchObject({ status: "stopped", steps: 1 });
    // The runtime's text about the stop is not in the prompt: the model continues from its tools' results.
    expect(await agent.executeTurn(null, { budget: { maxSteps: 5 } }).result).toMatchObject({
      status: "completed",
      text: "after tool",
    });
  });

  it("a turn's budget does not help if the agent's lifetime budget is spent, and the message says so", async () => {
    const lead = defineAgent({ name: "lead", model: scriptedModel({ text: "x", ...usage(100, 0) }) });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "o", budget: { maxTokens: 100 } });
    await agent.start();
    const { stop } = await agent.executeTurn("go", { budget: { maxTokens: 9_000 } }).result;
    expect(stop).toMatchObject({ accountId: "agent:o", limit: "maxTokens", agentId: "o" });
    expect(stop?.message).toMatch(/^lead, its whole life: 0 of 100 tokens/);
    expect(stop?.wayOn).toMatch(/a turn's budget cannot raise the limit/);
  });

  it("a warning is emitted once and names the account", async () => {
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel({ text: "x", ...usage(450, 0) }),
      maxOutputTokens: 50,
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "o" });
    await agent.start();
    const warned = nextEvent(runtime, (event) => event.type === "budget.warning");
    await agent.executeTurn("go", { budget: { maxTokens: 500 } }).result;
    expect(await warned).toMatchObject({ message: "lead, this turn: 450 of 500 tokens (90 %)", used: 450, max: 500 });
  });
});
