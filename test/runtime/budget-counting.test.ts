import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  type Budget,
  defineAgent,
  defineTool,
  type LanguageModel,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType } from "../support/journal-probes.ts";
import { leadScript, asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

interface CountedModel extends LanguageModel {
  readonly counts: () => number;
}

/** A model whose adapter counts with the given function and bounds every prompt at 9,000 tokens. */
function countedBy(model: LanguageModel, count: LanguageModel["countPromptTokens"]): CountedModel {
  let counts = 0;
  return {
    ...model,
    counts: () => counts,
    boundPromptTokens: () => 9_000,
    countPromptTokens: (request) => {
      counts += 1;
      return count(request);
    },
  };
}

/** A hundred tokens per message. */
const bySize: LanguageModel["countPromptTokens"] = ({ messages }) => 100 * messages.length;

const step = defineTool({
  name: "step",
  description: "Steps on.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "on",
});

describeRuntimes("the prompt size before a call", (stage) => {
  async function started(
    options: Pick<AgentOptions, "model"> & Partial<AgentOptions>,
    life?: Budget,
  ): Promise<{ runtime: Runtime; agent: Agent }> {
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", ...options })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", budget: life });
    await agent.start();
    return { runtime, agent };
  }

  const reservedFor = async (agentId = "worker-1"): Promise<number[]> =>
    (await entriesOfType(stage().look(), agentId, "model.requested")).map(
      ({ reservation }) => (reservation?.tokens ?? 0) - (reservation?.outputTokens ?? 0),
    );

  it.each<[string, Budget | undefined, Budget | undefined]>([
    ["without any limit", undefined, undefined],
    ["with limits on steps and time alone", { maxSteps: 5, maxSeconds: 60 }, { maxToolCalls: 9 }],
  ])("%s the prompt's bytes are reserved and no tokens are counted", async (_limits, budget, life) => {
    const model = countedBy(scriptedModel("done"), () => 30);
    const { agent } = await started({ model, budget }, life);
    await agent.executeTurn("go").result;
    expect(model.counts()).toBe(0);
    expect(await reservedFor()).toEqual([9_000]);
  });

  it.each<[string, Budget | undefined, Budget | undefined]>([
    ["the turn's tokens", { maxTokens: 20_000 }, undefined],
    ["the turn's tokens, however large it is,", { maxTokens: 900_000_000 }, undefined],
    ["the turn's cost", { maxCost: 1 }, undefined],
    ["the tokens of the agent's life", undefined, { maxTokens: 20_000 }],
  ])("the prompt is counted under a limit on %s", async (_limit, budget, life) => {
    const model = countedBy(scriptedModel("done"), () => 30);
    const price = { inputPerMillion: 1, outputPerMillion: 1 };
    const { agent } = await started({ model, budget, price }, life);
    await agent.executeTurn("go").result;
    expect(await reservedFor()).toEqual([30]);
  });

  it("a child's prompt is counted if a limit above it applies, and not otherwise", async () => {
    for (const budget of [{ maxTokens: 50_000 }, undefined]) {
      const model = countedBy(scriptedModel("a part"), () => 30);
      const lead = defineAgent({
        name: "lead",
        model: scriptedModel(leadScript([asks("child", "part")])),
        tools: [subagent(defineAgent({ name: "child", model }))],
        budget,
      });
      const runtime = await stage().open({ agents: [lead] });
      const agent = await runtime.agent("lead", { agentId: budget ? "bound" : "free" });
      await agent.start();
      await agent.executeTurn("go").result;
      expect(model.counts()).toBe(budget ? 1 : 0);
    }
  });

  it("a strict budget reserves the bytes, for the agent and its children, without counting", async () => {
    const model = countedBy(scriptedModel("a part"), () => 30);
    const lead = defineAgent({
      name: "lead",
      model: countedBy(scriptedModel(leadScript([asks("child", "part")])), () => 30),
      tools: [subagent(defineAgent({ name: "child", model }))],
      budget: { maxTokens: 100_000, strict: true },
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "lead-1" });
    await agent.start();
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed" });
    expect(model.counts()).toBe(0);
    const [spawned] = await entriesOfType(stage().look(), "lead-1", "child.spawned");
    expect(await reservedFor(spawned?.childId)).toEqual([9_000]);
  });

  it.each<[string, LanguageModel["countPromptTokens"], RegExp]>([
    [
      "throws",
      () => {
        throw new Error("no table");
      },
      /\(no table\); its bytes are reserved instead: 9000/,
    ],
    [
      "rejects",
      async () => {
        throw new Error("no table");
      },
      /\(no table\)/,
    ],
    ["gives no number", () => Number.NaN, /counted NaN/],
    ["gives a negative number", async () => -5, /counted -5/],
    ["gives something else", () => "many" as unknown as number, /counted the text "many"/],
    ["hangs", () => new Promise<number>(() => undefined), /took more than 5000 ms/],
  ])(
    "a count that %s causes a larger reservation and a warning, and the turn continues",
    async (_how, count, words) => {
      const model = countedBy(scriptedModel([calling("step"), "done"]), count);
      const { agent } = await started({ model, tools: [step], budget: { maxTokens: 50_000 } });
      const result = await elapse(stage().clock, agent.executeTurn("go").result);
      expect(result).toMatchObject({ status: "completed", text: "done" });
      const [before] = await reservedFor();
      expect(before).toBe(9_000);
      const warnings = await entriesOfType(stage().look(), "worker-1", "warning");
      expect(warnings).toMatchObject([{ code: "prompt_not_counted", message: expect.stringMatching(words) }]);
    },
  );

  it("an abort ends the turn at once while a count hangs", async () => {
    const gate = createGate<number>();
    const model = countedBy(scriptedModel("never"), () => gate.pass());
    const { agent } = await started({ model, budget: { maxTokens: 50_000 } });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", steps: 0 });
    gate.open(5);
  });

  it("a fraction of a token counts as a whole token", async () => {
    const model = countedBy(scriptedModel("done"), () => 30.2);
    const { agent } = await started({ model, budget: { maxTokens: 20_000 } });
    await agent.executeTurn("go").result;
    expect(await reservedFor()).toEqual([31]);
  });
});

