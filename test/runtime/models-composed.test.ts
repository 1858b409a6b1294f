import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  defineAgent,
  defineTool,
  dropOldest,
  fallbackModel,
  type LanguageModel,
  ModelError,
  type ModelChoice,
  routedModel,
  type Runtime,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOf, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { SpokenModel } from "../support/spoken-model.ts";
import { Reader } from "../support/text-reader.ts";
import { createGate, eventsOfTurn } from "../support/turn-probes.ts";

type Failure = ConstructorParameters<typeof ModelError>[1];
const failing = (message: string, options: Partial<Failure> = {}) => ({
  error: new ModelError(message, { retryable: true, mayHaveBeenSent: true, status: 503, ...options }),
});

const prices = {
  a: { inputPerMillion: 1, outputPerMillion: 10 },
  b: { inputPerMillion: 100, outputPerMillion: 1_000 },
  c: { inputPerMillion: 7, outputPerMillion: 70 },
};

function named(name: string, script: ModelScript, options: { contextWindow?: number; provider?: string } = {}) {
  return scriptedModel(script, { name, provider: `of-${name}`, ...options });
}

const isSide = (text: unknown): boolean => text === "sum up";

/** The reasoning in each request, by answer. */
const reasonings = (calls: ScriptedModel["calls"]) =>
  calls.map(({ messages }) =>
    messages.flatMap((message) => (message.role === "assistant" ? [JSON.stringify(message.reasoning ?? null)] : [])),
  );

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

