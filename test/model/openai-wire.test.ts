import { describe, expect, it } from "vitest";
import { wireBody } from "../../src/model/openai-wire.ts";
import type { AssistantMessage, JsonObject, Message, ModelRequest, ToolMessage } from "../../src/state/index.ts";
import { userMessage } from "../support/model-calls.ts";

const reader = { provider: "p", model: "m", server: "s" };
const bodyOf = (...given: Parameters<typeof wireBody>) =>
  JSON.parse(JSON.stringify(wireBody(...given))) as Readonly<Record<string, unknown>>;
const wire = (request: ModelRequest, extraBody: JsonObject = {}) =>
  bodyOf(request, {
    stream: false,
    outputLimitField: "max_completion_tokens",
    extraBody,
    reader,
    keepsForeignIds: false,
  });
const messagesOf = (...messages: readonly Message[]) => wire({ messages })["messages"] as readonly object[];
/** These messages as they are sent after a question. */
const answersOf = (...messages: readonly Message[]) =>
  messagesOf(userMessage("q"), ...messages).slice(1, 1 + messages.length);
const base = { id: "1", createdAt: 1, origin: "model" };
const assistant = (fields: Partial<AssistantMessage>): AssistantMessage => ({
  role: "assistant",
  ...base,
  content: "",
  ...fields,
});
const result = (providerId: string, content: ToolMessage["content"]): ToolMessage => ({
  role: "tool",
  ...base,
  callId: `t:1:${providerId}`,
  providerId,
  content,
});
const image = { type: "image", url: "data:image/png;base64,AA==" } as const;

const wiredCall = (id: string) => ({ id, type: "function", function: { name: "f", arguments: "{}" } });

describe("messages on the wire", () => {
  it("contain their roles, texts and images, and no internal fields", () => {
    const system: Message = {
      role: "system",
      ...base,
      content: [
        { type: "text", text: "Be " },
        { type: "text", text: "brief" },
      ],
      metadata: { agent_id: "a" },
    };
    expect(
      messagesOf(
        system,
        userMessage("hi"),
        assistant({ content: "ok" }),
        userMessage([{ type: "text", text: "see" }, image]),
      ),
    ).toEqual([
      { role: "system", content: "Be brief" },
      { role: "user", content: "hi" },
      { role: "assistant", content: "ok" },
      {
        role: "user",
        content: [
          { type: "text", text: "see" },
          { type: "image_url", image_url: { url: image.url } },
        ],
      },
    ]);
  });

  it("use the provider's ids for calls and their results", () => {
    const calls = [{ callId: "turn:1:0", providerId: "call_x", name: "search", arguments: '{"q":1}' }];
    expect(answersOf(assistant({ toolCalls: calls }), result("call_x", "found"))).toEqual([
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_x", type: "function", function: { name: "search", arguments: '{"q":1}' } }],
      },
      { role: "tool", tool_call_id: "call_x", content: "found" },
    ]);
  });

  it("wrap broken arguments in an object, which every server accepts in the history", () => {
    const calls = [{ callId: "turn:1:0", providerId: "a", name: "f", arguments: '{"q":' }];
    expect(answersOf(assistant({ toolCalls: calls }))).toMatchObject([
      { tool_calls: [{ function: { arguments: '{"malformed":"{\\"q\\":"}' } }] },
    ]);
  });

  it("return reasoning fields and signatures unchanged", () => {
    const reasoning = {
      reasoning_content: "Hm",
      reasoning_details: [{ type: "x" }],
      tool_call_extras: [{ id: "a", extra_content: { google: 1 } }],
    };
    const calls = [
      { callId: "turn:1:0", providerId: "a", name: "f", arguments: "{}" },
      { callId: "turn:1:1", providerId: "b", name: "f", arguments: "{}" },
    ];
    expect(answersOf(assistant({ toolCalls: calls, reasoning }))).toEqual([
      {
        role: "assistant",
        content: null,
        reasoning_content: "Hm",
        reasoning_details: [{ type: "x" }],
        tool_calls: [{ ...wiredCall("a"), extra_content: { google: 1 } }, wiredCall("b")],
      },
    ]);
  });

  it("put images of tool results after the whole round", () => {
    const calls = ["a", "b"].map((id) => ({ callId: `t:1:${id}`, providerId: id, name: "f", arguments: "{}" }));
    const wired = messagesOf(
      userMessage("q"),
      assistant({ toolCalls: calls }),
      result("a", [{ type: "text", text: "shot" }, image]),
      result("b", "text"),
      userMessage("next"),
    );
    expect(wired.slice(2)).toMatchObject([
      { role: "tool", tool_call_id: "a", content: "shot" },
      { role: "tool", tool_call_id: "b", content: "text" },
      { role: "assistant" },
      {
        role: "user",
        content: [
          { type: "text", text: "Images from the result of tool call a:" },
          { type: "image_url", image_url: { url: image.url } },
          { type: "text", text: "next" },
        ],
      },
    ]);
  });
});