describeRuntimes(
  "the provider's reported token count",
  (stage) => {
    const open = async (reported: number): Promise<{ agent: Agent; asked: () => Promise<number[]> }> => {
      const usage = { inputTokens: reported, outputTokens: 10 };
      const script = [
        { toolCalls: [{ name: "step" }], usage },
        { text: "done", usage },
        { text: "and so on", usage },
      ];
      const model = countedBy(scriptedModel(script), bySize);
      const bounded = {
        ...model,
        boundPromptTokens: (request: { messages: readonly unknown[] }) => 900 * request.messages.length,
      };
      const worker = defineAgent({ name: "worker", model: bounded, tools: [step], budget: { maxTokens: 50_000 } });
      const agent = await (await stage().open({ agents: [worker] })).agent("worker", { agentId: "worker-1" });
      await agent.start();
      const asked = async (): Promise<number[]> =>
        (await entriesOfType(stage().look(), "worker-1", "model.requested")).map(({ ask }) => ask.promptTokens);
      return { agent, asked };
    };

    it("is the base of the next prompt's count, across turns too", async () => {
      const { agent, asked } = await open(40);
      await agent.executeTurn("go").result;
      await agent.executeTurn("go on").result;
      // 1 message; 3 with the call and its result; 5 with the answer and the next question.
      expect(await asked()).toEqual([100, 40 + 200, 40 + 200]);
    });

    it("raises the count of the other messages if that was too low", async () => {
      const { agent, asked } = await open(150);
      await agent.executeTurn("go").result;
      expect(await asked()).toEqual([100, 150 + 300]);
    });
  },
  ["memory", "sqlite"],
);

describeRuntimes(
  "after a restart",
  (stage) => {
    it("a prompt is counted from scratch", async () => {
      const usage = { inputTokens: 7, outputTokens: 10 };
      const worker = (): ReturnType<typeof defineAgent> =>
        defineAgent({
          name: "worker",
          model: countedBy(scriptedModel({ text: "done", usage }), bySize),
          budget: { maxTokens: 50_000 },
        });
      const before = await stage().open({ agents: [worker()] });
      const agent = await before.agent("worker", { agentId: "worker-1" });
      await agent.start();
      await agent.executeTurn("go").result;
      await agent.shutdown();
      await agent.start();
      await agent.executeTurn("go on").result;
      const asked = await entriesOfType(stage().look(), "worker-1", "model.requested");
      expect(asked.map(({ ask }) => ask.promptTokens)).toEqual([100, 300]);
    });
  },
  ["memory", "sqlite"],
);
