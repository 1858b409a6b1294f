import { describe, expect, it } from "vitest";
import {
  defineAgent,
  fallbackModel,
  InvalidInputError,
  type LanguageModel,
  openaiModel,
  routedModel,
} from "../../src/index.ts";
import { scriptedModel, withModel } from "../../src/testing/index.ts";

const model = (name: string, contextWindow?: number) =>
  scriptedModel("x", { name, provider: `of-${name}`, contextWindow });
const [a, b, c] = [model("a", 1_000), model("b", 500), model("c")];

const stored = (made: LanguageModel) => defineAgent({ name: "desk", model: made }).stored;

const serverOf = (baseURL?: string) =>
  openaiModel("m", { apiKey: "none", ...(baseURL === undefined ? {} : { baseURL }) }).server;

describe("a model made of others", () => {
  it("has the names of its models, and the smallest window", () => {
    expect(fallbackModel([a, b, c])).toMatchObject({ name: "a | b | c", provider: "fallback", contextWindow: 500 });
    expect(routedModel(() => c, { models: [c] })).toMatchObject({ name: "c", provider: "routed" });
    expect(fallbackModel([c])).not.toHaveProperty("contextWindow");
    expect(fallbackModel([a, b], { name: "mine", contextWindow: 9 })).toMatchObject({ name: "mine", contextWindow: 9 });
    expect(fallbackModel(["offline", c]).name).toBe("offline | c");
    expect(fallbackModel(Array.from({ length: 90 }, () => model("long"))).name).toHaveLength(200);
  });

  it("keeps none of the caller's lists", () => {
    const models = [a, b];
    const made = fallbackModel(models);
    models.pop();
    expect(defineAgent({ name: "desk", model: made }).stored.model.models).toHaveLength(2);
  });

  it("refuses to be called itself, and says what to do", async () => {
    const { signal } = new AbortController();
    const refusal = /cannot be called itself: pass it as the model of an agent/;
    for (const made of [fallbackModel([a]), routedModel(() => a, { models: [a] })]) {
      await expect(made.generate({ messages: [] }, { signal })).rejects.toThrow(refusal);
      expect(() => made.countPromptTokens({ messages: [] })).toThrow(refusal);
    }
  });

  it("is part of the stored definition and of its hash, by the models that can be called", () => {
    const nested = stored(routedModel(() => a, { models: [fallbackModel([a, b]), a] }));
    expect(nested.model).toEqual({
      provider: "routed",
      name: "a | b | a",
      contextWindow: 500,
      models: [
        { provider: "of-a", name: "a", contextWindow: 1_000 },
        { provider: "of-b", name: "b", contextWindow: 500 },
      ],
    });
    const hashes = [
      fallbackModel([a, b]),
      fallbackModel([b, a]),
      fallbackModel([a, c]),
      routedModel(() => a, { models: [a, b] }),
    ];
    expect(new Set(hashes.map((made) => stored(made).hash)).size).toBe(4);
    expect(stored(fallbackModel([a, b])).hash).toBe(stored(fallbackModel([a, b], { when: () => true })).hash);
    expect(stored(a).model).not.toHaveProperty("models");
  });

  it("takes no price of a definition", () => {
    const price = { inputPerMillion: 1, outputPerMillion: 2 };
    const told = 'agent "desk": price is that of one model, but its model chooses among a, b';
    expect(() => defineAgent({ name: "desk", model: fallbackModel([a, b]), price })).toThrow(told);
    expect(() => withModel(defineAgent({ name: "desk", model: a, price }), fallbackModel([a, b]))).toThrow(told);
  });
});

it.each<[unknown, unknown, string]>([
  [undefined, undefined, "fallbackModel(): models is undefined; expected a list of models"],
  [[], undefined, "fallbackModel(): models is empty; expected at least one model"],
  [a, undefined, "fallbackModel(): models is an object; expected a list of models"],
  [[a, {}], undefined, "fallbackModel(): models[1] must be a LanguageModel or the name of one"],
  [[a, ""], undefined, "fallbackModel(): models[1] must be a LanguageModel"],
  [[{ ...a, countPromptTokens: undefined }], undefined, "models[0] lacks countPromptTokens(request)"],
  [[{ ...a, name: 5 }], undefined, "models[0].name is 5"],
  [[{ ...a, contextWindow: -1 }], undefined, "models[0].contextWindow is -1"],
  [[{ ...a, server: 7 }], undefined, "models[0].server is 7"],
  [[a], { when: true }, "when is true; expected a function"],
  [[a], { shouldFallback: () => true }, "did you mean when?"],
  [[a], { breaker: true }, "breaker"],
  [[a], { breaker: { failures: 0 } }, "breaker.failures is 0; expected a whole number from 1 to 1000"],
  [[a], { breaker: { windowMs: 0.5 } }, "breaker.windowMs is 0.5"],
  [[a], { breaker: { openMs: -1 } }, "breaker.openMs is -1"],
  [[a], { breaker: { threshold: 3 } }, "did you mean failures?"],
  [[a], { name: " " }, "name is"],
  [[a], { contextWindow: 0 }, "contextWindow is 0"],
])("fallbackModel(%j, %j) is refused", (models, options, told) => {
  const make = (): unknown => fallbackModel(models as LanguageModel[], options as object);
  expect(make).toThrow(InvalidInputError);
  expect(make).toThrow(told);
});

it.each<[unknown, unknown, string]>([
  [undefined, { models: [a] }, "routedModel(): pick is undefined; expected a function"],
  [a, { models: [a] }, "routedModel(): pick is an object"],
  [() => a, undefined, "models is undefined; expected a list of the models that pick may return"],
  [() => a, {}, "models is undefined"],
  [() => a, { models: [] }, "routedModel(): models is empty"],
  [() => a, { models: [5] }, "routedModel(): models[0] must be a LanguageModel"],
  [() => a, { models: [a], name: 5 }, "name is 5"],
  [() => a, { models: [a], contextWindow: Number.NaN }, "contextWindow is NaN"],
  [() => a, { models: [a], when: () => true }, 'has no option "when"'],
])("routedModel(%j, %j) is refused", (pick, options, told) => {
  const make = (): unknown => routedModel(pick as () => LanguageModel, options as { models: LanguageModel[] });
  expect(make).toThrow(InvalidInputError);
  expect(make).toThrow(told);
});

it("openaiModel names its server without secrets", () => {
  expect(serverOf("https://user:password@models.example.com/v1/?key=secret")).toBe("models.example.com/v1");
  expect([serverOf(), serverOf("no url")]).toEqual([undefined, undefined]);
});
