import { AzureOpenAI, OpenAI } from "openai";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  defineAgent,
  defineTool,
  InvalidInputError,
  type LanguageModel,
  memoryStores,
  ModelError,
  type ModelRequest,
  openaiModel,
  type OpenaiModelOptions,
  run,
} from "../../src/index.ts";
import type { ModelDelta } from "../../src/model/index.ts";
import { ResponsesAnswer } from "../../src/model/responses-answer.ts";
import type { AssistantMessage, JsonObject } from "../../src/state/index.ts";
import { failureOf, neverAborted, request, streamed, userMessage } from "../support/model-calls.ts";
import { startModelServer } from "../support/model-server.ts";
import {
  call,
  eventsOf,
  message,
  refusal,
  type ResponsesReply,
  responsesServer,
  type ResponsesServer,
  type ServerTurn,
  thought,
  usage as reportedUsage,
} from "../support/responses-server.ts";
import { familyOf } from "./contract/families.ts";
import { familyServer } from "./contract/model-server.ts";

const modelAt = ({ baseURL }: ResponsesServer, options: OpenaiModelOptions = {}): LanguageModel =>
  openaiModel("gpt-5-test", { api: "responses", apiKey: "secret-key-0001", baseURL, ...options });

/** A model whose server gives these answers in turn. */
async function modelOn(turns: readonly ServerTurn[], options: OpenaiModelOptions = {}) {
  const server = await responsesServer(...turns);
  return { model: modelAt(server, options), server };
}

/** Makes a call without a listener, so that the answer is whole. */
async function whole(model: LanguageModel, asked: ModelRequest = request) {
  return await model.generate(asked, { signal: neverAborted });
}

const joined = (deltas: readonly ModelDelta[], type: "text" | "reasoning"): string =>
  deltas.map((delta) => (delta.type === type ? delta.text : "")).join("");

const height = defineTool({
  name: "height",
  description: "Looks a height up.",
  parameters: z.object({ of: z.string() }),
  effect: "none",
  execute: ({ of }) => `${of}: 3,967 m`,
});

const answered = {
  output: [
    thought("rs_1", ["**Plan**\n\nTwo lookups.", "Then the answer."]),
    message("msg_1", "I look both up."),
    call("fc_1", "call_1", { of: "Eiger" }),
    call("fc_2", "call_2", { of: "Mönch" }),
  ],
};

/** The annotation of a text with a source. */
function cited(url: string) {
  return { type: "url_citation", url, title: "Eiger", start_index: 0, end_index: 3 };
}

function final(id: string, text: string) {
  return message(id, text, { phase: "final_answer" });
}

function written(fields: Partial<AssistantMessage>): AssistantMessage {
  return { id: "2", role: "assistant", createdAt: 0, origin: "model", content: "3,967 m.", ...fields };
}

/** The input that is sent after this answer and another question. */
async function inputOf(model: LanguageModel, server: ResponsesServer, answer: AssistantMessage): Promise<string> {
  await whole(model, { messages: [...request.messages, answer, { ...userMessage("Sure?"), id: "3" }] });
  return JSON.stringify(server.bodies.at(-1)?.["input"]);
}

function error(text: string, code: string | null = null) {
  return { message: text, type: "invalid_request_error", code };
}