describeRuntimes("models made of others", (stage) => {
  async function started(
    model: LanguageModel,
    options: Partial<AgentOptions> = {},
  ): Promise<{ runtime: Runtime; agent: Agent }> {
    const definition = defineAgent({ name: "worker", maxOutputTokens: 100, ...options, model });
    const runtime = await stage().open({ agents: [definition], random: () => 0.5, prices });
    const agent = await runtime.agent("worker", { agentId: "w", budget: { maxCost: 1, maxTokens: 100_000 } });
    await agent.start();
    return { runtime, agent };
  }

  const result = (agent: Agent, input = "go") => elapse(stage().clock, agent.executeTurn(input).result);
  const requested = async () =>
    (await entriesOfType(stage().look(), "w", "model.requested")).map(
      ({ step, attempt, model, provider, route, reservation, price }) => {
        expect(reservation?.model).toBe(model);
        expect(price).toEqual(prices[model as keyof typeof prices]);
        return [step, attempt, `${provider}/${model}`, route];
      },
    );

  const calledNames = async (): Promise<unknown[]> => (await requested()).map(([, , name]) => name);

  it("a fallback is the next attempt, at once, reserved, priced and journalled under the model that is called", async () => {
    const a = named("a", [failing("down", { partialInputTokens: 50, partialOutputTokens: 10 })]);
    const b = named("b", [{ text: "from b", usage: { inputTokens: 20, outputTokens: 5 } }]);
    const { agent } = await started(fallbackModel([a, b]));
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    const ended = await elapse(stage().clock, turn.result);
    expect(ended).toMatchObject({ status: "completed", text: "from b", steps: 1 });
    expect(await requested()).toEqual([
      [1, 1, "of-a/a", [0]],
      [1, 2, "of-b/b", [1]],
    ]);
    const restart = (await events).find((event) => event.type === "step.restarted");
    expect(restart).toMatchObject({ attempt: 2, model: "b", provider: "of-b", error: { message: "down" } });
    expect(restart).toMatchObject({ retryAt: restart?.at });
    expect(ended.spent.byModel).toMatchObject({
      a: { calls: 1, cost: (50 * 1 + 10 * 10) / 1e6 },
      b: { calls: 1, cost: (20 * 100 + 5 * 1_000) / 1e6 },
    });
    const account = (await stage().look().accounts("default", "w")).find(({ id }) => id === "turn:w#1");
    expect(account?.used.costMicros).toBe(150 + 7_000);
    expect(account?.reserved).toEqual({ tokens: 0, costMicros: 0 });
    const [answer] = (await agent.getMessages()).filter(({ role }) => role === "assistant");
    expect(answer?.content).toBe("from b");
  });

  it("each attempt is counted by the model that is called, with its own window", async () => {
    const counts: string[] = [];
    const counting = (model: ScriptedModel, tokens: number): LanguageModel => ({
      ...model,
      countPromptTokens: () => {
        counts.push(model.name);
        return tokens;
      },
    });
    const a = counting(named("a", [failing("down", { mayHaveBeenSent: false })]), 11);
    const b = counting(named("b", ["fine"], { contextWindow: 400 }), 22);
    const { agent } = await started(fallbackModel([a, b]), { maxOutputTokens: 1_000 });
    await result(agent, "x".repeat(1_000));
    const asked = await entriesOfType(stage().look(), "w", "model.requested");
    expect(counts).toEqual(["a", "b"]);
    expect(asked.map(({ ask }) => [ask.promptTokens, ask.outputTokens])).toEqual([
      [11, 1_000],
      // 400 less 22 and 5 % of it.
      [22, 376],
    ]);
  });

  it.each<[string, Partial<Failure>, boolean]>([
    ["429", { status: 429 }, true],
    ["a limit of time", { status: undefined, details: { kind: "timeout" } }, true],
    ["a wrong key", { status: 401, retryable: false }, true],
    [
      "no key",
      { status: undefined, retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } },
      true,
    ],
    ["a spent quota", { status: 429, retryable: false, details: { kind: "insufficient_quota" } }, true],
    ["a model that does not exist", { status: 404, retryable: false }, true],
    ["a refused request", { status: 400, retryable: false }, false],
    ["a content filter", { status: 400, retryable: false, details: { providerCode: "content_filter" } }, false],
    [
      "a prompt that is too long, without a larger window",
      { status: 400, retryable: false, details: { kind: "context_length" } },
      false,
    ],
  ])("by default a fallback follows on %s: %s %s", async (_what, options, falls) => {
    const b = named("b", "from b");
    const { agent } = await started(fallbackModel([named("a", [failing("no", options)]), b]));
    const ended = await result(agent);
    expect(ended.status).toBe(falls ? "completed" : "failed");
    expect(b.calls).toHaveLength(falls ? 1 : 0);
  });

  it("`when` decides, is asked once for each failure, and its errors end the attempts with a warning", async () => {
    const seen: string[] = [];
    const refused = failing("refused", { retryable: false, status: 400 });
    const model = (when: (error: ModelError, byDefault: boolean) => boolean) =>
      fallbackModel([named("a", [refused]), named("b", "from b")], { when });
    const first = await started(model((error, byDefault) => seen.push(error.message) > 0 && !byDefault));
    expect(await result(first.agent)).toMatchObject({ text: "from b" });
    expect(seen).toEqual(["refused"]);
    await first.runtime.shutdown();
    for (const when of [
      () => {
        throw new TypeError("my mistake");
      },
      () => "yes" as unknown as boolean,
    ]) {
      const definition = defineAgent({ name: "other", model: model(when) });
      const runtime = await stage().open({ agents: [definition] });
      const agent = await runtime.agent("other", { agentId: `other-${when.toString().length}` });
      await agent.start();
      const turn = agent.executeTurn("go");
      const events = eventsOfTurn(turn);
      expect(await elapse(stage().clock, turn.result)).toMatchObject({
        status: "failed",
        error: { message: "refused" },
      });
      const warning = (await events).find((event) => event.type === "warning");
      expect(warning).toMatchObject({ code: "fallback_failed" });
      expect(warning).toMatchObject({
        message: expect.stringMatching(/when\(\) of fallbackModel (threw: my mistake|returned)/),
      });
      await runtime.shutdown();
    }
  });

  it("maxModelAttempts counts rounds; a model that failed for good is not called again", async () => {
    const a = named("a", () => failing("a is down"));
    const b = named("b", () => failing("b has no key", { status: 401, retryable: false }));
    const c = named("c", () => failing("c is down"));
    const { agent } = await started(fallbackModel([a, b, c], { breaker: false }), { maxModelAttempts: 2 });
    const ended = await result(agent);
    expect(ended).toMatchObject({ status: "failed", stopReason: "retry_limit", error: { message: "c is down" } });
    expect((await requested()).map(([, , model]) => model)).toEqual(["of-a/a", "of-b/b", "of-c/c", "of-a/a", "of-c/c"]);
    const failed = await entriesOfType(stage().look(), "w", "model.failed");
    expect(
      failed.map(({ next, at, retryAt }) => [next?.model, next?.isFallback, retryAt === null ? null : retryAt - at]),
    ).toEqual([
      ["b", true, 0],
      ["c", true, 0],
      // After the first round at most 500 ms, of which the half.
      ["a", false, 250],
      ["c", true, 0],
      [undefined, undefined, null],
    ]);
  });

  it("a round is repeated if one of its models may recover, although the last one cannot", async () => {
    const a = named("a", [failing("down"), "recovered"]);
    const b = named("b", [failing("no key", { status: 401, retryable: false })]);
    const { agent } = await started(fallbackModel([a, b]));
    expect(await result(agent)).toMatchObject({ status: "completed", text: "recovered" });
    expect((await requested()).map(([, , model]) => model)).toEqual(["of-a/a", "of-b/b", "of-a/a"]);
  });

  it("a prompt that is too long goes to a model with a larger window, before the conversation is compacted", async () => {
    const tooLong = { status: 400, retryable: false, details: { kind: "context_length" } };
    const a = named("a", [failing("too long", tooLong)], { contextWindow: 10_000 });
    const b = named("b", "never", { contextWindow: 5_000 });
    const c = named("c", "fits", { contextWindow: 50_000 });
    const { agent } = await started(fallbackModel([a, b, c]), { autoCompact: true });
    expect(await result(agent)).toMatchObject({ text: "fits" });
    expect(b.calls).toHaveLength(0);
    const types = (await entriesOf(stage().look(), "w")).map(({ type }) => type);
    expect(types).not.toContain("context.compacted");
  });

  it("viewers never see half an answer twice: the text of a broken stream is void when the next model begins", async () => {
    const [a, b] = [new SpokenModel(), new SpokenModel()];
    const model = fallbackModel([
      { ...a.model, name: "a" },
      { ...b.model, name: "b" },
    ]);
    const definition = defineAgent({ name: "speaker", model });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("speaker", { agentId: "f" });
    await agent.start();
    const reader = new Reader(stage(), runtime);
    await reader.until("lifecycle.changed");
    const turn = agent.executeTurn("go");
    const broken = await a.next();
    broken.say("The first ha");
    await reader.until("text.delta");
    expect(reader.client.textOf("f", "f#1", 1)).toBe("The first ha");
    broken.fail(new ModelError("cut", { retryable: true, mayHaveBeenSent: true, partialOutputTokens: 3 }));
    const restarted = await reader.until("step.restarted");
    expect(restarted).toMatchObject({ attempt: 2, model: "b" });
    expect(reader.client.textOf("f", "f#1", 1)).toBe("");
    const whole = await b.next();
    whole.say("The whole answer.");
    // Pieces that the first model still sends are not shown.
    broken.say("lf of it");
    const late = new Reader(stage(), runtime);
    expect(await late.until("text.snapshot")).toMatchObject({ text: "The whole answer.", attempt: 2 });
    whole.end();
    await turn.result;
    for (const one of [reader, late]) {
      await one.until("turn.completed");
      expect(one.client.faults).toEqual([]);
      expect(one.client.textOf("f", "f#1", 1)).toBe("The whole answer.");
      one.leave();
    }
  });

  it("each step begins with the first model, and a failed step never runs the tools of a broken answer", async () => {
    const a = named("a", [{ toolCalls: [{ name: "look" }] }, failing("down")]);
    const b = named("b", ["the end"]);
    const { agent } = await started(fallbackModel([a, b]), { tools: [look] });
    expect(await result(agent)).toMatchObject({ status: "completed", text: "the end", steps: 2 });
    expect(await requested()).toEqual([
      [1, 1, "of-a/a", [0]],
      [2, 1, "of-a/a", [0]],
      [2, 2, "of-b/b", [1]],
    ]);
    expect(await entriesOfType(stage().look(), "w", "tool.started")).toHaveLength(1);
  });

  it("routedModel picks by step, by call and by the budget that is left", async () => {
    const choices: (Pick<ModelChoice, "step" | "turn" | "agentName" | "purpose"> & {
      left: object;
      texts: number;
    })[] = [];
    const a = named("a", [
      { toolCalls: [{ name: "look" }], usage: { inputTokens: 1_000, outputTokens: 0 } },
      "second turn",
    ]);
    const b = named("b", "the end");
    const model = routedModel(
      async ({ step, turn, agentName, purpose, messages, budgetLeft }) => {
        choices.push({ step, turn, agentName, purpose, left: await budgetLeft(), texts: messages.length });
        return step === 1 ? a : b;
      },
      { models: [a, b] },
    );
    const { agent } = await started(model, { tools: [look], budget: { maxSteps: 5 } });
    expect(await result(agent)).toMatchObject({ text: "the end", steps: 2 });
    expect(await requested()).toEqual([
      [1, 1, "of-a/a", [0]],
      [2, 1, "of-b/b", [1]],
    ]);
    const common = { turn: 1, agentName: "worker", purpose: "step" };
    expect(choices).toEqual([
      { ...common, step: 1, texts: 1, left: { tokens: 100_000, cost: 1, steps: 5 } },
      { ...common, step: 2, texts: 3, left: { tokens: 99_000, cost: 0.999, steps: 4 } },
    ]);
  });

  it("a choice holds for all attempts of its step", async () => {
    const a = named("a", [failing("down"), failing("still down"), "from a"]);
    const b = named("b", "from b");
    let picks = 0;
    const model = routedModel(
      () => {
        picks += 1;
        return picks === 1 ? a : b;
      },
      { models: [a, b] },
    );
    const { agent } = await started(model);
    expect(await result(agent)).toMatchObject({ text: "from a" });
    expect(picks).toBe(1);
  });

  it.each<[string, () => unknown, RegExp]>([
    [
      "throws",
      () => {
        throw new Error("no idea");
      },
      /^no idea$/,
    ],
    ["rejects", () => Promise.reject(new Error("no idea")), /^no idea$/],
    [
      "returns nothing",
      () => undefined,
      /pick\(\) of routedModel returned undefined; it must return one of its models: a, b/,
    ],
    ["returns a name", () => "a", /returned the text "a"/],
    ["returns another model", () => named("z", "x"), /returned a model named "z" that is not in models/],
  ])("a pick that %s fails the turn, and nothing is called", async (_what, pick, message) => {
    const [a, b] = [named("a", "x"), named("b", "y")];
    const { agent } = await started(routedModel(pick as () => LanguageModel, { models: [a, b] }));
    const ended = await result(agent);
    expect(ended).toMatchObject({ status: "failed" });
    expect(ended.error?.message).toMatch(message);
    expect([...a.calls, ...b.calls]).toEqual([]);
    const account = (await stage().look().accounts("default", "w")).find(({ id }) => id === "turn:w#1");
    expect(account).toMatchObject({ used: { tokens: 0, steps: 0 }, reserved: { tokens: 0 } });
    expect(agent.state.status).toBe("failed");
  });

  it("compositions nest: a fallback of routed models, and a routed model of fallbacks", async () => {
    const a = named("a", [failing("down"), failing("down again")]);
    const b = named("b", ["from b", "from b again"]);
    const c = named("c", "from c");
    const routed = routedModel(() => a, { models: [c, a] });
    const first = await started(fallbackModel([routed, b]));
    expect(await result(first.agent)).toMatchObject({ text: "from b" });
    expect(await requested()).toEqual([
      [1, 1, "of-a/a", [0, 1]],
      [1, 2, "of-b/b", [1]],
    ]);
    await first.runtime.shutdown();
    const fallback = fallbackModel([a, b]);
    const definition = defineAgent({ name: "nested", model: routedModel(() => fallback, { models: [c, fallback] }) });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("nested", { agentId: "n" });
    await agent.start();
    expect(await result(agent)).toMatchObject({ text: "from b again" });
    const routes = (await entriesOfType(stage().look(), "n", "model.requested")).map(({ route }) => route);
    expect(routes).toEqual([
      [1, 0],
      [1, 1],
    ]);
  });

  it("run.generate() falls back too, and each of its attempts is journalled under its model", async () => {
    const a = named("a", ({ messages }) =>
      isSide(messages[0]?.content) ? failing("down") : { toolCalls: [{ name: "sum" }] },
    );
    const b = named("b", ({ messages }) => (isSide(messages[0]?.content) ? "a summary" : "the end"));
    const sum = defineTool({
      name: "sum",
      description: "Sums up.",
      parameters: z.object({}),
      effect: "none",
      execute: async (_args, run) => (await run.generate({ messages: [{ role: "user", content: "sum up" }] })).content,
    });
    const side = fallbackModel([a, b]);
    const model = routedModel(({ step, purpose }) => (purpose === "generate" || step === 1 ? side : b), {
      models: [side, b],
    });
    const { agent } = await started(model, { tools: [sum] });
    const ended = await result(agent);
    expect(ended).toMatchObject({ status: "completed", text: "the end" });
    const asked = await entriesOfType(stage().look(), "w", "generate.requested");
    expect(
      asked.map(({ model: name, provider, route, reservation }) => [name, provider, route, reservation?.model]),
    ).toEqual([
      ["a", "of-a", [0, 0], "a"],
      ["b", "of-b", [0, 1], "b"],
    ]);
    expect((await agent.getMessages()).find(({ role }) => role === "tool")?.content).toBe("a summary");
  });

  it("run.generate() continues with the journalled model after a crash, and calls none again that has failed for good", async () => {
    const gate = createGate<string>();
    const sum = defineTool({
      name: "sum",
      description: "Sums up.",
      parameters: z.object({}),
      effect: "none",
      execute: async (_args, run) => (await run.generate({ messages: [{ role: "user", content: "sum up" }] })).content,
    });
    const noKey = failing("no key", { status: 401, retryable: false });
    const build = (b: ModelScript) => {
      const first = named("a", ({ messages }) => {
        if (isSide(messages[0]?.content)) return noKey;
        return messages.at(-1)?.role === "tool" ? "the end" : { toolCalls: [{ name: "sum" }] };
      });
      const model = fallbackModel([first, named("b", b), named("c", "from c")]);
      return { first, definition: defineAgent({ name: "worker", maxOutputTokens: 100, model, tools: [sum] }) };
    };
    const doomed = await stage().openProcess({ agents: [build(() => gate.pass()).definition], prices });
    const before = await doomed.runtime.agent("worker", { agentId: "w", budget: { maxCost: 1, maxTokens: 100_000 } });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    doomed.kill();
    stage().expireLeases();
    const { first, definition } = build(() => failing("b is down"));
    const survivor = await stage().open({ agents: [definition], prices });
    await survivor.recover();
    const agent = await survivor.find("w");
    expect(await elapse(stage().clock, agent.turn("w#1").result)).toMatchObject({ status: "completed" });
    gate.open("too late");
    expect((await agent.getMessages()).find(({ role }) => role === "tool")?.content).toBe("from c");
    const asked = await entriesOfType(stage().look(), "w", "generate.requested");
    expect(asked.map(({ model }) => model)).toEqual(["a", "b", "b", "c"]);
    const failed = await entriesOfType(stage().look(), "w", "generate.failed");
    expect(failed.map(({ error, next }) => [error.code, next?.model, next?.isFallback])).toEqual([
      ["model_error", "b", true],
      ["interrupted", "b", false],
      ["model_error", "c", true],
    ]);
    expect(first.calls.filter(({ messages }) => isSide(messages[0]?.content))).toHaveLength(0);
    const account = (await stage().look().accounts("default", "w")).find(({ id }) => id === "turn:w#1");
    expect(account).toMatchObject({ reserved: { tokens: 0, costMicros: 0 } });
    expect(account?.unconfirmed.costMicros).toBe(asked[1]?.reservation?.costMicros);
  });

  it("after a compaction a model that refused the prompt as too long is called again in the next round", async () => {
    const tooLong = failing("too long", { status: 400, retryable: false, details: { kind: "context_length" } });
    const a = named("a", ["one", "two", tooLong, "fits now"], { contextWindow: 10_000 });
    const b = named("b", [failing("down")], { contextWindow: 50_000 });
    const c = named("c", [tooLong, failing("down")], { contextWindow: 50_000 });
    const { agent } = await started(fallbackModel([a, b, c], { breaker: false }), {
      autoCompact: { strategy: dropOldest(), keep: 1 },
    });
    await result(agent, "first");
    await result(agent, "second");
    expect(await result(agent, "third")).toMatchObject({ status: "completed", text: "fits now" });
    const types = (await entriesOf(stage().look(), "w")).flatMap((entry) => {
      if (entry.type === "context.compacted") return ["compacted"];
      return entry.type === "model.requested" && entry.turnId === "w#3" ? [entry.model] : [];
    });
    expect(types).toEqual(["a", "b", "c", "compacted", "c", "a"]);
  });

  it("reasoning goes back to the model that wrote it alone", async () => {
    const b = named("b", [{ reasoning: "aha", toolCalls: [{ name: "look" }] }]);
    const a = named("a", [{ reasoning: "hm", toolCalls: [{ name: "look" }] }, failing("down"), "the end"]);
    const { agent } = await started(fallbackModel([a, b]), { tools: [look] });
    expect(await result(agent)).toMatchObject({ text: "the end" });
    expect(reasonings(b.calls)).toEqual([["null"]]);
    expect(reasonings(a.calls).at(-1)).toEqual([expect.stringContaining("hm"), "null"]);
    const written = (await agent.getMessages()).flatMap((one) =>
      one.role === "assistant" ? (one.reasoningBy?.model ?? []) : [],
    );
    expect(written).toEqual(["a", "b"]);
  });

  it("after a crash between two attempts the journalled model is called", async () => {
    const script = named("a", [failing("down", { status: 503 })]);
    const second = createGate<string>();
    const build = (when: () => boolean, text: string, b: ModelScript) =>
      defineAgent({
        name: "worker",
        maxOutputTokens: 100,
        model: fallbackModel([text === "" ? script : named("a", text), named("b", b)], { when }),
      });
    const doomed = await stage().openProcess({
      agents: [
        build(
          () => true,
          "",
          () => second.pass(),
        ),
      ],
      prices,
    });
    const before = await doomed.runtime.agent("worker", { agentId: "w", budget: { maxCost: 1, maxTokens: 100_000 } });
    await before.start();
    before.executeTurn("go");
    await second.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({
      agents: [build(() => false, "from a", "from b")],
      prices,
    });
    await survivor.recover();
    const agent = await survivor.find("w");
    const ended = await elapse(stage().clock, agent.turn("w#1").result);
    second.open("too late");
    expect(ended).toMatchObject({ status: "completed", text: "from b" });
    expect(await requested()).toEqual([
      [1, 1, "of-a/a", [0]],
      [1, 2, "of-b/b", [1]],
      [1, 3, "of-b/b", [1]],
    ]);
    const account = (await stage().look().accounts("default", "w")).find(({ id }) => id === "turn:w#1");
    const asked = await entriesOfType(stage().look(), "w", "model.requested");
    expect(account?.unconfirmed.costMicros).toBe(asked[1]?.reservation?.costMicros);
  });

  it("after a crash between a failure and the next intent the journalled model is called, without asking `when` again", async () => {
    const picking = createGate<LanguageModel>();
    const [a, b, c] = [named("a", [failing("down")]), named("b", "from b"), named("c", "from c")];
    const build = (when: () => boolean, pick: () => LanguageModel | Promise<LanguageModel>) => {
      const model = fallbackModel([a, routedModel(pick, { models: [b, c] })], { when });
      return defineAgent({ name: "worker", maxOutputTokens: 100, model });
    };
    const doomed = await stage().openProcess({
      agents: [
        build(
          () => true,
          () => picking.pass(),
        ),
      ],
    });
    const before = await doomed.runtime.agent("worker", { agentId: "w" });
    await before.start();
    before.executeTurn("go");
    await picking.reached();
    expect(await entriesOfType(stage().look(), "w", "model.failed")).toHaveLength(1);
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({
      agents: [
        build(
          () => false,
          () => c,
        ),
      ],
    });
    await survivor.recover();
    const agent = await survivor.find("w");
    expect(await elapse(stage().clock, agent.turn("w#1").result)).toMatchObject({ text: "from c" });
    picking.open(b);
    expect((await entriesOfType(stage().look(), "w", "model.requested")).map(({ route }) => route)).toEqual([
      [0],
      [1, 1],
    ]);
  });

  it("a definition with other models chooses anew after a crash", async () => {
    const gate = createGate<string>();
    const [a, b, c] = [named("a", () => gate.pass()), named("b", "from b"), named("c", "from c")];
    const doomed = await stage().openProcess({
      agents: [defineAgent({ name: "worker", model: routedModel(() => a, { models: [b, a] }) })],
    });
    const before = await doomed.runtime.agent("worker", { agentId: "w" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({
      agents: [defineAgent({ name: "worker", model: routedModel(() => c, { models: [b, c] }) })],
    });
    await survivor.recover();
    const agent = await survivor.find("w");
    expect(await elapse(stage().clock, agent.turn("w#1").result)).toMatchObject({ text: "from c" });
    gate.open("too late");
  });

  it("a model without a price is refused under maxCost before the first call, also if it would be called last", async () => {
    const [a, b] = [named("a", "x"), named("unpriced", "y")];
    const { agent } = await started(fallbackModel([a, b]));
    const ended = await result(agent);
    expect(ended).toMatchObject({ status: "failed" });
    expect(ended.error?.message).toContain('the price of model "unpriced" is not known (provider "of-unpriced")');
    expect(ended.error?.message).not.toContain("defineAgent({ price");
    expect(a.calls).toEqual([]);
  });

  it("so is a model whose price lacks the rate of the cache entries that it may write", async () => {
    const a = named("a", "x");
    const long: LanguageModel = { ...named("long", "y"), writesLongCache: () => true };
    const definition = defineAgent({ name: "worker", maxOutputTokens: 100, model: fallbackModel([a, long]) });
    const runtime = await stage().open({
      agents: [definition],
      prices: { ...prices, long: { inputPerMillion: 1, cacheWritePerMillion: 1.25, outputPerMillion: 10 } },
    });
    const agent = await runtime.agent("worker", { agentId: "w", budget: { maxCost: 1 } });
    await agent.start();
    const ended = await result(agent);
    expect(ended).toMatchObject({ status: "failed" });
    expect(ended.error?.message).toContain('longer lifetime of model "long" is not known');
    expect(a.calls).toEqual([]);
  });

  it("an open breaker is skipped with a warning, tested by one call, and closed by its answer", async () => {
    let isDown = true;
    const a = named("a", () => (isDown ? failing("down") : "from a"));
    const b = named("b", "from b");
    const model = fallbackModel([a, b], { breaker: { failures: 2, windowMs: 10_000, openMs: 60_000 } });
    const { agent } = await started(model);
    await result(agent, "1");
    await result(agent, "2");
    expect(await calledNames()).toEqual(["of-a/a", "of-b/b", "of-a/a", "of-b/b"]);
    const turn = agent.executeTurn("3");
    const events = eventsOfTurn(turn);
    await elapse(stage().clock, turn.result);
    expect((await calledNames()).slice(4)).toEqual(["of-b/b"]);
    const warning = (await events).find((event) => event.type === "warning");
    expect(warning).toMatchObject({ code: "circuit_open" });
    expect(warning).toMatchObject({
      message: expect.stringMatching(/provider "of-a" is open.*"a" is not called until 2026-/),
    });
    stage().clock.advance(60_000);
    await result(agent, "4");
    expect((await calledNames()).slice(5)).toEqual(["of-a/a", "of-b/b"]);
    await result(agent, "5");
    expect((await calledNames()).slice(7)).toEqual(["of-b/b"]);
    isDown = false;
    stage().clock.advance(60_000);
    expect(await result(agent, "6")).toMatchObject({ text: "from a" });
    expect(await result(agent, "7")).toMatchObject({ text: "from a" });
  });

  it("if all breakers are open, the attempt costs nothing and names the time of the next one", async () => {
    const [a, b] = [named("a", [failing("a down"), "recovered"]), named("b", [failing("b down")])];
    const model = fallbackModel([a, b], { breaker: { failures: 1, windowMs: 10_000, openMs: 60_000 } });
    const { agent } = await started(model);
    const turn = agent.executeTurn("go");
    const events = eventsOfTurn(turn);
    expect(await elapse(stage().clock, turn.result)).toMatchObject({ status: "completed", text: "recovered" });
    const restarts = (await events).filter((event) => event.type === "step.restarted");
    expect(restarts.map(({ model: name }) => name)).toEqual(["b", "a"]);
    const [first, second] = restarts;
    expect(second?.retryAt).toBe((first?.at ?? 0) + 60_000);
  });

  it("a single model behind an open breaker fails with `retryAt`, unsent and free", async () => {
    const a = named("a", () => failing("down"));
    const shared = fallbackModel([a], { breaker: { failures: 1, windowMs: 10_000, openMs: 60_000 } });
    const definitions = ["one", "two"].map((name) => defineAgent({ name, model: shared, maxModelAttempts: 1 }));
    const runtime = await stage().open({ agents: definitions });
    const [one, two] = await Promise.all(definitions.map(({ name }) => runtime.agent(name, { agentId: name })));
    await one?.start();
    await two?.start();
    expect(one && (await result(one))).toMatchObject({ status: "failed", error: { message: "down" } });
    const ended = two && (await result(two));
    expect(ended?.error?.message).toMatch(
      /^The circuit breaker of provider "of-a" is open until 2026-.*was not sent\.$/,
    );
    expect(ended?.usage).toMatchObject({ inputTokens: 0, outputTokens: 0 });
    expect(a.calls).toHaveLength(1);
  });

  it("Retry-After holds for the refused model while another one answers", async () => {
    const a = named("a", [failing("slow down", { status: 429, retryAfterMs: 30_000 }), "from a"]);
    const b = named("b", "from b");
    const { agent } = await started(fallbackModel([a, b]));
    expect(await result(agent, "1")).toMatchObject({ text: "from b" });
    expect(await result(agent, "2")).toMatchObject({ text: "from b" });
    stage().clock.advance(30_000);
    expect(await result(agent, "3")).toMatchObject({ text: "from a" });
  });
});
