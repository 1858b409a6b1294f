import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Stores,
  subagent,
  textOf,
  type Usage,
} from "../../src/index.ts";
import { estimate, type EstimateOptions, scriptedModel } from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

const usage: Usage = { inputTokens: 1_000, outputTokens: 100, cachedInputTokens: 400 };

/** An agent that takes as many steps as its input says, and asks its reader for the input `read`. */
function desk({ instructions = "Be brief.", readerPrompt = "Read." } = {}) {
  const look = defineTool({ name: "look", description: "Looks.", parameters: z.object({}), execute: () => "seen" });
  const reader = defineAgent({
    name: "reader",
    model: scriptedModel({ text: "read", usage: { inputTokens: 50, outputTokens: 5 } }, { name: "small" }),
    instructions: readerPrompt,
  });
  const model = scriptedModel(
    ({ messages }) => {
      const asked = messages.findLast(({ role }) => role === "user");
      const done = messages.length - messages.findLastIndex(({ role }) => role === "user") - 1;
      const input = textOf(asked?.content ?? "");
      if (input === "read" && done === 0) return { toolCalls: [{ name: "reader", arguments: { input: "x" } }], usage };
      if (done / 2 + 1 < Number(input)) return { toolCalls: [{ name: "look" }], usage };
      return { text: "done", usage };
    },
    { name: "large" },
  );
  return defineAgent({
    name: "desk",
    model,
    instructions,
    tools: [look, subagent(reader, { description: "Reads." })],
  });
}

async function recorded(inputs: readonly string[], definition = desk(), stores = memoryStores()): Promise<Stores> {
  const runtime = await createRuntime({ agents: [definition], stores, prices });
  for (const input of inputs) {
    const agent = await runtime.agent("desk", {});
    await agent.start();
    await agent.executeTurn(input, input === "5" ? { budget: { maxSteps: 2 } } : {}).settled;
  }
  return stores;
}

const prices = { large: { inputPerMillion: 1, cachedInputPerMillion: 0.5, outputPerMillion: 10 } };

