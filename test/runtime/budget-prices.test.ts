import { afterEach, expect, it } from "vitest";
import { ModelError } from "../../src/errors/index.ts";
import {
  type Agent,
  type AgentOptions,
  AgentStopError,
  type Budget,
  createRuntime,
  defineAgent,
  InvalidInputError,
  openaiModel,
  type RuntimeOptions,
  subagent,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript } from "../support/leads.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { describeRuntimes } from "../support/runtimes.ts";

const cheap = { inputPerMillion: 1, outputPerMillion: 2 };
const dear = { inputPerMillion: 10, outputPerMillion: 20 };
const usage = { inputTokens: 100, outputTokens: 100 };

describeRuntimes("the cost of a call", (stage) => {
  interface Started {
    readonly agent: Agent;
    readonly model: ScriptedModel;
  }
  async function started(
    options: Partial<AgentOptions>,
    known: Pick<RuntimeOptions, "prices" | "showCosts"> = {},
    script: ModelScript = { text: "done", usage },
    agentId = "worker-1",
  ): Promise<Started> {
    const model = scriptedModel(script, { name: "m", provider: "mine" });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", ...options, model })], ...known });
    const agent = await runtime.agent("worker", { agentId });
    await agent.start();
    return { agent, model };
  }

  const resultOf = async (script: ModelScript, agentId: string, hooks: AgentOptions["hooks"] = {}) =>
    await elapse(stage().clock, (await started({ hooks }, {}, script, agentId)).agent.executeTurn("go").result);

  it("uses the definition's price before the runtime's table, and provider/name before the name", async () => {
    const cases = [
      [{ price: cheap }, { m: dear }, 0.0003],
      [{}, { m: dear }, 0.003],
      [{}, { m: dear, "mine/m": cheap }, 0.0003],
    ] as const;
    for (const [index, [own, prices, cost]] of cases.entries()) {
      const { agent } = await started(own, { prices }, { text: "done", usage }, `worker-${index}`);
      expect(await agent.executeTurn("go").result).toMatchObject({ cost });
    }
  });

  it("is journalled with the call, so another table does not change it", async () => {
    const { agent } = await started({ budget: { maxCost: 1 } }, { prices: { m: cheap } });
    await agent.executeTurn("go").result;
    const [requested] = await entriesOfType(stage().look(), "worker-1", "model.requested");
    expect(requested).toMatchObject({
      price: cheap,
      ask: { price: cheap },
      reservation: { costMicros: expect.any(Number) },
    });
    await agent.shutdown();
    const later = await stage().open({
      agents: [defineAgent({ name: "worker", model: scriptedModel("") })],
      prices: { m: dear },
    });
    const again = await later.agent("worker", { agentId: "worker-1" });
    await again.start();
    expect(await again.turn("worker-1#1").result).toMatchObject({ cost: 0.0003 });
  });

  it("uses the table for calls of hooks and tools as well", async () => {
    const { agent } = await started(
      {
        budget: { maxCost: 1 },
        hooks: {
          beforeLlm: async (_draft, { generate }) =>
            void (await generate({ messages: [{ role: "user", content: "?" }] })),
        },
      },
      { prices: { m: cheap } },
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", cost: 0.0006 });
    const [side] = await entriesOfType(stage().look(), "worker-1", "generate.requested");
    expect(side?.ask.price).toEqual(cheap);
  });

  it("is null where the price is unknown, never 0: for an answered call, a failed one, and a hook's", async () => {
    expect(await resultOf({ text: "done", usage }, "answers")).toMatchObject({ status: "completed", cost: null });
    const cut = new ModelError("cut", { retryable: false, mayHaveBeenSent: true, partialOutputTokens: 5 });
    expect(await resultOf(() => ({ error: cut }), "is-cut")).toMatchObject({ status: "failed", cost: null });
    const hooks: AgentOptions["hooks"] = {
      beforeLlm: async (_draft, { generate }) => {
        await generate({ messages: [{ role: "user", content: "?" }] });
        throw new AgentStopError("enough");
      },
    };
    expect(await resultOf({ text: "done", usage }, "asks", hooks)).toMatchObject({ status: "stopped", cost: null });
    const refusal = new ModelError("no", { retryable: false, mayHaveBeenSent: true, status: 400 });
    expect(await resultOf(() => ({ error: refusal }), "refused")).toMatchObject({ status: "failed", cost: 0 });
  });

  it("is 0 if the price is 0", async () => {
    const price = { inputPerMillion: 0, outputPerMillion: 0 };
    const { agent } = await started({ price, budget: { maxCost: 0.01 } });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", cost: 0 });
  });

  it("an unknown price under a limit is refused before the call; the error names model, provider and two fixes", async () => {
    const { agent, model } = await started({ budget: { maxCost: 1 } });
    const { status, error } = await agent.executeTurn("go").result;
    expect(status).toBe("failed");
    expect(error?.message).toContain('the price of model "m" is not known (provider "mine"), but maxCost needs it');
    expect(error?.message).toContain(
      'createRuntime({ prices: { "m": { inputPerMillion: 0.25, outputPerMillion: 2 } } })',
    );
    expect(error?.message).toContain('for agent "worker" alone with defineAgent({ price:');
    expect(model.calls).toHaveLength(0);
  });

  it("an unknown price of a child is refused as well, even if only a limit far above it applies", async () => {
    const leaf = defineAgent({ name: "leaf", model: scriptedModel("never", { name: "unpriced" }) });
    const middle = defineAgent({
      name: "middle",
      model: scriptedModel(leadScript([asks("leaf", "part")])),
      tools: [subagent(leaf)],
    });
    const lead: Budget = { maxCost: 1 };
    const { agent } = await started(
      { price: cheap, budget: lead, tools: [subagent(middle)] },
      { prices: { scripted: cheap } },
      leadScript([asks("middle", "part")]),
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed" });
    const [spawned] = await entriesOfType(stage().look(), "worker-1", "child.spawned");
    const settled = await entriesOfType(stage().look(), spawned?.childId ?? "", "tool.settled");
    expect(JSON.stringify(settled)).toContain('the price of model \\"unpriced\\" is not known');
    expect(await toolTextsOf(agent)).toHaveLength(1);
  });

  it("an invalid price is refused where it is passed", async () => {
    const wrong = { inputPerMillion: 0.000_000_25, outputPerMillion: 2 };
    expect(() => defineAgent({ name: "a", model: scriptedModel(""), price: wrong })).toThrow(
      /^agent "a": price.inputPerMillion is not valid \(a price per token\? Multiply it by a million\)/,
    );
    const opening = createRuntime({ agents: [], prices: { m: wrong } });
    await expect(opening).rejects.toThrow(InvalidInputError);
    await expect(opening).rejects.toThrow('prices["m"].inputPerMillion');
  });
});

// Real sockets need turns of the event loop; the stores make no difference here.
describeRuntimes(
  "the cost of a call to a known provider",
  (stage) => {
    const servers: ModelServer[] = [];
    afterEach(async () => {
      await Promise.all(servers.splice(0).map((server) => server.stop()));
    });

    async function started(model: string, options: Partial<AgentOptions>, known: Partial<RuntimeOptions> = {}) {
      const server = await startModelServer(() => ({ text: "done", usage: { ...usage, cachedInputTokens: 60 } }));
      servers.push(server);
      const served = openaiModel(model, { apiKey: "key", baseURL: server.baseURL });
      const runtime = await stage().open({
        agents: [defineAgent({ name: "worker", ...options, model: served })],
        ...known,
      });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      return agent;
    }

    it("uses the public prices if a cost limit applies, with cached input cheaper", async () => {
      const agent = await started("gpt-5-mini", { budget: { maxCost: 0.5 } });
      // 40 at 0.25, 60 cached at 0.025, 100 output tokens at 2 dollars per million.
      expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", cost: 0.000212 });
      const [requested] = await entriesOfType(stage().look(), "worker-1", "model.requested");
      expect(requested?.price).toMatchObject({
        inputPerMillion: 0.25,
        cachedInputPerMillion: 0.025,
        outputPerMillion: 2,
      });
    });

    it("is not looked up without a cost limit, unless showCosts is set", async () => {
      const silent = await started("gpt-5-mini", {});
      expect(await silent.executeTurn("go").result).toMatchObject({ cost: null });
    });

    it("is reported without a limit if showCosts is set", async () => {
      const agent = await started("gpt-5-mini", {}, { showCosts: true });
      expect(await agent.executeTurn("go").result).toMatchObject({ cost: 0.000212 });
    });

    it("is unknown for a model whose name only resembles a known one", async () => {
      const agent = await started("gpt-5-mini-of-ours", { budget: { maxCost: 0.5 } });
      expect((await agent.executeTurn("go").result).error?.message).toContain(
        'the price of model "gpt-5-mini-of-ours"',
      );
    });

    it("an implausible usage is counted locally, flagged, and reported as a warning", async () => {
      const server = await startModelServer(() => ({
        text: "The quick brown fox. ".repeat(60),
        usage: { inputTokens: 9, outputTokens: 1 },
      }));
      servers.push(server);
      const model = openaiModel("served", { apiKey: "key", baseURL: server.baseURL });
      const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
      const agent = await runtime.agent("worker", { agentId: "worker-1" });
      await agent.start();
      const { usage: total } = await agent.executeTurn("go").result;
      expect(total).toMatchObject({ inputTokens: 9, estimated: true });
      expect(total.outputTokens).toBeGreaterThan(250);
      const [warning] = await entriesOfType(stage().look(), "worker-1", "warning");
      expect(warning).toMatchObject({
        code: "usage_not_true",
        message: expect.stringContaining("reported 1 output tokens"),
      });
    });
  },
  ["memory"],
);