describe("an answer", () => {
  test("is the same whole and streamed, and each piece is reported once", async () => {
    const { model, server } = await modelOn([answered]);
    const expected = {
      content: "I look both up.",
      toolCalls: [
        { id: "call_1", name: "height", arguments: '{"of":"Eiger"}' },
        { id: "call_2", name: "height", arguments: '{"of":"Mönch"}' },
      ],
      reasoning: {
        items: [
          {
            type: "reasoning",
            id: "rs_1",
            summary: ["**Plan**\n\nTwo lookups.", "Then the answer."],
            encrypted_content: "encrypted-rs_1",
          },
          { type: "message", length: 15 },
          { type: "call", id: "call_1" },
          { type: "call", id: "call_2" },
        ],
        opaqueTokens: 12,
      },
      usage: { inputTokens: 100, cachedInputTokens: 40, cacheWriteTokens: 20, outputTokens: 30, reasoningTokens: 12 },
      finishReason: "tool_calls",
      model: "gpt-5-test",
    };
    expect(await whole(model)).toMatchObject(expected);
    const { answer, deltas } = await streamed(model);
    expect(answer).toMatchObject(expected);
    expect(joined(deltas, "text")).toBe("I look both up.");
    expect(joined(deltas, "reasoning")).toBe("**Plan**\n\nTwo lookups.\n\nThen the answer.");
    expect(deltas.filter(({ type }) => type === "tool-call")).toEqual([
      { type: "tool-call", index: 0, id: "call_1", name: "height" },
      { type: "tool-call", index: 1, id: "call_2", name: "height" },
    ]);
    const argumentsOf = (index: number): string =>
      deltas.map((one) => (one.type === "tool-arguments" && one.index === index ? one.text : "")).join("");
    expect([argumentsOf(0), argumentsOf(1)]).toEqual(['{"of":"Eiger"}', '{"of":"Mönch"}']);
    expect(server.paths).toEqual(["/v1/responses", "/v1/responses"]);
    expect(server.bodies.map(({ stream }) => stream)).toEqual([undefined, true]);
  });

  test("without thoughts has no reasoning to send back", async () => {
    const { model } = await modelOn([{ output: [message("msg_1", "3,967 m.")] }]);
    expect((await whole(model)).reasoning).toBeUndefined();
  });

  test.each([
    ["max_output_tokens", "length"],
    ["content_filter", "content_filter"],
  ])("that is incomplete by %s has the finish reason %s", async (incomplete, finishReason) => {
    const { model } = await modelOn([{ output: [message("msg_1", "3,9")], incomplete }]);
    expect(await whole(model)).toMatchObject({ content: "3,9", finishReason });
    expect((await streamed(model)).answer).toMatchObject({ content: "3,9", finishReason });
  });

  test("that is a refusal has its words and the finish reason content_filter", async () => {
    const { model } = await modelOn([{ output: [refusal("msg_1", "I cannot help with that.")] }]);
    const expected = { content: "I cannot help with that.", finishReason: "content_filter" };
    expect(await whole(model)).toMatchObject(expected);
    const { answer, deltas } = await streamed(model);
    expect(answer).toMatchObject(expected);
    expect(joined(deltas, "text")).toBe("I cannot help with that.");
  });

  test("names its sources once", async () => {
    const file = { type: "file_citation", file_id: "file_1", filename: "peaks.pdf", index: 0 };
    const annotations = [cited("https://example.com/eiger"), cited("https://example.com/eiger"), file];
    const { model } = await modelOn([{ output: [message("msg_1", "3,967 m.", { annotations })] }]);
    const sources = [
      { type: "url", url: "https://example.com/eiger", title: "Eiger" },
      { type: "document", id: "file_1", title: "peaks.pdf" },
    ];
    expect(await whole(model)).toMatchObject({ sources });
    expect((await streamed(model)).answer).toMatchObject({ sources });
  });

  test("without usage is counted here", async () => {
    const { model } = await modelOn([{ output: [message("msg_1", "3,967 metres.")], usage: null }]);
    const { usage } = await whole(model);
    expect(usage).toMatchObject({ estimated: true });
    expect(usage.inputTokens).toBeGreaterThan(0);
    expect(usage.outputTokens).toBeGreaterThan(0);
  });

  test("ignores unknown events and items, pings and numbers of items that differ in the response", async () => {
    const events = eventsOf({ output: [message("msg_1", "3,967 m.")] });
    const last = events.at(-1) as unknown as { readonly response: { readonly output: readonly object[] } };
    const more = [
      { type: "keepalive" },
      { type: "response.output_item.added", output_index: 7, item: { type: "new_kind", id: "n_1" } },
      { type: "response.new_kind.delta", output_index: 7, item_id: "n_1", delta: "?" },
    ];
    const renumbered = {
      ...last,
      response: { ...last.response, output: [{ type: "new_kind" }, ...last.response.output] },
    };
    const sent = [...events.slice(0, 2), ...more, ...events.slice(2, -1), renumbered as never];
    const { model } = await modelOn([{ cut: sent, how: "silent" }]);
    const { answer, deltas } = await streamed(model);
    expect(answer).toMatchObject({ content: "3,967 m.", finishReason: "stop" });
    expect(joined(deltas, "text")).toBe("3,967 m.");
  });

  test("may come without the events of its items", async () => {
    const [created] = eventsOf({});
    const sent = [
      created,
      { type: "response.output_text.delta", delta: "3,9" },
      { type: "response.output_text.delta", delta: "67 m." },
      eventsOf({ output: [{ ...message("msg_1", "3,967 m."), id: "other" }] }).at(-1),
    ] as never;
    const { answer, deltas } = await streamed((await modelOn([{ cut: sent, how: "silent" }])).model);
    expect(answer.content).toBe("3,967 m.");
    expect(joined(deltas, "text")).toBe("3,967 m.");
  });
});

