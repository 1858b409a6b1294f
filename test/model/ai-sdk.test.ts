import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import { createAnthropic } from "@ai-sdk/anthropic";
import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  createRuntime,
  defineAgent,
  defineTool,
  InvalidInputError,
  type LanguageModel,
  ModelError,
  type ModelRequest,
  run,
} from "../../src/index.ts";
import { aiSdkModel } from "../../src/model/ai-sdk.ts";
import type { ModelDelta } from "../../src/model/index.ts";
import { freePort } from "../support/redis-server.ts";
import { familyOf, type ModelFamily } from "./contract/families.ts";
import { familyServer } from "./contract/model-server.ts";

const question: ModelRequest = {
  messages: [{ id: "1", role: "user", createdAt: 0, origin: "user", content: "How high is the Eiger?" }],
};

async function generated(model: LanguageModel, request: ModelRequest = question) {
  const deltas: ModelDelta[] = [];
  const answer = await model.generate(request, {
    signal: new AbortController().signal,
    onDelta: (delta) => deltas.push(delta),
  });
  return { answer, deltas };
}

async function failureOf(model: LanguageModel, request: ModelRequest = question): Promise<ModelError> {
  const failure = await model
    .generate(request, { signal: new AbortController().signal })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ModelError);
  return failure as ModelError;
}

const height = defineTool({
  name: "height",
  description: "Looks a height up.",
  parameters: z.object({ of: z.string() }),
  effect: "none",
  execute: ({ of }) => `${of}: 3,967 m`,
});

const withImage = (url: string): ModelRequest => ({
  messages: [{ id: "1", role: "user", createdAt: 0, origin: "user", content: [{ type: "image", url }] }],
});

const xai = familyOf("xAI");
const novaFamily: ModelFamily = {
  ...familyOf("Amazon Bedrock"),
  model: (baseURL, options) =>
    aiSdkModel(
      createAmazonBedrock({ baseURL, apiKey: "key-for-tests", region: "eu-central-1" })("amazon.nova-2-lite-v1:0"),
      options,
    ),
};

const anthropic = familyOf("Anthropic");
const google = familyOf("Google");
const responses = familyOf("OpenAI Responses");

/** A refusal with the time of the next attempt in its details. */
const detailedRefusal = ({ message, status }: { readonly message: string; readonly status: number }) => {
  const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.2s" }];
  return { body: { error: { code: status, message, status: "RESOURCE_EXHAUSTED", details } } };
};

describe("a thinking budget", () => {
  const options = { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 2_000 } } } };

  test("is part of maxOutputTokens: what is sent never exceeds what is reserved", async () => {
    const server = await familyServer(anthropic, [{ thought: "Alps.", text: "3,967 m." }]);
    await generated(server.model(options), { ...question, maxOutputTokens: 5_000 });
    expect(server.bodies[0]).toMatchObject({ max_tokens: 5_000, thinking: { type: "enabled", budget_tokens: 2_000 } });
  });

  test("that the limit does not cover is refused before the call", async () => {
    const server = await familyServer(anthropic, [{ text: "3,967 m." }]);
    const failure = await failureOf(server.model(options), { ...question, maxOutputTokens: 2_000 });
    expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } });
    expect(failure.message).toMatch(/2000 output tokens are left, and the thinking budget alone is 2000: raise/);
    expect(server.bodies).toEqual([]);
  });

  test("is never exceeded by the runtime: budgets stay exact", async () => {
    const server = await familyServer(anthropic, [{ thought: "Alps.", text: "3,967 m." }]);
    const price = { inputPerMillion: 1, outputPerMillion: 5 };
    const agent = defineAgent({
      name: "guide",
      model: server.model(options),
      budget: { maxTokens: 6_000, maxCost: 1 },
    });
    const { spent } = await run(agent, "How high is the Eiger?", { prices: { "claude-test": price } });
    const [body] = server.bodies;
    expect(Number(body?.["max_tokens"])).toBeLessThan(6_000);
    expect(spent.tree).toMatchObject({ inputTokens: 100, outputTokens: 30 });
  });
});

