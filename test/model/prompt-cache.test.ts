import { describe, expect, test } from "vitest";
import { InvalidInputError, type ModelRequest, openaiModel, type OpenaiModelOptions } from "../../src/index.ts";
import { aiSdkModel, type AiSdkModelOptions } from "../../src/model/ai-sdk.ts";

const message = (id: string, role: "system" | "user", content: string) =>
  ({ id, role, createdAt: 0, origin: "user", content }) as const;
const called = {
  id: "3",
  role: "assistant",
  createdAt: 0,
  origin: "model",
  content: "",
  toolCalls: [{ callId: "c", providerId: "c", name: "look", arguments: "{}" }],
} as const;
const result = {
  id: "4",
  role: "tool",
  createdAt: 0,
  origin: "tool",
  content: "seen",
  callId: "c",
  providerId: "c",
} as const;
const request: ModelRequest = {
  messages: [message("1", "system", "Be brief."), message("2", "user", "Look!"), called, result],
  tools: [
    { name: "find", description: "Finds.", parameters: { type: "object" } },
    { name: "look", description: "Looks.", parameters: { type: "object" } },
  ],
};
const call = { agentId: "desk", rootAgentId: "desk", agentName: "clerk", turnId: "desk#1", step: 1, attempt: 1 };
const signal = new AbortController().signal;

type Body = Readonly<Record<string, unknown>> & { readonly messages: readonly Readonly<Record<string, unknown>>[] };

/** The body that a Chat Completions server gets. */
async function bodyOf(model: string, options: OpenaiModelOptions, agentId = "desk"): Promise<Body> {
  let body = "{}";
  const usage = { prompt_tokens: 5, completion_tokens: 1 };
  const answer = { choices: [{ message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }], usage };
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    body = typeof init?.body === "string" ? init.body : body;
    return Response.json(answer);
  };
  const baseURL = "https://api.openai.com/v1";
  await openaiModel(model, { baseURL, apiKey: "key", fetch, ...options }).generate(request, {
    signal,
    call: { ...call, agentId },
  });
  return JSON.parse(body) as Body;
}

const cacheFields = (body: Body) =>
  [...JSON.stringify(body).matchAll(/prompt_cache_\w+|cache_control/g)].map(([name]) => name);

describe("openaiModel", () => {
  test("sends the agent's id as the cache's key to OpenAI, and a hash of a long one", async () => {
    const body = await bodyOf("gpt-5-mini", {});
    expect(body["prompt_cache_key"]).toBe("desk");
    expect(cacheFields(body)).toEqual(["prompt_cache_key"]);
    const long = await bodyOf("gpt-5-mini", {}, `${"d".repeat(64)}/child`);
    expect(String(long["prompt_cache_key"]).length).toBeLessThanOrEqual(64);
    expect(await bodyOf("gpt-5-mini", { baseURL: "https://eu.api.openai.com/v1" })).toMatchObject({
      prompt_cache_key: "desk",
    });
  });

  test.each(["gpt-5.6", "gpt-5.6-mini", "gpt-6", "ft:gpt-5.6:us"])("marks the instructions for %s", async (model) => {
    const body = await bodyOf(model, {});
    const mark = { prompt_cache_breakpoint: { mode: "explicit" } };
    expect(body.messages[0]).toEqual({ role: "system", content: [{ type: "text", text: "Be brief.", ...mark }] });
    // OpenAI marks the newest message by itself.
    expect(cacheFields(body).toSorted()).toEqual(["prompt_cache_breakpoint", "prompt_cache_key"]);
  });

  test("marks every end of a prompt for 12 hours, since only explicit breakpoints live that long", async () => {
    const body = await bodyOf("gpt-5.6", { cacheTtl: "12h" });
    const mark = { prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } };
    expect(body["prompt_cache_options"]).toEqual({ mode: "explicit" });
    expect(body.messages.map(({ content }) => content)).toEqual([
      [{ type: "text", text: "Be brief.", ...mark }],
      [{ type: "text", text: "Look!", ...mark }],
      null,
      [{ type: "text", text: "seen", ...mark }],
    ]);
  });

  test("sends other servers none of it, unless it is asked to", async () => {
    for (const baseURL of [
      "http://127.0.0.1:11434/v1",
      "https://api.groq.com/openai/v1",
      "https://api.openai.com.example/v1",
    ]) {
      expect(cacheFields(await bodyOf("gpt-5.6", { baseURL }))).toEqual([]);
    }
    const baseURL = "https://example.openai.azure.com/openai/v1";
    expect(cacheFields(await bodyOf("gpt-5-mini", { baseURL, cache: "auto" }))).toEqual(["prompt_cache_key"]);
  });

  test("off sends nothing, and keeps models that bill for it from writing", async () => {
    expect(cacheFields(await bodyOf("gpt-5-mini", { cache: "off" }))).toEqual([]);
    const body = await bodyOf("gpt-5.6", { cache: "off" });
    expect(body["prompt_cache_options"]).toEqual({ mode: "explicit" });
    expect(cacheFields(body)).toEqual(["prompt_cache_options"]);
  });

  test("marks the models of Anthropic behind OpenRouter", async () => {
    const baseURL = "https://openrouter.ai/api/v1";
    const { messages } = await bodyOf("anthropic/claude-sonnet-4.5", { baseURL, cacheTtl: "1h" });
    const mark = { cache_control: { type: "ephemeral", ttl: "1h" } };
    expect(messages).toMatchObject([
      { role: "system", content: [{ type: "text", text: "Be brief.", ...mark }] },
      { role: "user", content: [{ type: "text", text: "Look!", ...mark }] },
      { role: "assistant" },
      { role: "tool", content: "seen", ...mark },
    ]);
    expect(cacheFields(await bodyOf("meta/llama", { baseURL }))).toEqual([]);
  });

  test("fields of the user's own are sent last", async () => {
    expect(await bodyOf("gpt-5-mini", { extraBody: { prompt_cache_key: "mine" } })).toMatchObject({
      prompt_cache_key: "mine",
    });
  });
});