describe("phases", () => {
  const commentary = message("msg_1", "I look it up.", { phase: "commentary" });

  test("the final answer is the content, and commentary before it is reasoning", async () => {
    const { model } = await modelOn([{ output: [thought("rs_1", []), commentary, final("msg_2", "3,967 m.")] }]);
    expect((await whole(model)).content).toBe("3,967 m.");
    const { answer, deltas } = await streamed(model);
    expect(answer.content).toBe("3,967 m.");
    expect(joined(deltas, "text")).toBe("3,967 m.");
    expect(joined(deltas, "reasoning")).toBe("I look it up.");
  });

  test("of two final answers the last one is the content", async () => {
    const { model } = await modelOn([{ output: [final("msg_1", "3,966 m."), final("msg_2", "3,967 m.")] }]);
    expect((await whole(model)).content).toBe("3,967 m.");
  });

  test("commentary before a call is the text of the answer, and is reported before the call", async () => {
    const { model } = await modelOn([{ output: [commentary, call("fc_1", "call_1", { of: "Eiger" })] }]);
    const { answer, deltas } = await streamed(model);
    expect(answer).toMatchObject({ content: "I look it up.", finishReason: "tool_calls" });
    expect(deltas.map(({ type }) => type)).toEqual(["text", "tool-call", "tool-arguments"]);
  });

  test("structured output is the last final answer", async () => {
    const { model, server } = await modelOn([{ output: [commentary, final("msg_2", '{"metres":3967}')] }]);
    const agent = defineAgent({ name: "guide", model, output: z.object({ metres: z.number() }) });
    expect((await run(agent, "How high is the Eiger?")).output).toEqual({ metres: 3967 });
    expect(server.bodies[0]).toMatchObject({ text: { format: { type: "json_schema", strict: false } } });
  });

  test("are sent back with their texts, in their order", async () => {
    const reply = { output: [commentary, final("msg_2", "3,967 m.")] };
    const { model, server } = await modelOn([reply]);
    const stores = memoryStores();
    const guide = defineAgent({ name: "guide", model });
    await run(guide, "How high is the Eiger?", { stores, agentId: "desk" });
    await run(guide, "Sure?", { stores, agentId: "desk" });
    expect(server.bodies[1]?.["input"]).toEqual([
      { type: "message", role: "user", content: "How high is the Eiger?" },
      { type: "message", role: "assistant", content: "I look it up.", phase: "commentary" },
      { type: "message", role: "assistant", content: "3,967 m.", phase: "final_answer" },
      { type: "message", role: "user", content: "Sure?" },
    ]);
  });
});