describe("the request's fields", () => {
  const messages = [userMessage("hi")];
  const tool = { name: "f", description: "does f", parameters: { type: "object" } };

  it("are those of Chat Completions", () => {
    const schema = { type: "object" };
    const body = wire({
      messages,
      tools: [tool],
      toolChoice: "required",
      maxOutputTokens: 99,
      temperature: 0.5,
      responseFormat: { type: "json_schema", name: "out", schema },
    });
    expect(body).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      tools: [{ type: "function", function: tool }],
      tool_choice: "required",
      max_completion_tokens: 99,
      temperature: 0.5,
      response_format: { type: "json_schema", json_schema: { name: "out", schema } },
    });
    expect(wire({ messages, responseFormat: { type: "json" } })["response_format"]).toEqual({ type: "json_object" });
  });

  it("carry the settings of the call, and the options of their own provider last", () => {
    const body = wire(
      {
        messages,
        tools: [tool],
        toolChoice: { tool: "f" },
        stopSequences: ["END", "STOP"],
        reasoningEffort: "high",
        providerOptions: { p: { service_tier: "flex", temperature: 1 }, anthropic: { effort: "low" } },
        temperature: 0,
      },
      { service_tier: "auto", seed: 7 },
    );
    expect(body).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      tools: [{ type: "function", function: tool }],
      tool_choice: { type: "function", function: { name: "f" } },
      stop: ["END", "STOP"],
      reasoning_effort: "high",
      service_tier: "flex",
      seed: 7,
      temperature: 1,
    });
    expect(Object.keys(wire({ messages, stopSequences: [] })).sort()).toEqual(["messages", "model"]);
  });

  it.each([
    ["model", "troupe sets it itself"],
    ["messages", "troupe sets it itself"],
    ["tools", "troupe sets it itself"],
    ["stream", "troupe sets it itself"],
    ["n", "troupe sets it itself"],
    ["max_tokens", "set maxOutputTokens instead"],
    ["max_completion_tokens", "set maxOutputTokens instead"],
  ])("refuse %s among the options of the provider before anything is sent", (field, advice) => {
    const send = () => wire({ messages, providerOptions: { p: { [field]: 9 } } });
    expect(send).toThrow(`The model call was not sent: providerOptions.p has ${field}; ${advice}`);
    const failure = (() => {
      try {
        return send();
      } catch (error) {
        return error;
      }
    })();
    expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } });
  });

  it("omit an empty list of tools with its choice, which servers refuse", () => {
    expect(Object.keys(wire({ messages, tools: [], toolChoice: "none" })).sort()).toEqual(["messages", "model"]);
  });

  it("omit custom fields about tools if there are no tools, as in a request for a summary", () => {
    const extraBody = {
      parallel_tool_calls: false,
      tool_choice: "auto",
      tool_stream: true,
      function_call: "none",
      top_k: 1,
    };
    expect(wire({ messages }, extraBody)).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      top_k: 1,
    });
    expect(wire({ messages, tools: [tool] }, extraBody)).toMatchObject(extraBody);
    const withTools = { ...extraBody, tools: [{ type: "builtin_function", function: { name: "$web_search" } }] };
    expect(wire({ messages }, withTools)).toMatchObject(withTools);
  });

  it("may use the older output limit, and extra fields take precedence", () => {
    const body = bodyOf(
      { messages, maxOutputTokens: 9 },
      {
        stream: true,
        outputLimitField: "max_tokens",
        extraBody: { model: "other" },
        reader,
        keepsForeignIds: false,
      },
    );
    expect(body).toMatchObject({
      model: "other",
      max_tokens: 9,
      stream: true,
      stream_options: { include_usage: true },
    });
  });
});

const round = (step: number, content: ToolMessage["content"] = `result ${step}`, name = "search"): Message[] => {
  const callId = `t:${step}:0`;
  const providerId = "call_same";
  return [
    { ...userMessage(`question ${step}`), id: `q${step}` },
    assistant({ id: `a${step}`, toolCalls: [{ callId, providerId, name, arguments: "{}" }] }),
    { role: "tool", ...base, id: callId, callId, providerId, content },
  ];
};
const nameIn = (body: object): unknown => /"name":"(search_it-[^"]+)","arguments"/.exec(JSON.stringify(body))?.[1];

it("use another name for a call if a tool of the request has that name", () => {
  const messages = round(1, "found", "search it");
  const taken = nameIn(wire({ messages }));
  expect(taken).toBeDefined();
  const renamed = nameIn(wire({ messages, tools: [{ name: String(taken), description: "", parameters: {} }] }));
  expect(renamed).toBeDefined();
  expect(renamed).not.toBe(taken);
});

it("leave the messages to custom fields if those set them", () => {
  const extraBody = { messages: [], stream: true };
  expect(wire({ messages: round(1) }, extraBody)).toEqual({ model: "m", messages: [], stream: true });
});
