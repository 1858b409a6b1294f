import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type LanguageModel, ModelError, textOf } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, entriesOfType, loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };
const nothing = z.object({});
const sideQuestion = { messages: [{ role: "user", content: "sum up" }] } as const;

/** Whether this is the side question rather than the agent's own call. */
function isSide(messages: Parameters<LanguageModel["generate"]>[0]["messages"]): boolean {
  return textOf(messages[0]?.content ?? "") === "sum up";
}

const digesting: ModelScript = ({ messages }) => {
  if (isSide(messages)) return "a summary";
  return messages.at(-1)?.role === "tool" ? "the end" : calling("digest");
};

describeRuntimes("generate() in hooks and tools", (stage) => {
  const accountOf = async (id: string) =>
    (await stage().look().accounts("default", "worker-1")).find((account) => account.id === id);

  it("a hook's side call is metered: reserved, settled, and included in usage and cost", async () => {
    const model = scriptedModel(({ messages }) =>
      isSide(messages)
        ? { text: "a summary", usage: { inputTokens: 100, outputTokens: 20 } }
        : { text: "the end", usage: { inputTokens: 50, outputTokens: 5 } },
    );
    const definition = defineAgent({
      name: "worker",
      model,
      price,
      budget: { maxTokens: 20_000, maxCost: 1 },
      hooks: {
        async beforeLlm(draft, run) {
          const { content } = await run.generate({ ...sideQuestion, maxOutputTokens: 300 });
          draft.add({ role: "system", content });
        },
      },
    });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    expect(result.usage).toMatchObject({ inputTokens: 150, outputTokens: 25 });
    expect(result.cost).toBeCloseTo((150 * 1 + 25 * 10) / 1_000_000, 9);
    expect(result.steps).toBe(1);
    expect(model.calls[0]?.maxOutputTokens).toBe(300);
    const account = await accountOf("turn:worker-1#1");
    expect(account?.used).toMatchObject({ tokens: 175, costMicros: 400, steps: 1 });
    expect(account?.reserved).toEqual({ tokens: 0, costMicros: 0 });
    const [intent] = await entriesOfType(stage().look(), "worker-1", "generate.requested");
    expect(intent?.reservation).toMatchObject({ outputTokens: 300 });
  });

  it("the settings of a side call reach the model", async () => {
    const model = scriptedModel(digesting);
    const settings = {
      maxOutputTokens: 300,
      temperature: 0.2,
      stopSequences: ["END"],
      reasoningEffort: "low",
      providerOptions: { openai: { service_tier: "flex" } },
    } as const;
    const digest = defineTool({
      name: "digest",
      description: "Sums up.",
      parameters: nothing,
      execute: async (_args, run) => (await run.generate({ ...sideQuestion, ...settings })).content,
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [digest] })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    await agent.executeTurn("go").result;
    expect(model.calls.find(({ messages }) => isSide(messages))).toMatchObject(settings);
  });

  it("a tool's side calls are numbered within its run and charged to the agent's turn", async () => {
    const model = scriptedModel(({ messages }) => {
      if (isSide(messages)) return `summary of ${textOf(messages[1]?.content ?? "")}`;
      return messages.at(-1)?.role === "tool" ? "the end" : calling("digest");
    });
    const digest = defineTool({
      name: "digest",
      description: "Digests.",
      parameters: nothing,
      effect: "none",
      async execute(_args, run) {
        const texts = [];
        for (const part of ["a", "b"]) {
          const answer = await run.generate({ messages: [...sideQuestion.messages, { role: "user", content: part }] });
          texts.push(answer.content);
        }
        return texts.join("; ");
      },
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [digest] })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    expect(result.text).toBe("the end");
    expect(textOf((await agent.getMessages()).find(({ role }) => role === "tool")?.content ?? "")).toBe(
      "summary of a; summary of b",
    );
    const answers = await entriesOfType(stage().look(), "worker-1", "generate.responded");
    expect(answers.map(({ run, index }) => [run, index])).toEqual([
      ["worker-1#1:1:0", 0],
      ["worker-1#1:1:0", 1],
    ]);
  });

  it("a refused side call stops the turn and names the account", async () => {
    const model = scriptedModel("never");
    const definition = defineAgent({
      name: "worker",
      model,
      budget: { maxTokens: 1_000 },
      hooks: {
        async beforeLlm(_draft, run) {
          await run.generate({ messages: [{ role: "user", content: "x".repeat(8_000) }] });
        },
      },
    });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "token_limit" });
    expect(result.signal).toMatchObject({ accountId: "turn:worker-1#1", limit: "maxTokens" });
    expect(model.calls).toHaveLength(0);
  });

  it("a side call that the provider refuses costs nothing; the hook sees its error", async () => {
    const refusal = new ModelError("too many requests", {
      retryable: true,
      retryAfterMs: 0,
      status: 429,
      mayHaveBeenSent: true,
    });
    const seen: unknown[] = [];
    const model = scriptedModel(({ messages }) => (isSide(messages) ? { error: refusal } : "the end"));
    const definition = defineAgent({
      name: "worker",
      model,
      budget: { maxTokens: 50_000 },
      hooks: {
        beforeLlm: (_draft, run) =>
          run.generate(sideQuestion).then(undefined, (error: unknown) => void seen.push(error)),
      },
    });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const { usage } = await agent.executeTurn("go").result;
    expect(seen).toEqual([refusal]);
    expect(await accountOf("turn:worker-1#1")).toMatchObject({
      used: { tokens: usage.inputTokens + usage.outputTokens },
      reserved: { tokens: 0 },
      unconfirmed: { tokens: 0 },
    });
  });

  it("F15: a side call cut by an abort is settled once", async () => {
    const gate = createGate<string>();
    const script: ModelScript = ({ messages }, { signal }) =>
      isSide(messages) ? gate.pass(signal) : calling("digest");
    const digest = defineTool({
      name: "digest",
      description: "Digests.",
      parameters: nothing,
      effect: "none",
      execute: async (_args, run) => (await run.generate({ ...sideQuestion, maxOutputTokens: 500 })).content,
    });
    const definition = defineAgent({ name: "worker", model: scriptedModel(script), tools: [digest] });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", budget: { maxTokens: 90_000 } });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    await turn.abort();
    expect((await turn.result).status).toBe("stopped");
    await loopTurns(5);
    expect(await entriesOfType(stage().look(), "worker-1", "generate.failed")).toHaveLength(1);
    const entries = await entriesOf(stage().look(), "worker-1");
    const settled = entries.flatMap((entry) =>
      "settlement" in entry && entry.settlement ? [entry.settlement.tokens] : [],
    );
    const account = await accountOf("agent:worker-1");
    expect(account?.used.tokens).toBe(settled.reduce((sum, tokens) => sum + tokens, 0));
    expect(account?.reserved.tokens).toBe(0);
  });

  it("a side call that is not awaited leaves no reservation behind", async () => {
    const gate = createGate<string>();
    const script: ModelScript = ({ messages }) => {
      if (isSide(messages)) return gate.pass();
      return messages.at(-1)?.role === "tool" ? "the end" : calling("forget");
    };
    const forget = defineTool({
      name: "forget",
      description: "Does not wait.",
      parameters: nothing,
      effect: "none",
      async execute(_args, run) {
        run.generate(sideQuestion).catch(() => undefined);
        await gate.reached();
        return "gone on";
      },
    });
    const definition = defineAgent({ name: "worker", model: scriptedModel(script), tools: [forget] });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", budget: { maxTokens: 90_000 } });
    await agent.start();
    expect((await agent.executeTurn("go").result).status).toBe("completed");
    gate.open("late");
    await loopTurns(5);
    const account = await accountOf("agent:worker-1");
    expect(account?.reserved.tokens).toBe(0);
    expect(account?.unconfirmed.tokens).toBeGreaterThan(0);
    expect((await agent.executeTurn("again").result).status).toBe("completed");
  });

  it("a side call waits until a pause ends", async () => {
    const hold = createGate();
    const digest = defineTool({
      name: "digest",
      description: "Digests.",
      parameters: nothing,
      effect: "none",
      async execute(_args, run) {
        await hold.pass();
        return (await run.generate(sideQuestion)).content;
      },
    });
    const definition = defineAgent({ name: "worker", model: scriptedModel(digesting), tools: [digest] });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const { result } = agent.executeTurn("go");
    await hold.reached();
    const refused = nextEvent(runtime, (event) => event.type === "turn.waiting" && event.reason === "paused");
    const paused = agent.pause();
    await loopTurns(3);
    hold.open();
    await refused;
    await agent.resume();
    await paused;
    expect(await result).toMatchObject({ status: "completed", text: "the end" });
    expect(textOf((await agent.getMessages()).find(({ role }) => role === "tool")?.content ?? "")).toBe("a summary");
  });
});