describe("a request", () => {
  test("keeps nothing on the server, and reasoning, calls and results go back in their order", async () => {
    const { model, server } = await modelOn([answered, { output: [message("msg_2", "Done.")] }]);
    const agent = defineAgent({ name: "guide", model, tools: [height], instructions: "Be brief." });
    expect((await run(agent, "How high are Eiger and Mönch?")).text).toBe("Done.");
    for (const body of server.bodies) {
      expect(body).toMatchObject({ store: false, include: ["reasoning.encrypted_content"], instructions: "Be brief." });
      expect(body).not.toHaveProperty("previous_response_id");
    }
    expect(server.bodies[0]?.["tools"]).toMatchObject([{ type: "function", name: "height", strict: false }]);
    expect(server.bodies[1]?.["input"]).toEqual([
      { type: "message", role: "user", content: "How high are Eiger and Mönch?" },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [
          { type: "summary_text", text: "**Plan**\n\nTwo lookups." },
          { type: "summary_text", text: "Then the answer." },
        ],
        encrypted_content: "encrypted-rs_1",
      },
      { type: "message", role: "assistant", content: "I look both up." },
      { type: "function_call", call_id: "call_1", name: "height", arguments: '{"of":"Eiger"}' },
      { type: "function_call", call_id: "call_2", name: "height", arguments: '{"of":"Mönch"}' },
      { type: "function_call_output", call_id: "call_1", output: "Eiger: 3,967 m" },
      { type: "function_call_output", call_id: "call_2", output: "Mönch: 3,967 m" },
    ]);
  });

  test("has the settings of the call, and those that the API lacks are a warning", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "ok")] }], {
      reasoning: { effort: "low", summary: "detailed" },
      extraBody: { text: { verbosity: "low" }, include: ["message.output_text.logprobs"], prompt_cache_key: "desk" },
    });
    const tools = [{ name: "height", description: "", parameters: { type: "object" } }];
    const { warnings } = await whole(model, {
      ...request,
      tools,
      toolChoice: { tool: "height" },
      maxOutputTokens: 500,
      temperature: 0,
      stopSequences: ["END"],
      reasoningEffort: "high",
      responseFormat: { type: "json" },
      providerOptions: { openai: { safety_identifier: "u1" }, azure: { user: "no" } },
    });
    expect(server.bodies[0]).toMatchObject({
      model: "gpt-5-test",
      tool_choice: { type: "function", name: "height" },
      max_output_tokens: 500,
      temperature: 0,
      reasoning: { effort: "high", summary: "detailed" },
      text: { format: { type: "json_object" }, verbosity: "low" },
      include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
      prompt_cache_key: "desk",
      safety_identifier: "u1",
    });
    expect(server.bodies[0]).not.toHaveProperty("user");
    expect(server.bodies[0]).not.toHaveProperty("stop");
    expect(warnings).toMatchObject([
      { code: "unsupported", message: expect.stringContaining("stopSequences") as string },
    ]);
  });

  test("carries images of users", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "A mountain.")] }]);
    const url = "data:image/png;base64,iVBORw0KGgo=";
    await whole(model, {
      messages: [
        userMessage([
          { type: "text", text: "See" },
          { type: "image", url },
        ]),
      ],
    });
    expect(server.bodies[0]?.["input"]).toEqual([
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "See" },
          { type: "input_image", image_url: url, detail: "auto" },
        ],
      },
    ]);
  });

  test("carries images and files of tools in their results, and files of users", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "A map.")] }]);
    const file = {
      type: "file",
      mediaType: "application/pdf",
      url: "data:application/pdf;base64,JVBERi0=",
      name: "m.pdf",
    };
    const image = { type: "image", url: "https://example.com/eiger.png" };
    const toolCalls = [{ callId: "t:1:0", providerId: "call_1", name: "look", arguments: "{}" }];
    const messages = [
      userMessage([{ type: "text", text: "Read" }, file as never]),
      written({ content: "", toolCalls }),
      {
        id: "3",
        role: "tool",
        createdAt: 0,
        origin: "tool",
        callId: "t:1:0",
        providerId: "call_1",
        content: [{ type: "text", text: "Found" }, image, file],
      },
    ] as unknown as ModelRequest["messages"];
    await whole(model, { messages });
    const [asked, , result] = (server.bodies[0]?.["input"] ?? []) as readonly Readonly<Record<string, unknown>>[];
    const sentFile = { type: "input_file", filename: "m.pdf", file_data: file.url };
    expect(asked?.["content"]).toEqual([{ type: "input_text", text: "Read" }, sentFile]);
    expect(result).toEqual({
      type: "function_call_output",
      call_id: "call_1",
      output: [
        { type: "input_text", text: "Found" },
        { type: "input_image", image_url: image.url, detail: "auto" },
        sentFile,
      ],
    });
    expect(server.bodies[0]?.["input"]).toHaveLength(3);
  });

  test("has the agent's id as the key of the cache, and the lifetime of what is written", async () => {
    const server = await responsesServer({
      output: [message("msg_1", "ok")],
      usage: {
        ...reportedUsage,
        input_tokens_details: {
          cached_tokens: 0,
          cache_write_tokens: 90,
          cache_write_tokens_details: { ttl_12h_tokens: 80, ttl_30m_tokens: 10 },
        },
      },
    });
    const options = { api: "responses", apiKey: "k", baseURL: server.baseURL, cache: "auto", cacheTtl: "12h" } as const;
    const model = openaiModel("gpt-5.6", options);
    const agent = defineAgent({ name: "guide", model });
    await run(agent, "Hello?", { agentId: "desk" });
    expect(server.bodies[0]).toMatchObject({ prompt_cache_key: "desk", prompt_cache_options: { ttl: "12h" } });
    expect((await whole(model)).usage).toMatchObject({ cacheWriteTokens: 90, longCacheWriteTokens: 80 });
    expect(() => openaiModel("gpt-5-mini", options)).toThrow(/cacheTtl/);
  });

  test("with fewer output tokens than the API takes is not sent", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "ok")] }]);
    const failure = await failureOf(whole(model, { ...request, maxOutputTokens: 15 }));
    expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } });
    expect(failure.message).toMatch(/at most 15 output tokens are left.*below 16: raise/);
    await whole(model, { ...request, maxOutputTokens: 16 });
    expect(server.bodies).toHaveLength(1);
  });

  test.each(["model", "input", "tools", "stream", "max_output_tokens", "previous_response_id"])(
    "with %s in providerOptions is not sent",
    async (field) => {
      const { model, server } = await modelOn([{}]);
      const failure = await failureOf(whole(model, { ...request, providerOptions: { openai: { [field]: 1 } } }));
      expect(failure).toMatchObject({ mayHaveBeenSent: false, details: { kind: "configuration" } });
      expect(failure.message).toContain(`providerOptions.openai has ${field}`);
      expect(server.bodies).toEqual([]);
    },
  );

  const items: JsonObject = {
    items: [
      { type: "reasoning", id: "rs_1", encrypted_content: "encrypted-rs_1" },
      { type: "message", length: 8 },
    ],
  };

  test("leaves out reasoning of an answer that a hook has changed, of another server, and without its content", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "ok")] }]);
    const own = { provider: "openai", model: "gpt-5-test" };
    expect(await inputOf(model, server, written({ reasoning: items, reasoningBy: own }))).toContain("encrypted-rs_1");
    const edited = written({ content: "3,967 metres.", reasoning: items, reasoningBy: own });
    expect(await inputOf(model, server, edited)).not.toContain("encrypted-rs_1");
    const elsewhere = { ...own, adapter: { ...own, server: "example.com/v1" } };
    expect(await inputOf(model, server, written({ reasoning: items, reasoningBy: elsewhere }))).not.toContain("rs_1");
    const kept = {
      items: [
        { type: "reasoning", id: "rs_1", summary: ["Hm"] },
        { type: "message", length: 8 },
      ],
    };
    expect(await inputOf(model, server, written({ reasoning: kept, reasoningBy: own }))).not.toContain("rs_1");
  });

  test("has ids of calls that are longer than the API takes in a short form, as their results", async () => {
    const { model, server } = await modelOn([{ output: [message("msg_1", "ok")] }], { foreignCallIds: "verbatim" });
    const providerId = `call_${"x".repeat(80)}`;
    const toolCalls = [{ callId: "t:1:0", providerId, name: "height", arguments: "{}" }];
    const result = { id: "3", role: "tool", createdAt: 0, origin: "tool", callId: "t:1:0", providerId, content: "x" };
    await whole(model, { messages: [...request.messages, written({ content: "", toolCalls }), result as never] });
    const [, asked, given] = (server.bodies[0]?.["input"] ?? []) as readonly { readonly call_id: string }[];
    expect(asked?.call_id).toMatch(/^[a-z0-9]{9}$/);
    expect(given?.call_id).toBe(asked?.call_id);
  });
});