describe("estimate", () => {
  it("gives the distribution of steps, tokens and time with subagents", async () => {
    const stores = await recorded(["1", "2", "3", "read"]);

    const result = await estimate(stores, {
      agent: desk(),
      prices: { small: { inputPerMillion: 2, outputPerMillion: 20 } },
    });

    expect(result).toMatchObject({ agentName: "desk", runs: 4, isRough: true, others: [], unreadable: [] });
    expect(result.outcomes).toEqual({ completed: 4, stopped: 0, failed: 0 });
    expect(result.steps).toMatchObject({
      runs: 4,
      min: 1,
      p50: { value: 2, upTo: null },
      p90: null,
      p99: null,
      max: 3,
    });
    expect(result.treeSteps?.max).toBe(3);
    expect(result.inputTokens).toMatchObject({ min: 1_000, p50: { value: 2_000 }, max: 3_000 });
    expect(result.cachedInputTokens?.max).toBe(1_200);
    expect(result.outputTokens).toMatchObject({ min: 100, max: 300 });
    expect(result.treeToolCalls?.max).toBe(2);
    expect(result.activeMs?.runs).toBe(4);
  });

  it("counts the recorded cost, and today's price for calls without one", async () => {
    const stores = await recorded(["1", "read"]);

    const unknown = await estimate(stores, { agent: desk() });
    expect(unknown).toMatchObject({ unpriced: 1, costMicros: { runs: 1, max: 600 + 200 + 1_000 } });

    const known = await estimate(stores, {
      agent: desk(),
      prices: { small: { inputPerMillion: 2, outputPerMillion: 20 } },
    });
    expect(known).toMatchObject({ unpriced: 0, pricedToday: 1, costMicros: { runs: 2, max: 2 * 1_800 + 100 + 100 } });
  });

  it("prices the recorded tokens for another model, without a cache rate at the full price", async () => {
    const stores = await recorded(["2"]);
    const price = { inputPerMillion: 10, outputPerMillion: 100 };

    const full = await estimate(stores, { agent: desk(), whatIf: { model: "other", price } });
    expect(full.whatIf).toMatchObject({ model: "other", provider: "scripted", price, costMicros: { max: 40_000 } });
    const cached = await estimate(stores, {
      agent: desk(),
      whatIf: { model: "other", price: { ...price, cachedInputPerMillion: 1 } },
    });
    expect(cached.whatIf?.costMicros?.max).toBe(2 * (6_000 + 400 + 10_000));
    const listed = await estimate(stores, { agent: desk(), whatIf: { model: "openai/gpt-5-mini" } });
    expect(listed.whatIf).toMatchObject({ provider: "openai", model: "gpt-5-mini" });
    await expect(estimate(stores, { agent: desk(), whatIf: { model: "nowhere" } })).rejects.toThrow(
      /no known price of "nowhere" of provider "scripted"; give it with whatIf: \{ price \}/,
    );
  });

  it("counts turns that a limit stopped, and suggests limits from the others", async () => {
    const stores = await recorded(["1", "3", "5"]);

    const result = await estimate(stores, { agent: desk() });

    expect(result.hitBudget).toMatchObject({ runs: 1, of: 3 });
    expect(result.hitBudget.from).toBeGreaterThan(0);
    expect(result.hitBudget.to).toBeLessThan(1);
    expect(result.byLimit).toEqual({ maxSteps: 1 });
    const flags = result.budgets.map(({ flag, stops }) => `${flag} ${stops.runs}/${stops.of}`);
    expect(flags).toContain("--max-steps 3 0/2");
    // The last call needs room for 256 tokens of output: 2 * 1,100 + 1,256 = 3,456.
    expect(flags).toContain("--max-tokens 3500 0/2");
  });

  it("suggests a limit under which the recorded turns pass", async () => {
    const stores = await recorded(["3"]);
    const { budgets } = await estimate(stores, { agent: desk() });
    const budget = Object.fromEntries(
      budgets.filter(({ limit }) => limit !== "maxSeconds").map((one) => [one.limit, one.value]),
    );
    const runtime = await createRuntime({ agents: [desk()], prices });
    const agent = await runtime.agent("desk", {});
    await agent.start();

    expect(Object.keys(budget)).toEqual(["maxSteps", "maxTokens", "maxCost"]);
    expect(await agent.executeTurn("3", { budget }).result).toMatchObject({ stopReason: "completed" });
    await runtime.shutdown();
  });

  it("keeps turns of other definitions apart, subagents included", async () => {
    const stores = await recorded(["1"]);
    await recorded(["2", "2"], desk({ instructions: "Be long." }), stores);
    await recorded(["read", "1"], desk({ readerPrompt: "Read slowly." }), stores);

    const result = await estimate(stores, { agent: desk() });

    // A turn that did not start the changed reader counts.
    expect(result).toMatchObject({ runs: 2, steps: { max: 1 } });
    expect(result.others).toMatchObject([
      { runs: 1, changed: ["reader"] },
      { runs: 2, changed: ["desk"], steps: { max: 2 } },
    ]);
  });

  it("counts the first prompt of the input without running hooks, tools or the model", async () => {
    const ran: string[] = [];
    const model = scriptedModel(() => {
      ran.push("model");
      return "x";
    });
    const note = (): undefined => void ran.push("hook");
    const agent = defineAgent({
      name: "desk",
      model,
      instructions: () => "Long instructions. ".repeat(50),
      hooks: { afterUserInput: note, beforeLlm: note, onComplete: note },
      budget: { maxCost: 1 },
    });

    const short = await estimate(memoryStores(), { agent, input: "Hello." });
    const long = await estimate(memoryStores(), { agent, input: "Hello. ".repeat(1_000) });

    expect(short).toMatchObject({ runs: 0, steps: undefined, budgets: [], hitBudget: { share: null } });
    expect(short.prompt?.tokens).toBeGreaterThan(200);
    expect(long.prompt?.tokens).toBeGreaterThan(1_700);
    expect(ran).toEqual([]);
  });

  it("leaves out open and aborted turns, and takes the newest turns over pages of agents", async () => {
    const stores = await recorded(Array.from({ length: 205 }, (_, index) => (index < 3 ? "2" : "1")));

    expect((await estimate(stores, { agent: desk(), last: 1_000 })).steps).toMatchObject({
      runs: 205,
      p50: { value: 1, upTo: 1 },
      p99: { value: 2, upTo: null },
      max: 2,
    });
    expect((await estimate(stores, { agent: desk(), last: 10 })).steps).toMatchObject({ runs: 10, max: 1 });
  });

  it("refuses wrong options", async () => {
    const stores = memoryStores();
    const options = { agent: desk() };
    for (const field of ["agent", "input", "last", "whatIf", "prices", "tenant"] as const) {
      for (const value of [...classicValues(), ...anyValues(30)]) {
        const given = { ...options, [field]: value } as unknown as EstimateOptions;
        await isTaken(field, async () => await estimate(stores, given));
      }
    }
    for (const value of classicValues()) {
      await isTaken("estimate()", async () => await estimate(stores, value as EstimateOptions));
      await isTaken("estimate()", async () => await estimate(value as Stores, options));
    }
    await expect(estimate(stores, { ...options, model: "x" } as EstimateOptions)).rejects.toThrow(
      /whatIf: \{ model \}/,
    );
    await expect(
      estimate(stores, { ...options, whatIf: { model: "x", price: { inputPerMillion: -1, outputPerMillion: 1 } } }),
    ).rejects.toThrow(/price.*expected dollars per million/);
  });
});
