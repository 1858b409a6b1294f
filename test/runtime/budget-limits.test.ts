import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  type Budget,
  defineAgent,
  defineTool,
  type Runtime,
  subagent,
  textOf,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };
const step = defineTool({
  name: "step",
  description: "Steps on.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "on",
});

describeRuntimes("limits of one agent", (stage) => {
  async function started(
    script: ModelScript,
    options: Partial<AgentOptions>,
    life?: Budget,
  ): Promise<{ runtime: Runtime; agent: Agent; model: ScriptedModel }> {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", tools: [step], ...options, model })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", ...(life ? { budget: life } : {}) });
    await agent.start();
    return { runtime, agent, model };
  }

  const usage = { inputTokens: 100, outputTokens: 50 };
  const alwaysCalls: ModelScript = () => ({ text: "working on it", toolCalls: [{ name: "step" }], usage });

  it.each([
    { limit: "maxSteps", budget: { maxSteps: 3 }, calls: 3, stopReason: "steps_limit" },
    { limit: "maxTreeSteps", budget: { maxTreeSteps: 4 }, calls: 4, stopReason: "steps_limit" },
    { limit: "maxToolCalls", budget: { maxToolCalls: 2 }, calls: 3, stopReason: "steps_limit" },
    { limit: "maxTreeToolCalls", budget: { maxTreeToolCalls: 1 }, calls: 2, stopReason: "steps_limit" },
    { limit: "maxTokens", budget: { maxTokens: 850 }, calls: 4, stopReason: "token_limit" },
    { limit: "maxCostMicros", budget: { maxCost: 0.0045 }, calls: 4, stopReason: "cost_limit" },
  ])(
    "F27: $limit stops a model that always calls a tool, naming the account",
    async ({ limit, budget, calls, stopReason }) => {
      const { runtime, agent, model } = await started(alwaysCalls, { price, budget: { maxSteps: 50, ...budget } });
      const events = eventsOfTurn(agent.executeTurn("go"));
      const [end] = (await events).filter((event) => event.type === "turn.stopped");
      expect(end).toMatchObject({ stopReason, text: "working on it" });
      expect(model.calls).toHaveLength(calls);
      const result = await agent.turn("worker-1#1").result;
      expect(result.signal).toMatchObject({ limit, accountId: "turn:worker-1#1", source: "budget" });
      expect(result.signal?.message).toMatch(/^worker, this turn: /);
      const message = result.signal?.message;
      expect(result.stop).toMatchObject({ reason: stopReason, limit, agentId: "worker-1", message });
      expect((await events).find((event) => event.type === "budget.exhausted")).toMatchObject({ limit, message });
      const [account] = await runtime.accounts("worker-1");
      expect(account).toMatchObject({ reserved: { tokens: 0, costMicros: 0 }, activeCount: 0 });
      expect(account?.used.tokens).toBeLessThanOrEqual(account?.limits.maxTokens ?? Number.POSITIVE_INFINITY);
      expect(account?.used.costMicros).toBeLessThanOrEqual(account?.limits.maxCostMicros ?? Number.POSITIVE_INFINITY);
      expect(orderFault(await agent.getMessages())).toBeUndefined();
      expect(agent.state.status).toBe("ready");
    },
  );

  it("a stopped turn without any text states that it is incomplete", async () => {
    const { agent } = await started(calling("step"), { budget: { maxSteps: 2 } });
    const result = await agent.executeTurn("go").result;
    expect(result.text).toMatch(/^Task incomplete: step limit \(2\) reached \(worker, this turn: /);
    expect(textOf((await agent.getMessages()).at(-1)?.content ?? "")).toBe(result.text);
  });

  it("0 allows nothing, and the turn's own budget replaces the definition's", async () => {
    const { agent, model } = await started("hello", { budget: { maxSteps: 5 } });
    const none = await agent.executeTurn("go", { budget: { maxSteps: 0 } }).result;
    expect(none).toMatchObject({ status: "stopped", stopReason: "steps_limit", steps: 0 });
    expect(model.calls).toHaveLength(0);
    expect((await agent.executeTurn("go").result).status).toBe("completed");
  });

  it("a lifetime budget counts across turns", async () => {
    const { agent } = await started({ text: "hello", usage }, {}, { maxTokens: 400 });
    const [first, second] = [await agent.executeTurn("1").result, await agent.executeTurn("2").result];
    const third = await agent.executeTurn("3").result;
    expect([first.status, second.status]).toEqual(["completed", "stopped"]);
    expect(third).toMatchObject({
      status: "stopped",
      stopReason: "token_limit",
      signal: { accountId: "agent:worker-1" },
    });
  });

  it("a call near the limit gets less output; used plus reserved never exceeds the limit", async () => {
    const { runtime, agent, model } = await started(
      [{ toolCalls: [{ name: "step" }], usage: { inputTokens: 60, outputTokens: 1_000 } }, "the end"],
      { budget: { maxTokens: 2_000 }, maxOutputTokens: 1_500 },
    );
    const looks: Promise<number>[] = [];
    const look = async (): Promise<number> => {
      const [account] = await runtime.accounts("worker-1");
      return account ? account.used.tokens + account.reserved.tokens : 0;
    };
    runtime.subscribe(({ cursor }) => void (cursor !== null && looks.push(look())));
    await agent.executeTurn("go").result;
    const peaks = await Promise.all(looks);
    const [first = 0, second = 0] = model.calls.map(({ maxOutputTokens }) => maxOutputTokens);
    expect(first).toBe(1_500);
    expect(second).toBeLessThan(940);
    expect(second).toBeGreaterThan(256);
    expect(Math.max(...peaks)).toBeLessThanOrEqual(2_000);
    expect(peaks).toContain(2_000);
  });

  it("F16: usage above the reservation is recorded in full, and the next call is refused", async () => {
    const { runtime, agent, model } = await started(
      () => ({ text: "on", toolCalls: [{ name: "step" }], usage: { inputTokens: 9_000, outputTokens: 9_000 } }),
      { budget: { maxTokens: 10_000 } },
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "stopped", stopReason: "token_limit" });
    expect(model.calls).toHaveLength(1);
    expect((await runtime.accounts("worker-1"))[0]).toMatchObject({
      used: { tokens: 18_000 },
      reserved: { tokens: 0 },
    });
  });

  it("warns once at 80 %, even if only the last step passes it", async () => {
    const seen: unknown[] = [];
    const { runtime, agent } = await started(
      [
        { toolCalls: [{ name: "step" }], usage: { inputTokens: 10, outputTokens: 840 } },
        { toolCalls: [{ name: "step" }], usage: { inputTokens: 10, outputTokens: 0 } },
        { text: "the end", usage: { inputTokens: 10, outputTokens: 7_200 } },
      ],
      { budget: { maxTokens: 1_000 }, maxOutputTokens: 50 },
      { maxTokens: 10_000 },
    );
    runtime.subscribe((event) => {
      if (event.type === "budget.warning") seen.push([event.accountId, event.limit, event.used, event.max]);
    });
    const warned = new Promise<void>((resolve) => {
      runtime.subscribe((event) => {
        if (event.type === "budget.warning" && event.accountId === "agent:worker-1") resolve();
      });
    });
    await agent.executeTurn("go").result;
    await warned;
    expect(seen).toEqual([
      ["turn:worker-1#1", "maxTokens", 850, 1_000],
      ["agent:worker-1", "maxTokens", 8_070, 10_000],
    ]);
  });

  it("a deadline in the past allows no call", async () => {
    const deadline = stage().clock.now() - 1;
    const { agent, model } = await started("never", { budget: { deadline } });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "time_limit", steps: 0 });
    expect(model.calls).toHaveLength(0);
  });

  it.each([
    { limit: "deadlineAt", budget: (now: number): Budget => ({ deadline: now + 5_000 }) },
    { limit: "maxActiveMs", budget: (): Budget => ({ maxSeconds: 5 }) },
  ])("$limit cuts a call in flight", async ({ limit, budget }) => {
    const gate = createGate<string>();
    const { agent } = await started((_request, { signal }) => gate.pass(signal), {
      budget: budget(stage().clock.now()),
    });
    const { result } = agent.executeTurn("go");
    await gate.reached();
    stage().clock.advance(4_999);
    expect(agent.state.status).toBe("busy");
    stage().clock.advance(1);
    expect(await result).toMatchObject({ status: "stopped", stopReason: "time_limit", signal: { limit } });
    expect((await result).text).toMatch(/worker, this turn: (?:5 of 5 seconds|its deadline \d{4}-\d\d-\d\d .* UTC)$/);
  });

  it("an invalid budget is refused before anything of the turn is stored", async () => {
    const { agent } = await started("done", {});
    const now = stage().clock.now();
    const budgets = [{ deadline: now - 1 }, { deadline: Math.floor(now / 1_000) }, { maxToken: 5 }, null, 0];
    for (const budget of budgets) {
      await expect(agent.executeTurn("go", { budget: budget as Budget }).result).rejects.toThrow(/^budget/);
    }
    expect(await agent.executeTurn("go").result).toMatchObject({ turnId: "worker-1#1", status: "completed" });
  });

  it("an unknown price under a cost limit is refused with an error that names the model", async () => {
    const { agent, model } = await started("never", { budget: { maxCost: 1 } });
    const result = await agent.executeTurn("go").result;
    expect(result.status).toBe("failed");
    expect(result.error?.message).toMatch(/the price of model "scripted" is not known/);
    expect(model.calls).toHaveLength(0);
  });

  it("the same holds for a child without a price under its parent's limit, and for a lifetime limit", async () => {
    const childModel = scriptedModel("never", { name: "unpriced" });
    const child = defineAgent({ name: "child", model: childModel });
    const { agent } = await started(
      ({ messages }) =>
        messages.at(-1)?.role === "tool" ? "the end" : calling({ name: "child", arguments: { input: "go" } }),
      { price, budget: { maxCost: 1 }, tools: [subagent(child)] },
    );
    expect((await agent.executeTurn("go").result).status).toBe("completed");
    expect((await toolTextsOf(agent))[0]).toMatch(/the price of model "unpriced" is not known/);
    expect(childModel.calls).toHaveLength(0);
  });
});