describe("a failure", () => {
  const text: ResponsesReply = { output: [message("msg_1", "3,967 metres.")] };

  test.each([429, 500, 529])("of status %i may be repeated, after the delay that the server names", async (status) => {
    const { model } = await modelOn([{ status, error: error("Slow down"), headers: { "retry-after": "7" } }]);
    const failure = await failureOf(whole(model));
    expect(failure).toMatchObject({ status, retryable: true, retryAfterMs: 7_000, mayHaveBeenSent: true });
    expect(failure.partialOutputTokens).toBeUndefined();
  });

  test.each([
    [error("Your input exceeds the context window of this model.", "context_length_exceeded"), "context_length"],
    [error("You exceeded your current quota.", "insufficient_quota"), "insufficient_quota"],
  ])("in the words %o is of the kind %s", async (words, kind) => {
    const { model } = await modelOn([{ status: 400, error: words }]);
    expect(await failureOf(whole(model))).toMatchObject({ retryable: false, details: { kind } });
  });

  test("does not show the key", async () => {
    const { model } = await modelOn([{ status: 401, error: error("Incorrect API key: secret-key-0001") }]);
    const failure = await failureOf(whole(model));
    expect(failure).toMatchObject({ status: 401, retryable: false });
    expect(failure.message).not.toContain("secret-key-0001");
  });

  test.each([
    ["server_error", true],
    ["rate_limit_exceeded", true],
    ["invalid_prompt", false],
    ["image_content_policy_violation", false],
    ["bio_policy", false],
  ])("of a response with the code %s is retryable: %s", async (code, retryable) => {
    const { model } = await modelOn([{ output: [], failed: { code, message: "It failed." } }]);
    for (const failure of [await failureOf(whole(model)), await failureOf(streamed(model))]) {
      expect(failure).toMatchObject({ retryable, mayHaveBeenSent: true });
      expect(failure.message).toContain("It failed.");
      expect(failure).toMatchObject({ partialInputTokens: 100, partialOutputTokens: 30 });
    }
  });

  test("in an event ends the call", async () => {
    const before = eventsOf(text).slice(0, 5);
    for (const told of [
      { type: "error", code: "server_error", message: "Overloaded", param: null },
      { type: "error", error: { type: "server_error", code: "server_error", message: "Overloaded" } },
    ]) {
      const { model } = await modelOn([{ cut: [...before, told], how: "silent" }]);
      const failure = await failureOf(streamed(model));
      expect(failure.message).toContain("Overloaded");
      expect(failure).toMatchObject({ retryable: true, details: { kind: "error_in_answer" } });
    }
  });

  test("of the connection is billed for what came; hidden thoughts cannot be counted", async () => {
    const { model } = await modelOn([{ cut: eventsOf(text).slice(0, -2), how: "broken" }]);
    const failure = await failureOf(streamed(model));
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true });
    expect(failure.partialOutputTokens).toBeGreaterThan(0);
    const thinking = eventsOf({ output: [thought("rs_1", [])] }).slice(0, 3);
    const hidden = await failureOf(streamed((await modelOn([{ cut: thinking, how: "broken" }])).model));
    expect(hidden).toMatchObject({ retryable: true, mayHaveBeenSent: true });
    expect(hidden.partialOutputTokens).toBeUndefined();
  });

  test("by a stall ends the call while a text is written", async () => {
    const turns = [{ cut: eventsOf(text).slice(0, -2), how: "silent" }] as const;
    const { model } = await modelOn(turns, { stallTimeoutMs: 50 });
    expect(await failureOf(streamed(model))).toMatchObject({ details: { kind: "stalled" }, retryable: true });
  });

  test("by silence while the model thinks comes only from requestTimeoutMs", async () => {
    const thinking = eventsOf({ output: [thought("rs_1", ["Hm."])] }).slice(0, 5);
    const { model } = await modelOn([{ cut: thinking, how: "silent" }], { stallTimeoutMs: 20, requestTimeoutMs: 300 });
    const failure = await failureOf(streamed(model));
    expect(failure).toMatchObject({ details: { kind: "timeout" } });
    expect(failure.message).toContain("requestTimeoutMs");
  });

  test("by an abort is at once, and is not repeated", async () => {
    const { model, server } = await modelOn([{ cut: eventsOf(text).slice(0, 5), how: "silent" }]);
    const controller = new AbortController();
    const ended = failureOf(model.generate(request, { signal: controller.signal, onDelta: () => undefined }));
    await expect.poll(() => server.bodies.length).toBe(1);
    controller.abort(new Error("enough"));
    expect(await ended).toMatchObject({ details: { kind: "aborted" }, retryable: false });
  });

  test.each(["queued", "in_progress", "cancelled"])("is a response that is %s", async (status) => {
    const { model } = await modelOn([{ cut: [{ type: "", status, output: [] }], how: "silent" }], {
      stallTimeoutMs: 100,
    });
    expect(await failureOf(streamed(model))).toMatchObject({ retryable: true });
  });

  test("to encrypt thoughts is met by a request without them, once for the model", async () => {
    const { model, server } = await modelOn([
      { status: 400, error: error("Encrypted content is not supported with this model.") },
      { output: [message("msg_1", "ok")] },
    ]);
    expect((await whole(model)).content).toBe("ok");
    await whole(model);
    expect(server.bodies.map((body) => "include" in body)).toEqual([true, false, false]);
  });

  test("to encrypt thoughts is met by each of several calls at once", async () => {
    const refused = { status: 400, error: error("Encrypted content is not supported with this model.") };
    const { model, server } = await modelOn([refused, refused, { output: [message("msg_1", "ok")] }]);
    const answers = await Promise.all([whole(model), whole(model)]);
    expect(answers.map(({ content }) => content)).toEqual(["ok", "ok"]);
    expect(server.bodies).toHaveLength(4);
  });

  test("to read thoughts of another account is met by a request without these", async () => {
    const refused = error("The encrypted content gAAA could not be verified.", "invalid_encrypted_content");
    const ok = { output: [thought("rs_2", []), message("msg_2", "ok")] };
    const first = { output: [thought("rs_1", []), message("msg_1", "ok")] };
    const { model, server } = await modelOn([first, { status: 400, error: refused }, ok]);
    const stores = memoryStores();
    const guide = defineAgent({ name: "guide", model });
    for (const asked of ["One?", "Two?", "Three?"]) {
      expect((await run(guide, asked, { stores, agentId: "desk" })).text).toBe("ok");
    }
    const sent = server.bodies.map(({ input }) => JSON.stringify(input).match(/encrypted-rs_\d/g));
    expect(sent).toEqual([null, ["encrypted-rs_1"], null, ["encrypted-rs_2"]]);
  });
});