/** What a model of the AI SDK is called with. */
async function callOf(
  named: { provider: string; modelId: string },
  options: AiSdkModelOptions = {},
  usage: object = {},
) {
  const given: Record<string, unknown>[] = [];
  const model = aiSdkModel(
    {
      ...named,
      specificationVersion: "v4",
      supportedUrls: {},
      doStream: async (asked: never) => {
        given.push(asked);
        const parts = [
          { type: "text-start", id: "0" },
          { type: "text-delta", id: "0", delta: "Hi." },
          { type: "finish", finishReason: { unified: "stop" }, ...usage },
        ];
        return { stream: ReadableStream.from<unknown>(parts) };
      },
    },
    options,
  );
  const answer = await model.generate(request, { signal, call });
  const { prompt, tools, providerOptions } = given[0] ?? {};
  return { prompt, tools, providerOptions, usage: answer.usage, model };
}

const ofAnthropic = { provider: "anthropic.messages", modelId: "claude-test" };
const mark = { anthropic: { cacheControl: { type: "ephemeral" } } };

const long = async (options: AiSdkModelOptions, finish: object) =>
  (await callOf(ofAnthropic, options, finish)).usage.longCacheWriteTokens;
const writes = async (options: AiSdkModelOptions, more: Partial<ModelRequest> = {}) =>
  (await callOf(ofAnthropic, options)).model.writesLongCache?.({ ...request, ...more });

