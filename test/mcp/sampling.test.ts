import { createRuntime, defineAgent, textOf } from "troupe";
import type { McpSamplingOptions } from "troupe/mcp";
import { memoryStores } from "troupe/stores/memory";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { requestOf } from "../support/deciding.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { connected, openDesk, type Way } from "./served-desk.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };

/** An agent that calls a tool of the inn; its model also answers the server. */
async function asked(
  way: Way,
  tool: string,
  options: { sampling?: McpSamplingOptions; budget?: { readonly maxTokens: number } } = {},
) {
  const inn = await openDesk(way, "inn");
  const { sampling = {}, budget = { maxTokens: 100_000 } } = options;
  const { tools } = await connected({ name: "inn", sampling, ...inn.options });
  const model = scriptedModel(({ messages }) => {
    const [first] = messages;
    if (first?.role === "system") {
      return {
        text: `verse on ${textOf(messages.at(-1)?.content ?? "")}`,
        usage: { inputTokens: 950, outputTokens: 20 },
      };
    }
    const usage = { inputTokens: 10, outputTokens: 5 };
    return messages.at(-1)?.role === "user"
      ? { toolCalls: [{ name: `inn__${tool}` }], usage }
      : { text: "done", usage };
  });
  const caller = defineAgent({ name: "caller", model, tools, price });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [caller], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("caller", { agentId: "caller", budget });
  await agent.start();
  const samplings = () => model.calls.filter(({ messages }) => messages[0]?.role === "system");
  return { inn, agent, stores, samplings };
}

describe.each(["http legacy", "http modern", "stdio modern", "stdio legacy"] as const)("over %s", (way) => {
  test("a server's model calls are those of the agent: reserved, journalled and paid", async () => {
    const { agent, stores, samplings, inn } = await asked(way, "write", { budget: { maxTokens: 100_000 } });
    const { usage, cost } = await agent.executeTurn("go").result;
    expect(samplings()).toHaveLength(2);
    expect(samplings()[0]).toMatchObject({
      messages: [
        { role: "system", content: "Be short." },
        { role: "user", content: "draft 1" },
      ],
      maxOutputTokens: 50,
      temperature: 0.5,
      stopSequences: ["END"],
    });
    expect((await toolTextsOf(agent))[0]).toMatch(/^wrote .*verse on draft 2/);
    expect(await entriesOfType(stores, "caller", "generate.responded")).toHaveLength(2);
    expect(usage).toMatchObject({ inputTokens: 1_920, outputTokens: 50 });
    expect(cost).toBeCloseTo((1_920 * 1 + 50 * 10) / 1_000_000, 9);
    expect(inn.effects()).toEqual(["written"]);
  });
});

describe.each(["http legacy", "http modern"] as const)("over %s", (way) => {
  test("no limit is exceeded: the server is refused, and what was spent is exact", async () => {
    const { agent, stores, samplings, inn } = await asked(way, "write", { budget: { maxTokens: 1_000 } });
    const result = await agent.executeTurn("go").result;
    expect(result.status).toBe("stopped");
    expect(samplings()).toHaveLength(1);
    expect(result.usage).toMatchObject({ inputTokens: 960, outputTokens: 25 });
    const [account] = await stores.accounts("default", "caller");
    expect(account?.reserved).toEqual({ tokens: 0, costMicros: 0 });
    expect(account?.used.tokens).toBe(985);
    const [settled] = await entriesOfType(stores, "caller", "tool.settled");
    const isModern = way === "http modern";
    expect(settled?.outcome).toBe(isModern ? "error" : "success");
    expect(inn.effects()).toEqual(isModern ? [] : ["written"]);
  });

  test("a person may have to approve", async () => {
    const { agent, samplings } = await asked(way, "write", { sampling: { needsApproval: true } });
    const turn = agent.executeTurn("go");
    const first = await requestOf(turn);
    expect(first).toMatchObject({ kind: "approval" });
    expect(first.prompt).toMatch(/asks for a model call on the agent's budget:\nsystem: Be short\.\nuser: draft 1/);
    expect(samplings()).toHaveLength(0);
    await agent.decide(first.requestId, { verdict: "approved" });
    const second = await requestOf(turn);
    await agent.decide(second.requestId, { verdict: "rejected" });
    await turn.result;
    expect(samplings()).toHaveLength(1);
    expect((await toolTextsOf(agent))[0]).toMatch(/not approved/);
  });

  test("maxTokens and maxCalls bound what a server can use", async () => {
    const { agent, samplings } = await asked(way, "write", { sampling: { maxTokens: 7, maxCalls: 1 } });
    await agent.executeTurn("go").result;
    expect(samplings().map(({ maxOutputTokens }) => maxOutputTokens)).toEqual([7]);
    expect((await toolTextsOf(agent))[0]).toMatch(/more than 1 model calls in one call/);
  });
});

test("a server that asks the model endlessly is stopped", async () => {
  const { agent, samplings } = await asked("http modern", "restless");
  await agent.executeTurn("go").result;
  expect(samplings()).toHaveLength(10);
  expect((await toolTextsOf(agent))[0]).toMatch(/more than 10/);
});

test("without the option a server cannot use the model", async () => {
  const inn = await openDesk("http modern", "inn");
  const { tools } = await connected({ name: "inn", ...inn.options });
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "user" ? { toolCalls: [{ name: "inn__write" }] } : "done",
  );
  const runtime = await createRuntime({ agents: [defineAgent({ name: "caller", model, tools })] });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("caller");
  await agent.start();
  await agent.executeTurn("go").result;
  expect(model.calls).toHaveLength(2);
  expect((await toolTextsOf(agent))[0]).toMatch(/sampling/);
});