describe("budgets", () => {
  const prices = { "gpt-5-test": { inputPerMillion: 1, outputPerMillion: 5 } };
  const searching = { extraBody: { tools: [{ type: "web_search" }], max_tool_calls: 2 } };
  const found = {
    output: [
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "Eiger" } },
      message("msg_1", "3,967 m."),
    ],
  };

  test("encrypted thoughts count as the tokens that they have cost, not as text", async () => {
    const encrypted = Buffer.from(Array.from({ length: 6_000 }, (_, at) => (at * 7_919) % 251)).toString("base64");
    expect(encrypted.length).toBe(8_000);
    const reply = { output: [thought("rs_1", [], encrypted), message("msg_1", "3,967 m.")] };
    const { model } = await modelOn([reply]);
    const { reasoning } = await whole(model);
    const answer = { id: "2", role: "assistant", createdAt: 0, origin: "model", content: "3,967 m." } as const;
    const plain = await model.countPromptTokens({ messages: [...request.messages, answer] });
    const asked = { messages: [...request.messages, { ...answer, reasoning }] } as ModelRequest;
    const counted = await model.countPromptTokens(asked);
    expect(counted - plain).toBeLessThan(60);
    expect(counted - plain).toBeGreaterThanOrEqual(12);
    expect(model.boundPromptTokens?.(asked)).toBeGreaterThan(8_000);
  });

  test("tools of the server are refused under maxCost unless their use is priced", async () => {
    const { model, server } = await modelOn([found], searching);
    const guide = defineAgent({ name: "guide", model, budget: { maxCost: 1 } });
    const refused = await run(guide, "How high?", { prices }).then(
      ({ error }) => error?.message,
      (thrown: unknown) => (thrown as Error).message,
    );
    expect(refused).toContain("perCall");
    expect(refused).toContain("web_search");
    expect(server.bodies).toEqual([]);
    const priced = { "gpt-5-test": { ...prices["gpt-5-test"], perCall: 0.02 } };
    const { text, spent } = await run(guide, "How high?", { prices: priced });
    expect(text).toBe("3,967 m.");
    expect(spent.tree.cost).toBeGreaterThanOrEqual(0.02);
  });

  test("a tool that the server was not given ends the call for good", async () => {
    const { model } = await modelOn([found]);
    const failure = await failureOf(whole(model));
    expect(failure).toMatchObject({ retryable: false, details: { kind: "configuration" } });
    expect(failure.message).toContain('"web_search"');
  });

  test("tools of the server are beside those of the agent, and their calls go back", async () => {
    const { model, server } = await modelOn([found], searching);
    const stores = memoryStores();
    const guide = defineAgent({ name: "guide", model, tools: [height] });
    await run(guide, "How high?", { stores, agentId: "desk" });
    await run(guide, "Sure?", { stores, agentId: "desk" });
    expect(server.bodies[0]).toMatchObject({
      tools: [{ type: "function", name: "height" }, { type: "web_search" }],
      max_tool_calls: 2,
    });
    expect(server.bodies[1]?.["input"]).toContainEqual(found.output[0]);
  });
});