describe("aiSdkModel", () => {
  test("marks the last tool, the instructions, the prompt before and the newest message for Anthropic", async () => {
    const { prompt, tools } = await callOf(ofAnthropic);
    expect(tools).toMatchObject([{ name: "find" }, { name: "look", providerOptions: mark }]);
    expect(JSON.stringify(tools)).toMatch(/find(?!.*providerOptions.*look)/);
    expect(prompt).toMatchObject([
      { role: "system", providerOptions: mark },
      { role: "user", providerOptions: mark },
      { role: "assistant" },
      { role: "tool", providerOptions: mark },
    ]);
    expect(JSON.stringify([prompt, tools]).match(/ephemeral/g)).toHaveLength(4);
  });

  test("marks the instructions and messages for Bedrock and OpenRouter, in their own form", async () => {
    const bedrock = await callOf({ provider: "amazon-bedrock", modelId: "us.anthropic.claude-x" }, { cacheTtl: "1h" });
    const point = { bedrock: { cachePoint: { type: "default", ttl: "1h" } } };
    expect(bedrock.prompt).toMatchObject([
      { providerOptions: point },
      { providerOptions: point },
      {},
      { providerOptions: point },
    ]);
    expect(JSON.stringify(bedrock.tools)).not.toContain("cachePoint");
    const routed = await callOf({ provider: "openrouter.chat", modelId: "anthropic/claude-x" });
    expect(routed.prompt).toMatchObject([
      { providerOptions: { openrouter: { cacheControl: { type: "ephemeral" } } } },
      {},
      {},
      {},
    ]);
  });

  test("gives OpenAI the key, and from GPT-5.6 on a breakpoint and the lifetime", async () => {
    const plain = await callOf({ provider: "openai.chat", modelId: "gpt-5-mini" });
    expect(plain.providerOptions).toEqual({ openai: { promptCacheKey: "desk" } });
    const options = { cacheTtl: "12h", providerOptions: { openai: { user: "ada" } } } as const;
    const later = await callOf({ provider: "openai.responses", modelId: "gpt-5.6" }, options);
    expect(later.providerOptions).toMatchObject({
      openai: { promptCacheKey: "desk", promptCacheOptions: { ttl: "12h" }, user: "ada", store: false },
    });
    expect(later.prompt).toMatchObject([
      { role: "system", providerOptions: { openai: { promptCacheBreakpoint: { mode: "explicit" } } } },
      {},
      {},
      {},
    ]);
    const off = await callOf({ provider: "openai.chat", modelId: "gpt-5.6" }, { cache: "off" });
    expect(off.providerOptions).toEqual({ openai: { promptCacheOptions: { mode: "explicit" } } });
  });

  test.each([
    [{ provider: "google.generative-ai", modelId: "gemini-x" }, {}],
    [{ provider: "amazon-bedrock", modelId: "meta.llama" }, {}],
    [ofAnthropic, { cache: "off" as const }],
    // The user's own: Anthropic then marks the newest message by itself.
    [ofAnthropic, { providerOptions: { anthropic: { cacheControl: { type: "ephemeral" } } } }],
  ])("marks nothing for %o with %o", async (named, options) => {
    const { prompt, tools } = await callOf(named, options);
    expect(JSON.stringify([prompt, tools])).not.toMatch(/cacheControl|cachePoint|providerOptions/);
  });

  test("reports what was written for the longer lifetime, by the provider's words or by what was asked for", async () => {
    const usage = { inputTokens: { total: 100, cacheRead: 10, cacheWrite: 60 }, outputTokens: { total: 1 } };
    const raw = { cache_creation: { ephemeral_1h_input_tokens: 40, ephemeral_5m_input_tokens: 20 } };
    expect(await long({}, { usage })).toBeUndefined();
    expect(await long({ cacheTtl: "1h" }, { usage })).toBe(60);
    const providerOptions = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } };
    expect(await long({ providerOptions }, { usage })).toBe(60);
    expect(await long({ cacheTtl: "1h" }, { usage: { ...usage, raw } })).toBe(40);
    const cacheDetails = [
      { ttl: "5m", inputTokens: 25 },
      { ttl: "1h", inputTokens: 35 },
    ];
    expect(await long({}, { usage, providerMetadata: { bedrock: { usage: { cacheDetails } } } })).toBe(35);
  });

  test("states whether a call may write for the longer lifetime", async () => {
    const providerOptions = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } };
    expect(await writes({})).toBe(false);
    expect(await writes({ cacheTtl: "5m" })).toBe(false);
    expect(await writes({ cacheTtl: "1h" })).toBe(true);
    expect(await writes({ providerOptions })).toBe(true);
    expect(await writes({}, { providerOptions })).toBe(true);
  });
});

const sdk = (named: object, options: object) => () =>
  aiSdkModel(
    { ...named, specificationVersion: "v4", supportedUrls: {}, doStream: async () => ({}) as never } as never,
    options,
  );

describe("a lifetime that the model does not have", () => {
  test.each([
    [
      "openaiModel",
      () => openaiModel("gpt-5-mini", { cacheTtl: "12h" }),
      /cacheTtl is "12h"; this model has no lifetime/,
    ],
    ["openaiModel", () => openaiModel("gpt-5.6", { cacheTtl: "1h" }), /cacheTtl is "1h"; expected "30m" or "12h"/],
    [
      "openaiModel",
      () => openaiModel("gpt-5.6", { cache: "off", cacheTtl: "12h" }),
      /cacheTtl is "12h", but cache is "off"/,
    ],
    ["aiSdkModel", sdk(ofAnthropic, { cacheTtl: "12h" }), /cacheTtl is "12h"; expected "5m" or "1h"/],
    ["aiSdkModel", sdk({ provider: "google.x", modelId: "g" }, { cacheTtl: "5m" }), /no lifetime that can be chosen/],
    ["aiSdkModel", sdk({ provider: "openai.chat", modelId: "gpt-5.6" }, { cacheTtl: "12h" }), /no lifetime/],
    ["aiSdkModel", sdk(ofAnthropic, { cacheTtl: "2h" }), /cacheTtl/],
    ["aiSdkModel", sdk(ofAnthropic, { cache: true }), /cache/],
    ["openaiModel", () => openaiModel("m", { caching: "auto" } as never), /did you mean cache\?/],
  ])("is refused by %s", (of, given, words) => {
    expect(given).toThrow(InvalidInputError);
    expect(given).toThrow(words);
    expect(given).toThrow(`${of}()`);
  });
});