describe("what a provider has of its own", () => {
  test.each([
    [{ reasoningEffort: "high" as const }, {}],
    [{}, { amazonBedrock: { reasoningConfig: { type: "enabled", maxReasoningEffort: "max" } } }],
  ])(
    "Nova 2 has no limit with a high effort, so a call with a limit is not sent: %o",
    async (asked, providerOptions) => {
      const server = await familyServer(novaFamily, [{ text: "3,967 m." }]);
      const model = server.model({ providerOptions });
      const failure = await failureOf(model, { ...question, ...asked, maxOutputTokens: 5_000 });
      expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } });
      expect(failure.message).toMatch(
        /takes no limit of output tokens with the reasoning effort "(high|max)": use "medium"/,
      );
      await generated(model, { ...question, ...asked });
      await generated(server.model(), { ...question, reasoningEffort: "medium", maxOutputTokens: 5_000 });
      expect(server.bodies.map((body) => novaFamily.limitIn(body))).toEqual([undefined, 5_000]);
    },
  );

  test("options for several providers do not add up: each model has only its own budget for thinking", async () => {
    const server = await familyServer(xai, [{ text: "3,967 m." }]);
    const thinking = { type: "enabled", budgetTokens: 2_000 };
    const providerOptions = { anthropic: { thinking }, bedrock: { reasoningConfig: thinking } };
    await generated(server.model({ providerOptions }), { ...question, maxOutputTokens: 5_000 });
    expect(xai.limitIn(server.bodies[0] ?? {})).toBe(5_000);
  });

  test("Responses keep no history: store is off, and encrypted reasoning comes back", async () => {
    const call = { id: "call_1", name: "height", arguments: { of: "Eiger" } };
    const server = await familyServer(responses, [{ thought: "Look up.", calls: [call] }, { text: "Done." }]);
    await run(defineAgent({ name: "guide", model: server.model(), tools: [height] }), "How high is it?");
    for (const body of server.bodies) {
      expect(body).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] });
      expect(JSON.stringify(body)).not.toContain("item_reference");
    }
    expect(server.bodies[1]?.["input"]).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ type: "reasoning", encrypted_content: "signature of Look up." }),
      ]),
    );
  });

  test("xAI keeps no history either", async () => {
    const server = await familyServer(xai, [{ text: "Done." }]);
    await generated(server.model());
    expect(server.bodies[0]).toMatchObject({ store: false, include: ["reasoning.encrypted_content"] });
  });

  test("options of the provider are sent, and the user's own come before ours", async () => {
    const server = await familyServer(responses, [{ text: "Done." }]);
    await generated(server.model({ providerOptions: { openai: { store: true, user: "ada" } } }));
    expect(server.bodies[0]).toMatchObject({ store: true, user: "ada" });
  });

  test("Google names the time of the next attempt in the details of its error", async () => {
    const detailed = { ...google, format: { ...google.format, refusal: detailedRefusal } };
    const { model } = await familyServer(detailed, [{ status: 429, message: "You exceeded your current quota" }]);
    expect(await failureOf(model())).toMatchObject({ retryable: true, retryAfterMs: 34_200 });
  });

  test("a refused key comes with what to check", async () => {
    const { model } = await familyServer(anthropic, [anthropic.wrongKey]);
    expect((await failureOf(model())).message).toBe(
      "The model server answered 401: invalid x-api-key (check the API key of the provider)",
    );
  });

  test("text of an answer that a hook has changed is sent without the parts that described it", async () => {
    const server = await familyServer(anthropic, [{ text: "Done." }]);
    const parts = [
      { type: "reasoning", text: "Alps.", options: { anthropic: { signature: "sig-of-thought" } } },
      { type: "text", length: 8 },
    ];
    const written = (content: string): ModelRequest["messages"][number] => ({
      id: "2",
      role: "assistant",
      createdAt: 0,
      origin: "model",
      content,
      reasoning: { parts },
      reasoningBy: { provider: "anthropic", model: "claude-test" },
    });
    const next = { id: "3", role: "user", createdAt: 0, origin: "user", content: "Sure?" } as const;
    for (const content of ["3,967 m.", "3,967 metres."]) {
      await generated(server.model({ thinkingReplay: "always" }), {
        messages: [...question.messages, written(content), next],
      });
    }
    expect(JSON.stringify(server.bodies[0])).toContain("sig-of-thought");
    expect(JSON.stringify(server.bodies[1])).not.toContain("sig-of-thought");
    expect(JSON.stringify(server.bodies[1])).toContain("3,967 metres.");
  });
});