test("a refusal ends the turn at once, without a repair of its form", async () => {
  const { model, server } = await modelOn([{ output: [refusal("msg_1", "I cannot help with that.")] }]);
  const agent = defineAgent({ name: "guide", model, output: z.object({ metres: z.number() }) });
  expect(await run(agent, "How high is it?")).toMatchObject({
    status: "stopped",
    stopReason: "refusal",
    text: "I cannot help with that.",
    steps: 1,
  });
  expect(server.bodies).toHaveLength(1);
});

test("an item of a hosted tool may have any depth", () => {
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  const item = { type: "web_search_call", id: "ws_1", status: "completed", action: JSON.parse(deep) as unknown };
  const answer = new ResponsesAnswer({ hostedTools: ["web_search"] });
  answer.add({ type: "response.output_item.done", output_index: 0, item });
  answer.add({
    type: "response.completed",
    response: { usage: { input_tokens: 9, output_tokens: 9, output_tokens_details: { reasoning_tokens: 3 } } },
  });
  expect(answer.answer("m").content).toBe("");
});

describe("a conversation", () => {
  test("is continued by other models and back, with calls and results, and each gets its own reasoning only", async () => {
    const chat = await startModelServer((_body, { index }) => ({ text: `Chat ${index}.`, reasoning: "Chat thought." }));
    const own = await responsesServer(
      { output: [thought("rs_1", ["Hm."]), call("fc_1", "call_1", { of: "Eiger" })] },
      { output: [thought("rs_2", ["So."]), message("msg_1", "3,967 m.")] },
      { output: [message("msg_2", "Yes.")] },
    );
    const other = await familyServer(familyOf("Anthropic"), [{ thought: "Own thought.", text: "It is." }]);
    const stores = memoryStores();
    const turn = async (model: LanguageModel, asked: string) => {
      const agent = defineAgent({ name: "guide", model, tools: [height] });
      return (await run(agent, asked, { stores, agentId: "desk" })).text;
    };
    // Chat Completions under the same name and provider.
    const chatModel = openaiModel("gpt-5-test", { baseURL: chat.baseURL, apiKey: "none" });
    expect(await turn(modelAt(own), "How high is the Eiger?")).toBe("3,967 m.");
    expect(await turn(chatModel, "Sure?")).toBe("Chat 0.");
    expect(await turn(other.model(), "Really?")).toBe("It is.");
    expect(await turn(modelAt(own), "And now?")).toBe("Yes.");
    expect(await turn(chatModel, "And again?")).toBe("Chat 1.");
    const toChat = JSON.stringify(chat.requests[0]?.body);
    expect(toChat).toContain("Eiger: 3,967 m");
    expect(toChat).not.toMatch(/encrypted|"items"|Hm\./);
    expect(JSON.stringify(chat.requests[1]?.body)).toContain("Chat thought.");
    expect(JSON.stringify(other.bodies[0])).toContain("Eiger: 3,967 m");
    expect(JSON.stringify(other.bodies[0])).not.toMatch(/encrypted/);
    const back = JSON.stringify(own.bodies[2]);
    for (const text of ["encrypted-rs_1", "encrypted-rs_2", "Chat 0.", "It is."]) expect(back).toContain(text);
    expect(back).not.toMatch(/Chat thought|Own thought/);
    await chat.stop();
  });

  test("of the AI SDK's Responses does not reach this adapter's form, and the other way round", async () => {
    const sdk = await familyServer(familyOf("OpenAI Responses"), [{ thought: "Hm.", text: "3,967 m." }]);
    const { model, server } = await modelOn([{ output: [thought("rs_9", []), message("msg_9", "Yes.")] }]);
    const stores = memoryStores();
    const turn = (used: LanguageModel) =>
      run(defineAgent({ name: "guide", model: used }), "Sure?", { stores, agentId: "desk" });
    await turn(sdk.model({ name: "gpt-5-test" }));
    await turn(model);
    await turn(sdk.model({ name: "gpt-5-test" }));
    expect(JSON.stringify(server.bodies[0])).not.toContain("signature of Hm.");
    expect(JSON.stringify(sdk.bodies[1])).not.toContain("rs_9");
  });
});

