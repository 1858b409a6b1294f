import { expect, it } from "vitest";
import type { BudgetChange } from "../../src/budget/index.ts";
import {
  AgentNotStartedError,
  defineAgent,
  InvalidInputError,
  NotFoundError,
  type Runtime,
  subagent,
  type TroupeEventOf,
} from "../../src/index.ts";
import { AccountFold } from "../../src/inspector/run-model/account-fold.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, nextEvent } from "../support/turn-probes.ts";

const usage = { inputTokens: 100, outputTokens: 100 };
const price = { inputPerMillion: 1, outputPerMillion: 10 };

async function lifeOf(runtime: Runtime, agentId: string) {
  return (await runtime.accounts(agentId)).find(({ id }) => id === `agent:${agentId}`);
}

function clerk(model = scriptedModel(() => ({ text: "done", usage }))) {
  return defineAgent({ name: "clerk", model, price, maxOutputTokens: 300 });
}

describeRuntimes("setBudget()", (stage) => {
  async function opened(budget = { maxTokens: 500 }, definition = clerk()) {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("clerk", { agentId: "desk", budget });
    await agent.start();
    return { runtime, agent };
  }

  it("an agent with a spent lifetime budget works again after its limit is raised", async () => {
    const { runtime, agent } = await opened({ maxTokens: 400 });
    expect(await agent.executeTurn("one").result).toMatchObject({ status: "completed" });
    expect(await agent.executeTurn("two").result).toMatchObject({ status: "stopped", stopReason: "token_limit" });
    await agent.setBudget({ maxTokens: 5_000 });
    expect(await lifeOf(runtime, "desk")).toMatchObject({ limits: { maxTokens: 5_000 }, used: { tokens: 200 } });
    expect(await agent.executeTurn("three").result).toMatchObject({ status: "completed" });
  });

  it("the change is journalled and emitted as a readable event", async () => {
    const { runtime, agent } = await opened();
    const told = nextEvent(runtime, ({ type }) => type === "budget.changed");
    await agent.setBudget({ maxTokens: 700, maxCost: 0.5 });
    const limits = { maxTokens: 700, maxCostMicros: 500_000 };
    const change = { by: "user", accountId: "agent:desk", limits, before: { maxTokens: 500 } };
    expect(await entriesOfType(runtime.stores, "desk", "budget.changed")).toMatchObject([change]);
    expect(((await told) as TroupeEventOf<"budget.changed">).message).toBe(
      "desk, its whole life: 500 tokens → 700 tokens, no limit of cost → $0.50",
    );
    const tree = await runtime.stores.exportTree(runtime.tenant, "desk");
    expect(tree?.accounts).toMatchObject([{ limits, firstLimits: { maxTokens: 500 } }]);
  });

  it("a replay of the journal shows the limits at each moment", async () => {
    const { runtime, agent } = await opened();
    await agent.executeTurn("one").result;
    await agent.setBudget({ maxTokens: 700 });
    await agent.executeTurn("two").result;
    const fold = new AccountFold();
    fold.learn((await runtime.accounts("desk")).filter(({ turnId }) => turnId === null));
    const seen = new Set<number | undefined>();
    for (const entry of await entriesOf(runtime.stores, "desk")) {
      fold.apply("desk", entry);
      seen.add(fold.account("agent:desk")?.limits.maxTokens);
    }
    expect([...seen]).toEqual([500, 700]);
  });

  it("a cost limit that is added mid-turn limits the next call, at the model's price", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(async ({ messages }, { signal }) => {
      if (messages.some(({ role }) => role === "tool")) return { text: "done", usage };
      await gate.pass(signal);
      return { toolCalls: [{ name: "clock" }], usage };
    });
    const { runtime, agent } = await opened({ maxTokens: 90_000 }, clerk(model));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.setBudget({ maxCost: 0.0011 });
    gate.open("");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "cost_limit" });
    const life = await lifeOf(runtime, "desk");
    expect(life?.used.costMicros).toBe(1_100);
    expect(life?.reserved).toEqual({ tokens: 0, costMicros: 0 });
  });

  it("children that wait for each other's reservations continue at once when the raised limit has room for all", async () => {
    const gate = createGate<string>();
    const child = defineAgent({
      name: "child",
      price,
      maxOutputTokens: 300,
      model: scriptedModel(async (_request, { signal }) => {
        await gate.pass(signal);
        return { text: "a part", usage };
      }),
    });
    const toolCalls = ["a", "b", "c"].map((input) => ({ name: "child", arguments: { input } }));
    const model = scriptedModel([
      { toolCalls, usage },
      { text: "done", usage },
    ]);
    const lead = defineAgent({ name: "lead", price, model, maxOutputTokens: 300, tools: [subagent(child)] });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "lead-1", budget: { maxTokens: 700 } });
    await agent.start();
    const turn = agent.executeTurn("go");
    const waiting = async () => (await runtime.stores.waiters(runtime.tenant, "lead-1")).length;
    await expect.poll(waiting).toBe(2);
    await agent.setBudget({ maxTokens: 50_000 });
    await gate.reached(3);
    expect(await waiting()).toBe(0);
    gate.open("");
    expect((await turn.result).status).toBe("completed");
  });

  it("a process that does not run the agent can change its budget, and the owner journals the change", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(async (_request, { signal }) => ({ text: await gate.pass(signal), usage }));
    const { runtime, agent } = await opened({ maxTokens: 500 }, clerk(model));
    const other = await stage().open({ agents: [clerk()] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    const told = nextEvent(runtime, ({ type }) => type === "budget.changed");
    await (await other.find("desk")).setBudget({ maxTokens: 9_000 });
    expect(await lifeOf(runtime, "desk")).toMatchObject({ limits: { maxTokens: 9_000 } });
    // Processes that share only memory read each other's posts at their heartbeats.
    stage().clock.advance(5_000);
    await told;
    gate.open("done");
    expect((await turn.result).status).toBe("completed");
    expect(await entriesOfType(runtime.stores, "desk", "budget.changed")).toHaveLength(1);
  });

  it("the change survives the process that made it, and the next owner journals it once", async () => {
    const first = await stage().openProcess({ agents: [clerk()] });
    const agent = await first.runtime.agent("clerk", { agentId: "desk", budget: { maxTokens: 500 } });
    await agent.start();
    first.kill();
    stage().expireLeases();
    const second = await stage().open({ agents: [clerk()] });
    const found = await second.find("desk");
    await found.setBudget({ maxTokens: 5_000 });
    await found.start();
    expect((await found.executeTurn("one").result).status).toBe("completed");
    expect(await entriesOfType(second.stores, "desk", "budget.changed")).toHaveLength(1);
    expect(await lifeOf(second, "desk")).toMatchObject({ limits: { maxTokens: 5_000 } });
  });

  it.each<[BudgetChange, RegExp]>([
    [{}, /names no limit to change/],
    [{ maxTokens: -1 }, /budget\.maxTokens is -1; expected a whole number/],
    [{ maxCost: Number.NaN }, /budget\.maxCost is NaN/],
    [{ maxToken: 5 } as BudgetChange, /budget\.maxToken is not a limit: did you mean maxTokens\?/],
    [{ max_cost: null } as BudgetChange, /did you mean maxCost\?/],
    [{ deadline: 1 }, /budget\.deadline/],
    [5 as unknown as BudgetChange, /budget is 5; expected limits/],
    [null as unknown as BudgetChange, /budget is null; expected limits/],
  ])("%j is refused and changes nothing", async (change, words) => {
    const { runtime, agent } = await opened();
    await expect(agent.setBudget(change)).rejects.toThrow(InvalidInputError);
    await expect(agent.setBudget(change)).rejects.toThrow(words);
    expect(await entriesOfType(runtime.stores, "desk", "budget.changed")).toEqual([]);
  });

  it("agents without a budget and agents that are shut down are refused", async () => {
    const { runtime, agent } = await opened();
    const free = await runtime.agent("clerk", { agentId: "free" });
    await free.start();
    await expect(free.setBudget({ maxTokens: 5 })).rejects.toThrow(/was created without a budget for its life/);
    await agent.shutdown();
    await expect(agent.setBudget({ maxTokens: 5 })).rejects.toThrow(AgentNotStartedError);
    await expect(runtime.find("nobody").then((one) => one.setBudget({ maxTokens: 5 }))).rejects.toThrow(NotFoundError);
  });

  it("creating an existing agent with another budget is refused", async () => {
    const { runtime, agent } = await opened();
    const again = (maxTokens: number) => runtime.agent("clerk", { agentId: "desk", budget: { maxTokens } });
    await again(500);
    await expect(again(600)).rejects.toThrow(
      /exists with another budget for its life; .*change it with agent\.setBudget\(\)/,
    );
    await agent.setBudget({ maxTokens: 600 });
    // The current budget, and the one that the agent's program still passes.
    await again(600);
    await again(500);
    await runtime.agent("clerk", { agentId: "desk" });
    await expect(again(700)).rejects.toThrow(InvalidInputError);
    await runtime.agent("clerk", { agentId: "free" });
    await expect(runtime.agent("clerk", { agentId: "free", budget: { maxTokens: 1 } })).rejects.toThrow(
      /was created without a budget for its life/,
    );
  });
});