/** A model of the AI SDK whose stream has these parts. */
function modelOf(parts: readonly object[], specificationVersion: "v3" | "v4" = "v4") {
  const stream = () =>
    new ReadableStream<unknown>({
      start: (controller) => {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
  return {
    specificationVersion,
    provider: "test.chat",
    modelId: "m",
    supportedUrls: {},
    doStream: async () => ({ stream: stream() }),
  };
}

const text = [
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "Hello" },
  { type: "text-end", id: "0" },
];
const usage = { inputTokens: { total: 5 }, outputTokens: { total: 2 } };

/** The options that the provider's package receives. */
async function received(request: Partial<ModelRequest>, own: Parameters<typeof aiSdkModel>[1] = {}) {
  const asked: Readonly<Record<string, unknown>>[] = [];
  const { specification = "v4", ...options } = own as { specification?: "v3" | "v4" };
  const given = modelOf([...text, { type: "finish", usage, finishReason: { unified: "stop" } }], specification);
  const model = {
    ...given,
    doStream: async (call: Readonly<Record<string, unknown>>) => {
      asked.push(call);
      return await given.doStream();
    },
  };
  const { answer } = await generated(aiSdkModel(model as never, options), { ...question, ...request });
  const { prompt: _prompt, abortSignal: _signal, ...sent } = asked[0] ?? {};
  return { sent, answer };
}

describe("settings of a call", () => {
  const tools = [{ name: "height", description: "Looks a height up.", parameters: { type: "object" } }];

  test("are sent, and the options of a provider go over those of the model, field by field", async () => {
    const { sent } = await received(
      {
        tools,
        toolChoice: { tool: "height" },
        temperature: 0,
        stopSequences: ["END"],
        reasoningEffort: "max",
        providerOptions: { test: { a: 1 }, other: { c: 3 } },
      },
      { providerOptions: { test: { a: 0, b: 2 } } },
    );
    expect(sent).toMatchObject({
      toolChoice: { type: "tool", toolName: "height" },
      temperature: 0,
      stopSequences: ["END"],
      reasoning: "max",
      providerOptions: { test: { a: 1, b: 2 }, other: { c: 3 } },
    });
  });

  test("an effort that the specification does not have is a warning", async () => {
    const { sent, answer } = await received({ reasoningEffort: "high" }, { specification: "v3" } as never);
    expect(sent).toEqual({});
    expect(answer.warnings).toEqual([
      { code: "unsupported", message: expect.stringContaining("reasoningEffort was not sent") as string },
    ]);
  });

  const sonnet = {
    ...anthropic,
    model: (origin: string) =>
      aiSdkModel(createAnthropic({ baseURL: `${origin}/v1`, apiKey: "none" })("claude-sonnet-4-5")),
  };

  test.each([
    ["low", 800],
    ["medium", 1_600],
    ["high", 2_400],
    ["max", 3_200],
    ["minimal", undefined],
  ] as const)("effort %s of a model with a thinking budget stays within maxOutputTokens", async (effort, budget) => {
    const server = await familyServer(sonnet, [{ text: "3,967 m." }]);
    const { answer } = await generated(server.model(), {
      ...question,
      maxOutputTokens: 4_000,
      reasoningEffort: effort,
    });
    const [body] = server.bodies;
    // A budget below the provider's minimum is not sent.
    const isSent = budget !== undefined && budget >= 1_024;
    expect(body?.["max_tokens"]).toBe(4_000);
    expect(body?.["thinking"]).toEqual(isSent ? { type: "enabled", budget_tokens: budget } : undefined);
    expect(answer.warnings?.map(({ code }) => code)).toEqual(isSent ? undefined : ["unsupported"]);
  });

  test("effort of a model that decides by itself how much it thinks is sent as it is", async () => {
    const server = await familyServer(anthropic, [{ text: "3,967 m." }]);
    await generated(server.model(), { ...question, maxOutputTokens: 4_000, reasoningEffort: "high" });
    expect(server.bodies[0]).toMatchObject({
      max_tokens: 4_000,
      thinking: { type: "adaptive" },
      output_config: { effort: "high" },
    });
  });

  test("a thinking budget of the call counts as output, and so does the default one", async () => {
    const server = await familyServer(anthropic, [{ text: "3,967 m." }]);
    for (const thinking of [{ type: "enabled", budgetTokens: 1_500 }, { type: "enabled" }]) {
      const providerOptions = { anthropic: { thinking } };
      await generated(server.model(), { ...question, maxOutputTokens: 4_000, providerOptions });
    }
    expect(server.bodies.map((body) => body["max_tokens"])).toEqual([4_000, 4_000]);
  });
});

describe("what comes with an answer", () => {
  const finish = { type: "finish", usage, finishReason: { unified: "stop" } };

  test("calls are reported as they are written, in the order in which they begin", async () => {
    const parts = [
      { type: "tool-input-start", id: "a", toolName: "height" },
      { type: "tool-input-delta", id: "a", delta: '{"of":' },
      { type: "tool-input-start", id: "b", toolName: "width" },
      { type: "tool-input-delta", id: "b", delta: "{}" },
      { type: "tool-input-delta", id: "a", delta: '"Eiger"}' },
      { type: "tool-call", toolCallId: "b", toolName: "width", input: "{}" },
      { type: "tool-call", toolCallId: "a", toolName: "height", input: '{"of":"Eiger"}' },
      { type: "tool-input-start", id: "c", toolName: "raw", inputEncoding: "text" },
      { type: "tool-input-delta", id: "c", delta: "as it is" },
      { type: "tool-call", toolCallId: "c", toolName: "raw", input: '"as it is"' },
      { type: "tool-call", toolCallId: "d", toolName: "late", input: "{}" },
      finish,
    ];
    const { answer, deltas } = await generated(aiSdkModel(modelOf(parts)));
    expect(answer.toolCalls.map(({ id, arguments: args }) => [id, args])).toEqual([
      ["a", '{"of":"Eiger"}'],
      ["b", "{}"],
      ["c", '"as it is"'],
      ["d", "{}"],
    ]);
    expect(deltas).toEqual([
      { type: "tool-call", index: 0, id: "a", name: "height" },
      { type: "tool-arguments", index: 0, text: '{"of":' },
      { type: "tool-call", index: 1, id: "b", name: "width" },
      { type: "tool-arguments", index: 1, text: "{}" },
      { type: "tool-arguments", index: 0, text: '"Eiger"}' },
      { type: "tool-call", index: 2, id: "c", name: "raw" },
      { type: "tool-arguments", index: 2, text: '"as it is"' },
      { type: "tool-call", index: 3, id: "d", name: "late" },
      { type: "tool-arguments", index: 3, text: "{}" },
    ]);
  });

  test("the arguments of a call that was cut count as output", async () => {
    const parts = [
      { type: "tool-input-start", id: "a", toolName: "height" },
      { type: "tool-input-delta", id: "a", delta: '{"of": "a long name of a mountain in the Bernese Alps' },
    ];
    expect((await failureOf(aiSdkModel(modelOf(parts)))).partialOutputTokens).toBeGreaterThan(8);
  });

  test("warnings and sources are returned", async () => {
    const warnings = [
      { type: "unsupported", feature: "temperature", details: "it is fixed" },
      { type: "deprecated", setting: "x", message: "use y" },
      { type: "other", message: "slow today" },
    ];
    const source = { type: "source", sourceType: "url", id: "1", url: "https://a.example", title: "A" };
    const file = { type: "source", sourceType: "document", id: "2", mediaType: "application/pdf", title: "B" };
    const parts = [{ type: "stream-start", warnings }, ...text, source, source, file, finish];
    const { answer } = await generated(aiSdkModel(modelOf(parts)));
    expect(answer.warnings).toEqual([
      { code: "unsupported", message: "the provider reports unsupported: temperature (it is fixed)" },
      { code: "deprecated", message: "the provider reports deprecated: x (use y)" },
      { code: "other", message: "slow today" },
    ]);
    expect(answer.sources).toEqual([
      { type: "url", id: "1", url: "https://a.example", title: "A" },
      { type: "document", id: "2", title: "B", mediaType: "application/pdf" },
    ]);
  });
});

describe("streams that no provider here sends", () => {
  test.each([
    ["no finish part", text, /no finish reason came/],
    ["an interrupted end", [...text, { type: "finish", usage, finishReason: { unified: "interrupted" } }], /broke off/],
    [
      "an end by an error",
      [...text, { type: "finish", usage, finishReason: { unified: "error", raw: "boom" } }],
      /"boom"/,
    ],
    ["an error that is a text", [{ type: "error", error: "overloaded" }], /overloaded/],
    ["an end without a reason", [...text, { type: "finish", usage, finishReason: { unified: "other" } }], /no finish/],
    ["an early end without one", [...text, { type: "finish", usage, finishReason: "unknown" }], /no finish/],
    [
      "a reason without a meaning",
      [...text, { type: "finish", usage, finishReason: { unified: "other", raw: "load" } }],
      /"load"/,
    ],
  ])("%s: the call fails and may be repeated", async (_title, parts, message) => {
    const failure = await failureOf(aiSdkModel(modelOf(parts)));
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true });
    expect(failure.message).toMatch(message);
  });

  test.each([
    [429, true],
    [400, false],
  ])("the status %i of an error in the stream decides whether the call is repeated", async (statusCode, retryable) => {
    const error = { message: "Not now", type: "throttlingException", code: "slow", statusCode };
    const failure = await failureOf(aiSdkModel(modelOf([{ type: "error", error }])));
    expect(failure).toMatchObject({ status: statusCode, retryable, details: { kind: "error_in_answer" } });
  });

  test.each([
    ["MAX_TOKENS", "length"],
    ["sensitive", "content_filter"],
    ["eos", "stop"],
  ])("the reason %s, which a package does not know, means %s", async (raw, finishReason) => {
    const finish = { type: "finish", usage, finishReason: { unified: "other", raw } };
    expect((await generated(aiSdkModel(modelOf([...text, finish])))).answer).toMatchObject({ finishReason });
  });

  test("an answer that has filled the window counts as a prompt that is too long", async () => {
    const reason = { unified: "length", raw: "model_context_window_exceeded" };
    const failure = await failureOf(aiSdkModel(modelOf([...text, { type: "finish", usage, finishReason: reason }])));
    expect(failure).toMatchObject({ retryable: false, details: { kind: "context_length" } });
  });

  test("a tool that the provider executes itself ends the call for good", async () => {
    const parts = [{ type: "tool-call", toolCallId: "1", toolName: "web_search", input: "{}", providerExecuted: true }];
    const failure = await failureOf(aiSdkModel(modelOf(parts)));
    expect(failure).toMatchObject({ retryable: false, details: { kind: "configuration" } });
    expect(failure.message).toContain('"web_search"');
  });

  test.each([
    ["characters", Array.from({ length: 65 }, () => ({ type: "text-delta", id: "0", delta: "x".repeat(2 ** 20) }))],
    ["parts", Array.from({ length: 10_001 }, (_, id) => ({ type: "text-start", id: `${id}` }))],
    ["calls", Array.from({ length: 1_001 }, (_, id) => ({ type: "tool-input-start", id: `${id}`, toolName: "t" }))],
  ])("an answer with too many %s ends the call", async (_title, parts) => {
    const failure = await failureOf(aiSdkModel(modelOf(parts)));
    expect(failure).toMatchObject({ mayHaveBeenSent: true, details: { kind: "malformed" } });
    expect(failure.message).toMatch(/more than the permitted/);
  });

  test("neither the query of an address nor content is in the message about an image that is not sent", async () => {
    for (const url of ["https://example.com/eiger.png?signature=secret", "data:image/svg+xml,secret"]) {
      const failure = await failureOf(aiSdkModel(modelOf(text)), withImage(url));
      expect(failure.message).toContain("was not sent");
      expect(failure.message).not.toContain("secret");
    }
  });

  test("unknown parts and pings are ignored, and the finish reason of early v3 providers is a text", async () => {
    const parts = [
      { type: "ping" },
      { type: "custom", kind: "x.y" },
      ...text,
      { type: "finish", usage, finishReason: "stop" },
    ];
    const { answer } = await generated(aiSdkModel(modelOf(parts, "v3")));
    expect(answer).toMatchObject({
      content: "Hello",
      finishReason: "stop",
      usage: { inputTokens: 5, outputTokens: 2 },
    });
  });

  test("a provider that ignores the response format is asked by a tool next time, and then by the instructions", async () => {
    const calls: Record<string, unknown>[] = [];
    const warnings = [{ type: "unsupported", feature: "responseFormat" }];
    const model = modelOf([
      { type: "stream-start", warnings },
      ...text,
      { type: "finish", usage, finishReason: "stop" },
    ]);
    const spied = {
      ...model,
      modelId: "ignores-formats",
      doStream: (call: Record<string, unknown>) => {
        calls.push(call);
        return model.doStream();
      },
    };
    const asked: ModelRequest = {
      ...question,
      responseFormat: { type: "json_schema", name: "answer", schema: { type: "object", title: "an answer" } },
    };
    for (let index = 0; index < 3; index += 1) await generated(aiSdkModel(spied as never), asked);
    expect(
      calls.map(({ responseFormat }) => (responseFormat as { schema?: object } | undefined)?.schema !== undefined),
    ).toEqual([true, false, false]);
    expect(JSON.stringify(calls[1]?.["tools"])).toContain("an answer");
    expect(calls[1]?.["toolChoice"]).toEqual({ type: "tool", toolName: "final_answer" });
    expect(JSON.stringify(calls[2]?.["prompt"])).toContain("an answer");
  });

  test("a key that is missing is a wrong configuration: nothing is sent, nothing repeated", async () => {
    const failure = await failureOf(aiSdkModel(createAnthropic()("claude-test")));
    expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } });
    expect(failure.message).toMatch(/ANTHROPIC_API_KEY/);
  });

  test("a server that cannot be reached has not been sent anything", async () => {
    const failure = await failureOf(
      aiSdkModel(
        createAnthropic({ baseURL: `http://127.0.0.1:${await freePort()}/v1`, apiKey: "none" })("claude-test"),
      ),
    );
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: false, details: { kind: "connection" } });
  });
});