describe("openaiModel({ api })", () => {
  test.each<[OpenaiModelOptions, RegExp]>([
    [{ api: "completions" as never }, /api/],
    [{ reasoning: { effort: "low" } }, /reasoning, which Chat Completions does not have/],
    [{ api: "responses", outputLimitField: "max_tokens" }, /outputLimitField/],
    [{ api: "responses", reasoning: { effort: "much" as never } }, /reasoning\.effort/],
    [{ api: "responses", reasoning: { summary: "long" as never } }, /reasoning\.summary/],
    [{ api: "responses", reasoning: 3 as never }, /reasoning/],
    [{ api: "responses", extraBody: { previous_response_id: "resp_1" } }, /extraBody has previous_response_id: leave/],
    [{ api: "responses", extraBody: { conversation: "conv_1" } }, /conversation/],
    [{ api: "responses", extraBody: { background: true } }, /background/],
    [{ api: "responses", extraBody: { prompt: { id: "pmpt_1" } } }, /prompt/],
    [{ api: "responses", extraBody: { tools: 3 } }, /tools is 3; expected a list/],
    [
      { api: "responses", extraBody: { tools: [{ type: "local_shell" }] } },
      /"local_shell"; expected a tool that OpenAI/,
    ],
  ])("refuses %o", (options, words) => {
    expect(() => openaiModel("m", options)).toThrow(InvalidInputError);
    expect(() => openaiModel("m", options)).toThrow(words);
  });

  test("sends through a client of the user, also to Azure", async () => {
    const server = await responsesServer({ output: [message("msg_1", "ok")] });
    const client = new OpenAI({ apiKey: "k", baseURL: server.baseURL, defaultHeaders: { "x-tenant": "blue" } });
    const azure = new AzureOpenAI({
      apiKey: "k",
      apiVersion: "2026-10-01",
      endpoint: server.baseURL.replace("/v1", ""),
    });
    for (const given of [client, azure]) {
      expect((await whole(openaiModel("deployed", { api: "responses", client: given }))).content).toBe("ok");
    }
    expect(server.paths).toEqual(["/v1/responses", "/openai/responses?api-version=2026-10-01"]);
    expect(server.headers[0]).toMatchObject({ "x-tenant": "blue" });
    expect(server.bodies[1]).toMatchObject({ model: "deployed" });
  });

  test("a call without a key is not sent", async () => {
    const failure = await failureOf(whole(openaiModel("m", { api: "responses", baseURL: "http://127.0.0.1:1/v1" })));
    expect(failure).toBeInstanceOf(ModelError);
    expect(failure).toMatchObject({ mayHaveBeenSent: false, details: { kind: "configuration" } });
  });
});
