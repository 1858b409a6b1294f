import { expect, it, describe } from "vitest";
import { z } from "zod";
import { createAgent, defineTool } from "../../src/index.ts";
import { countPromptTokens, openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import type { ModelRequest } from "../../src/state/index.ts";
import { failureOf, neverAborted, userMessage } from "../support/model-calls.ts";
import { completion, type WireRequest, wireAnswer, type WireServer, wireServer } from "../support/wire-server.ts";

interface Body {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly response_format?: { readonly type: string };
  readonly tools?: readonly unknown[];
}

const bodyOf = ({ body }: WireRequest): Body => JSON.parse(body) as Body;
/** The form of each request; `tool` if it has the tool of the answer. */
const formatsOf = ({ requests }: WireServer) =>
  requests.map((one) => {
    const { response_format, tools: sent = [] } = bodyOf(one);
    return response_format?.type ?? (JSON.stringify(sent).includes("final_answer") ? "tool" : "none");
  });

/** A server that refuses requests for which `refusal` returns a text. */
function refusing(refusal: (body: Body) => unknown, status = 400): Promise<WireServer> {
  return wireServer((socket, request) => {
    const refused = refusal(bodyOf(request));
    if (refused === undefined) socket.write(wireAnswer(completion('{"francs":12}')));
    else socket.write(wireAnswer(JSON.stringify(refused), "content-type: application/json", status));
  });
}

const responseFormat = {
  type: "json_schema",
  name: "output",
  schema: { type: "object", properties: { francs: { type: "number" } } },
} as const;
const tools = [{ name: "look", description: "Looks.", parameters: { type: "object", properties: {} } }];
const asked: ModelRequest = { messages: [userMessage("How much?")], responseFormat };

function modelAt({ host }: WireServer, options: OpenaiModelOptions = {}) {
  return openaiModel("m", { baseURL: `http://${host}/v1`, apiKey: "none", ...options });
}

const call = (server: WireServer, request = asked, options?: OpenaiModelOptions) =>
  modelAt(server, options).generate(request, { signal: neverAborted });

const words = (message: string) => ({ error: { message, type: "invalid_request_error", param: null } });

describe("a server that refuses a response format", () => {
  it.each([
    ["DeepSeek", words("This response_format type is unavailable now")],
    ["Groq", words("This model does not support response format `json_schema`.")],
    ["LM Studio", { error: "'response_format.type' must be 'text'" }],
    ["vLLM", { object: "error", message: "guided decoding is not available", code: 400 }],
    ["a validator", { detail: [{ loc: ["body", "response_format", "type"], msg: "Input should be 'text'" }] }],
    [
      "OpenAI",
      { error: { message: "Invalid parameter: 'response_format' of type 'json_schema'", param: "response_format" } },
    ],
  ])("is asked in another format, after the text of %s", async (_name, refusal) => {
    const server = await refusing(({ response_format }) =>
      response_format?.type === "json_schema" ? refusal : undefined,
    );
    expect((await call(server)).content).toBe('{"francs":12}');
    expect(formatsOf(server)).toEqual(["json_schema", "tool"]);
  });

  it("is asked in its JSON mode if it takes no tools, and without any format if it accepts none", async () => {
    const withJson = await refusing(({ response_format: format, tools: given }) =>
      given || format?.type === "json_schema" ? words("Unknown field response_format, tools") : undefined,
    );
    await call(withJson);
    expect(formatsOf(withJson)).toEqual(["json_schema", "tool", "json_object"]);
    const [first, , third] = withJson.requests.map(bodyOf);
    expect(first?.messages).toHaveLength(1);
    expect(third?.messages[0]).toMatchObject({ role: "system", content: expect.stringContaining('"francs"') });
    const plain = await refusing(({ response_format: format, tools: given }) =>
      given || format ? words("Unknown field response_format, tools") : undefined,
    );
    await call(plain);
    expect(formatsOf(plain)).toEqual(["json_schema", "tool", "json_object", "none"]);
  });

  it.each([
    ["Groq", "json mode cannot be combined with tool/function calling"],
    ["Gemini", "Function calling with a response mime type: 'application/json' is unsupported"],
    ["Cerebras", '"tools" is incompatible with "response_format"'],
  ])("next to tools is asked by one more tool, after the text of %s", async (_name, message) => {
    const server = await refusing(({ response_format, tools: given }) => response_format && given && words(message));
    await call(server, { ...asked, tools });
    await call(server, { ...asked, tools });
    await call(server);
    expect(formatsOf(server)).toEqual(["json_schema", "tool", "tool", "json_schema"]);
    expect(server.requests.map((one) => bodyOf(one).tools?.length ?? 0)).toEqual([1, 2, 2, 0]);
  });

  it("is remembered for the server and the model, also for other adapters", async () => {
    const server = await refusing(({ response_format: format, tools: given }) =>
      given || format ? words("no response_format and no tools here") : undefined,
    );
    await call(server);
    await call(server);
    await openaiModel("other", { baseURL: `http://${server.host}/v1`, apiKey: "none" }).generate(asked, {
      signal: neverAborted,
    });
    expect(formatsOf(server)).toEqual([
      "json_schema",
      "tool",
      "json_object",
      "none",
      "none",
      "json_schema",
      "tool",
      "json_object",
      "none",
    ]);
  });

  it("keeps the existing instructions, in one system message", async () => {
    const server = await refusing(() => undefined);
    const system = { ...userMessage("Be brief."), role: "system" } as const;
    await call(server, { ...asked, messages: [system, ...asked.messages] }, { structuredOutput: "prompt" });
    const [body] = server.requests.map(bodyOf);
    expect(body?.messages.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(body?.messages[0]?.content).toMatch(/^Be brief\.\n\nYour final answer must be nothing but JSON/);
  });
});

it.each([
  ["a refusal for another reason", words("Unknown model"), 400],
  ["a prompt that is too long", words("maximum context length, with response_format"), 400],
  ["missing rights", words("response_format"), 403],
])("%s causes no second request", async (_what, refusal, status) => {
  const server = await refusing(() => refusal, status);
  await failureOf(call(server));
  expect(server.requests).toHaveLength(1);
});

it.each([
  ["jsonSchema", "json_schema", false],
  ["jsonObject", "json_object", true],
  ["prompt", "none", true],
] as const)("structuredOutput %s uses only that format", async (structuredOutput, format, hasSchema) => {
  const server = await refusing(() => undefined);
  await call(server, { ...asked, tools }, { structuredOutput });
  expect(formatsOf(server)).toEqual([format]);
  expect(JSON.stringify(server.requests.map((one) => bodyOf(one).messages)).includes("francs")).toBe(hasSchema);
});

it("a format in extraBody is kept, and the schema is in the instructions", async () => {
  const server = await refusing(() => undefined);
  await call(server, asked, { extraBody: { response_format: { type: "json_object" } } });
  expect(formatsOf(server)).toEqual(["json_object"]);
  expect(bodyOf(server.requests[0] as WireRequest).messages[0]?.content).toContain("francs");
});

it("the reservation includes the schema in the instructions", async () => {
  const plain = await countPromptTokens({ messages: asked.messages });
  const inPrompt = await countPromptTokens({ messages: [userMessage(JSON.stringify(responseFormat.schema))] });
  expect(await countPromptTokens(asked)).toBeGreaterThan(
    plain + inPrompt - (await countPromptTokens({ messages: [] })),
  );
});

it("a fallback to another format is neither a step nor an attempt, and costs nothing", async () => {
  const server = await refusing(({ response_format }) => response_format && words("response_format is not supported"));
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: () => "12",
  });
  const agent = await createAgent({
    model: modelAt(server),
    tools: [look],
    output: z.object({ francs: z.number() }),
    maxModelAttempts: 1,
    budget: { maxSteps: 1, maxTokens: 20_000, finalAnswer: true },
  });
  await agent.start();
  const { output, steps, spent } = await agent.executeTurn("How much?").result;
  expect({ output, steps, calls: spent.byModel["m"]?.calls }).toEqual({ output: { francs: 12 }, steps: 1, calls: 1 });
  expect(server.requests).toHaveLength(2);
  await agent.runtime.shutdown();
});