describe("aiSdkModel()", () => {
  test.each([
    ["a text", "anthropic/claude-sonnet-4-5", /got the text "anthropic\/claude-sonnet-4-5"/],
    ["a model of AI SDK 5", { ...modelOf([]), specificationVersion: "v2" }, /"v2"; expected "v3" and "v4"/],
    ["a model without a name", { ...modelOf([]), modelId: "" }, /without a provider or modelId/],
  ])("refuses %s", (_title, given, message) => {
    expect(() => aiSdkModel(given as never)).toThrow(InvalidInputError);
    expect(() => aiSdkModel(given as never)).toThrow(message);
  });

  test.each([
    [{ temperature: 1 }, /temperature of defineAgent\(\)/],
    [{ providerOptions: { anthropic: 3 } }, /providerOptions\["anthropic"\]/],
    [{ stallTimeoutMs: 0 }, /stallTimeoutMs is 0/],
    [{ name: "" }, /name is/],
    [{ provider: 3 }, /provider is 3/],
    [{ contextWindow: 0.5 }, /contextWindow is 0.5/],
    [{ imageTokens: -1 }, /imageTokens is -1/],
    [{ fileTokens: -1 }, /fileTokens is -1/],
    [{ tooLongMessages: ["", /x/] }, /tooLongMessages/],
    [{ structuredOutput: "yaml" }, /structuredOutput is the text "yaml"/],
    [{ structuredOutput: ["tool"] }, /structuredOutput is/],
  ])("refuses the options %o", (options, message) => {
    expect(() => aiSdkModel(modelOf([]), options as never)).toThrow(message);
  });

  test("names model and provider for prices and traces", () => {
    expect(aiSdkModel(modelOf([]))).toMatchObject({ name: "m", provider: "test" });
    expect(aiSdkModel(modelOf([]), { name: "own", provider: "mine" })).toMatchObject({ name: "own", provider: "mine" });
  });

  test("takes the published types of both specifications", () => {
    expectTypeOf<LanguageModelV4>().toExtend<Parameters<typeof aiSdkModel>[0]>();
    expectTypeOf<LanguageModelV3>().toExtend<Parameters<typeof aiSdkModel>[0]>();
  });

  test("works in a runtime whose agents have several models", async () => {
    const server = await familyServer(anthropic, [{ text: "3,967 m." }]);
    const runtime = await createRuntime({ agents: [defineAgent({ name: "guide", model: server.model() })] });
    const agent = await runtime.agent("guide");
    await agent.start();
    expect((await agent.executeTurn("How high is the Eiger?").result).text).toBe("3,967 m.");
    await runtime.shutdown();
  });
});
