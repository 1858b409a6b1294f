import { describe, expect, it } from "vitest";
import { z } from "zod";
import { createAgent, defineAgent, defineTool, run, type TroupeEvent } from "../../src/index.ts";
import { type ModelDelta, openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import { OutputToolDeltas } from "../../src/model/output-tool.ts";
import type { Message, ModelRequest } from "../../src/state/index.ts";
import { chunk, done, failureOf, neverAborted, usageChunk, userMessage } from "../support/model-calls.ts";
import { modelFamilies } from "./contract/families.ts";
import { familyServer } from "./contract/model-server.ts";
import { completion, type WireRequest, wireAnswer, type WireServer, wireServer } from "../support/wire-server.ts";

interface Body {
  readonly stream?: boolean;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string | null;
    readonly tool_calls?: unknown;
  }[];
  readonly response_format?: { readonly type: string };
  readonly tools?: readonly { readonly function: { readonly name: string; readonly parameters: object } }[];
  readonly tool_choice?: unknown;
}

interface Written {
  readonly text?: string;
  readonly calls?: readonly { readonly name: string; readonly arguments: string }[];
  readonly end?: string;
}

const bodyOf = ({ body }: WireRequest): Body => JSON.parse(body) as Body;
const bodiesOf = ({ requests }: WireServer) => requests.map(bodyOf);
const words = (message: string) => ({ error: { message, type: "invalid_request_error", param: null } });

function answerTo(
  { stream }: Body,
  { text, calls = [], end = calls.length > 0 ? "tool_calls" : "stop" }: Written,
): Buffer {
  const called = calls.map(({ name, arguments: args }, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: args },
  }));
  if (stream !== true) {
    const message = { content: text ?? null, ...(called.length === 0 ? {} : { tool_calls: called }) };
    const usage = { prompt_tokens: 7, completion_tokens: 3 };
    return wireAnswer(JSON.stringify({ id: "c1", choices: [{ index: 0, message, finish_reason: end }], usage }));
  }
  const pieces = text === undefined ? [] : [chunk({ content: text })];
  for (const { function: written, ...call } of called) {
    pieces.push(chunk({ tool_calls: [{ ...call, function: { name: written.name, arguments: "" } }] }));
    for (const part of written.arguments.match(/.{1,9}/gs) ?? []) {
      pieces.push(chunk({ tool_calls: [{ index: call.index, function: { arguments: part } }] }));
    }
  }
  return wireAnswer([...pieces, chunk({}, end), usageChunk, done].join(""), "content-type: text/event-stream");
}

/** A server that writes these answers in turn, or refuses with an error. */
function writing(...answers: readonly (Written | { readonly error: unknown })[]): Promise<WireServer> {
  return wireServer((socket, request) => {
    const answer = answers[Math.min(request.index, answers.length - 1)] ?? {};
    if ("error" in answer) socket.write(wireAnswer(JSON.stringify(answer), "content-type: application/json", 400));
    else socket.write(answerTo(bodyOf(request), answer));
  });
}

/** A server that refuses what `refusal` names, and otherwise calls the tool of the answer if it has one. */
function choosing(refusal: (body: Body) => unknown): Promise<WireServer> {
  return wireServer((socket, request) => {
    const body = bodyOf(request);
    const refused = refusal(body);
    const hasTool = body.tools?.some((tool) => tool.function.name === "final_answer");
    if (refused !== undefined) {
      socket.write(wireAnswer(JSON.stringify(refused), "content-type: application/json", 400));
    } else socket.write(answerTo(body, hasTool ? { calls: [given] } : { text: given.arguments }));
  });
}

const schema = { type: "object", properties: { francs: { type: "number" } } } as const;
const asked: ModelRequest = {
  messages: [userMessage("How much?")],
  responseFormat: { type: "json_schema", name: "output", schema },
};
const look = { name: "look", description: "Looks.", parameters: { type: "object", properties: {} } } as const;
const given = { name: "final_answer", arguments: '{"francs":12}' };
const forced = { type: "function", function: { name: "final_answer" } };

function modelAt({ host }: WireServer, options: OpenaiModelOptions = {}) {
  return openaiModel("m", { baseURL: `http://${host}/v1`, apiKey: "none", ...options });
}

async function call(server: WireServer, request = asked, options: OpenaiModelOptions = { structuredOutput: "tool" }) {
  return await modelAt(server, options).generate(request, { signal: neverAborted });
}

const answered = (content: string): Message => ({ id: "2", role: "assistant", createdAt: 0, origin: "model", content });
const told = (content: string): Message => ({ id: "3", role: "user", createdAt: 0, origin: "runtime", content });
const namesOf = ({ tools = [] }: Body) => tools.map((tool) => tool.function.name);

describe("the strategy tool", () => {
  it("sends the schema as a tool that must be called, and its arguments are the text of the answer", async () => {
    const server = await writing({ calls: [given] });
    const answer = await call(server);
    expect(answer).toMatchObject({ content: '{"francs":12}', toolCalls: [], finishReason: "stop" });
    const [body] = bodiesOf(server);
    expect(body?.response_format).toBeUndefined();
    expect(body?.tools).toMatchObject([{ function: { name: "final_answer", parameters: schema } }]);
    expect(body?.tool_choice).toEqual(forced);
    expect(body?.messages).toHaveLength(1);
  });

  it("streams the arguments as text, and no call", async () => {
    const server = await writing({ text: "It is:", calls: [{ ...given, arguments: '{"francs":12,"of":"twelve"}' }] });
    const deltas: ModelDelta[] = [];
    const answer = await modelAt(server, { structuredOutput: "tool" }).generate(asked, {
      signal: neverAborted,
      onDelta: (delta) => deltas.push(delta),
    });
    expect(deltas.every(({ type }) => type === "text")).toBe(true);
    const shown = deltas.map((delta) => (delta.type === "text" ? delta.text : "")).join("");
    expect(shown).toBe('It is:\n\n{"francs":12,"of":"twelve"}');
    expect(answer.content).toBe(shown);
  });

  it("beside other tools leaves the choice to the model, whose other calls stay", async () => {
    const server = await writing({ calls: [given, { name: "look", arguments: "{}" }] });
    const answer = await call(server, { ...asked, tools: [look] });
    expect(bodiesOf(server).map(namesOf)).toEqual([["look", "final_answer"]]);
    expect(bodiesOf(server)[0]?.tool_choice).toBe("auto");
    expect(answer).toMatchObject({
      content: '{"francs":12}',
      toolCalls: [{ name: "look" }],
      finishReason: "tool_calls",
    });
  });

  it("must be called where other tools may not be, and some tool after an answer in text", async () => {
    const server = await writing({ calls: [given] });
    await call(server, { ...asked, tools: [look], toolChoice: "none" });
    const repair = [...asked.messages, answered("Twelve."), told("Your answer does not fit.")];
    await call(server, { ...asked, tools: [look], messages: repair });
    await call(server, { ...asked, tools: [look], toolChoice: { tool: "look" } });
    expect(bodiesOf(server).map(({ tool_choice }) => tool_choice)).toEqual([
      forced,
      "required",
      { type: "function", function: { name: "look" } },
    ]);
  });

  it("has a name of its own beside a tool of the same name", async () => {
    const server = await writing({
      calls: [
        { ...given, name: "final_answer_2" },
        { name: "final_answer", arguments: "{}" },
      ],
    });
    const answer = await call(server, { ...asked, tools: [{ ...look, name: "final_answer" }] });
    expect(bodiesOf(server).map(namesOf)).toEqual([["final_answer", "final_answer_2"]]);
    expect(answer).toMatchObject({ content: '{"francs":12}', toolCalls: [{ name: "final_answer" }] });
  });

  it("keeps what was cut, and what was filtered, with its reason", async () => {
    const server = await writing(
      { calls: [{ ...given, arguments: '{"fra' }], end: "length" },
      { text: "I will not.", end: "content_filter" },
    );
    expect(await call(server)).toMatchObject({ content: '{"fra', toolCalls: [], finishReason: "length" });
    expect(await call(server)).toMatchObject({ content: "I will not.", finishReason: "content_filter" });
  });

  it("is not required of a server that cannot require a call", async () => {
    const refusal = words("deepseek-reasoner does not support this tool_choice");
    const server = await choosing(({ tool_choice }) => (typeof tool_choice === "object" ? refusal : undefined));
    expect((await call(server)).content).toBe('{"francs":12}');
    await call(server);
    await call(server, { ...asked, tools: [look], toolChoice: "none" });
    const [, , , last] = bodiesOf(server);
    expect(bodiesOf(server).map(({ tool_choice }) => tool_choice)).toEqual([forced, "auto", "auto", "none"]);
    expect(last?.messages[0]?.content).toContain("francs");
  });
});

const noFormats = ({ response_format }: Body) => response_format && words("response_format is not supported");

describe("auto", () => {
  it("asks by the tool when the server takes no format for schemas", async () => {
    const server = await choosing(noFormats);
    expect((await call(server, asked, {})).content).toBe('{"francs":12}');
    await call(server, asked, {});
    expect(bodiesOf(server).map((body) => body.response_format?.type ?? namesOf(body).join())).toEqual([
      "json_schema",
      "final_answer",
      "final_answer",
    ]);
  });

  it.each([
    ["Ollama", "registry.ollama.ai/library/gemma2 does not support tools"],
    ["OpenRouter", "No endpoints found that support tool use."],
    ["llama.cpp", "tools param requires --jinja flag"],
    ["a validator", "Invalid schema for function 'final_answer': schema must have type object"],
  ])("goes on after a refusal of tools in the words of %s", async (_server, message) => {
    const server = await choosing((body) =>
      body.response_format?.type === "json_schema" ? noFormats(body) : body.tools && words(message),
    );
    await call(server, asked, {});
    expect(bodiesOf(server).map((body) => body.response_format?.type ?? namesOf(body).join())).toEqual([
      "json_schema",
      "final_answer",
      "json_object",
    ]);
  });

  it("leaves a server alone with the tool that has ignored it", async () => {
    const server = await wireServer((socket, request) => {
      const isRefused = bodyOf(request).response_format?.type === "json_schema";
      if (!isRefused) return socket.write(wireAnswer(completion("Twelve.")));
      return socket.write(wireAnswer(JSON.stringify(words("response_format")), "content-type: application/json", 400));
    });
    expect((await call(server, asked, {})).content).toBe("Twelve.");
    await call(server, asked, {});
    expect(bodiesOf(server).map((body) => body.response_format?.type ?? namesOf(body).join())).toEqual([
      "json_schema",
      "final_answer",
      "json_object",
    ]);
  });

  it("keeps the tool when the server only refuses the choice that the request itself makes", async () => {
    const server = await choosing((body) => {
      const isDemanded = JSON.stringify(body.tool_choice ?? "").includes("look");
      return noFormats(body) ?? (isDemanded ? words("tool_choice is not supported while thinking") : undefined);
    });
    const choosingLook: ModelRequest = { ...asked, tools: [look], toolChoice: { tool: "look" } };
    const failure = await failureOf(call(server, choosingLook, {}));
    expect(failure.message).toContain("tool_choice is not supported while thinking");
    await call(server, { ...asked, tools: [look] }, {});
    await call(server, asked, {});
    expect(bodiesOf(server).map((body) => body.response_format?.type ?? namesOf(body).join())).toEqual([
      "json_schema",
      "look,final_answer",
      "look,final_answer",
      "json_schema",
      "final_answer",
    ]);
    expect(bodiesOf(server).at(-1)?.tool_choice).toEqual(forced);
  });

  it("names all refusals when the call fails in the end", async () => {
    const server = await choosing((body) => noFormats(body) ?? words(body.tools ? "tools are off" : "no such model"));
    const failure = await failureOf(call(server, asked, {}));
    expect(failure.message).toMatch(
      /no such model\. Before that the server refused these values of structuredOutput: jsonSchema \(.*not supported\); tool \(.*tools are off\); jsonObject \(/,
    );
    expect(failure).toMatchObject({ retryable: false, status: 400 });
  });
});

describe("a chosen strategy that the server refuses", () => {
  it.each([
    ["jsonSchema", "response_format is not supported"],
    ["tool", "this model does not support tools"],
    ["jsonObject", "response_format is not supported"],
  ] as const)("%s fails with the server's words and what can be set", async (structuredOutput, message) => {
    const server = await writing({ error: words(message).error });
    const failure = await failureOf(call(server, asked, { structuredOutput }));
    expect(failure.message).toContain(`The server refused structuredOutput "${structuredOutput}": `);
    expect(failure.message).toContain(message);
    expect(failure.message).toMatch(/Set structuredOutput of the model to "auto", or to "\w+", "\w+" or "\w+"\.$/);
    expect(failure.message).not.toContain(`or to "${structuredOutput}"`);
    expect(failure).toMatchObject({ retryable: false, status: 400, details: { refusedFormats: structuredOutput } });
    expect(server.requests).toHaveLength(1);
  });

  it("a failure for another reason stays as it is", async () => {
    const server = await writing({ error: words("Unknown model").error });
    const failure = await failureOf(call(server));
    expect(failure.message).toBe("The model server answered 400: Unknown model");
  });
});

const metresCall = (metres: number) => ({ name: "final_answer", arguments: JSON.stringify({ metres }) });

describe("an agent whose answer is a call", () => {
  const height = defineTool({
    name: "height",
    description: "The height of a mountain.",
    parameters: z.object({ of: z.string() }),
    effect: "none",
    execute: ({ of }) => `${of}: 3967`,
  });
  const output = z.object({ metres: z.number() });

  it("has no such call in its events, its budget and its conversation", async () => {
    const server = await writing(
      { calls: [{ name: "height", arguments: '{"of":"Eiger"}' }] },
      { calls: [metresCall(3967)] },
    );
    const agent = await createAgent({
      model: modelAt(server, { structuredOutput: "tool" }),
      tools: [height],
      output,
      budget: { maxToolCalls: 1 },
    });
    await agent.start();
    const turn = agent.executeTurn("How high is the Eiger?");
    const events: TroupeEvent[] = [];
    for await (const event of turn) events.push(event);
    expect(await turn.result).toMatchObject({ status: "completed", toolCalls: 1, output: { metres: 3967 } });
    expect(events.flatMap((event) => (event.type === "tool.started" ? event.name : []))).toEqual(["height"]);
    expect(events.findLast(({ type }) => type === "output.delta")).toMatchObject({ output: { metres: 3967 } });
    await agent.executeTurn("Sure?").result;
    const [first, , third] = bodiesOf(server);
    expect(JSON.stringify(first?.tools)).not.toContain("$schema");
    expect(third?.messages.map(({ role, content, tool_calls }) => [role, content, tool_calls !== undefined])).toEqual([
      ["user", "How high is the Eiger?", false],
      ["assistant", null, true],
      ["tool", "Eiger: 3967", false],
      ["assistant", '{"metres":3967}', false],
      ["user", "Sure?", false],
    ]);
    await agent.runtime.shutdown();
  });

  it("runs other calls first and is asked again with their results", async () => {
    const early = [metresCall(1), { name: "height", arguments: '{"of":"Eiger"}' }];
    const server = await writing({ calls: early }, { calls: [metresCall(3967)] });
    const definition = defineAgent({
      name: "g",
      model: modelAt(server, { structuredOutput: "tool" }),
      tools: [height],
      output,
    });
    expect(await run(definition, "How high?")).toMatchObject({ steps: 2, toolCalls: 1, output: { metres: 3967 } });
    expect(bodiesOf(server)[1]?.messages.slice(1)).toMatchObject([
      { role: "assistant", content: '{"metres":1}', tool_calls: [{ function: { name: "height" } }] },
      { role: "tool", content: "Eiger: 3967" },
    ]);
  });

  it("is asked once more when it does not fit", async () => {
    const wrong = { name: "final_answer", arguments: '{"metres":"high"}' };
    const server = await writing(
      { text: "Very high." },
      { calls: [metresCall(3967)] },
      { calls: [wrong] },
      { calls: [metresCall(1)] },
    );
    const model = modelAt(server, { structuredOutput: "tool" });
    const definition = defineAgent({ name: "g", model, tools: [height], output });
    expect(await run(definition, "How high?")).toMatchObject({ steps: 2, output: { metres: 3967 } });
    expect(await run(definition, "How high?")).toMatchObject({ steps: 2, output: { metres: 1 } });
    expect(bodiesOf(server).map(({ tool_choice }) => tool_choice)).toEqual(["auto", "required", "auto", "required"]);
  });

  it("is forced in the last call of a budget", async () => {
    const server = await writing(
      { calls: [{ name: "height", arguments: '{"of":"Eiger"}' }] },
      { calls: [metresCall(3967)] },
    );
    const model = modelAt(server, { structuredOutput: "tool" });
    const definition = defineAgent({
      name: "g",
      model,
      tools: [height],
      output,
      budget: { maxSteps: 2, finalAnswer: true },
    });
    const result = await run(definition, "How high?");
    expect(result).toMatchObject({ status: "completed", output: { metres: 3967 } });
    expect(bodiesOf(server).map(({ tool_choice }) => tool_choice)).toEqual(["auto", forced]);
  });

  it.each(modelFamilies)("works with $name, and its next turn has the answer as text", async (family) => {
    const call = { id: "c1", name: "final_answer", arguments: { metres: 3967 } };
    const server = await familyServer(family, [{ thought: "Alps.", calls: [call] }]);
    const agent = await createAgent({ model: server.model({ structuredOutput: "tool" }), output });
    await agent.start();
    const turn = agent.executeTurn("How high is the Eiger?");
    const shown: unknown[] = [];
    for await (const value of turn.partialOutputs()) shown.push(value);
    expect((await turn.result).output).toEqual({ metres: 3967 });
    expect(shown.at(-1)).toEqual({ metres: 3967 });
    expect((await agent.executeTurn("Sure?").result).output).toEqual({ metres: 3967 });
    const [, second] = server.bodies;
    const { tools, tool_config, toolConfig, tool_choice, ...sent } = second ?? {};
    expect(JSON.stringify([tools, toolConfig])).toContain("final_answer");
    // Some providers only have the choice of any tool.
    expect(JSON.stringify([tool_config, toolConfig, tool_choice])).toMatch(/final_answer|REQUIRED/);
    expect(JSON.stringify(sent)).not.toContain("final_answer");
    expect(JSON.stringify(sent)).toContain("3967");
    await agent.runtime.shutdown();
  });
});

it("the other calls of an answer are reported as if the tool's were not among them", () => {
  const deltas: ModelDelta[] = [];
  const { add } = new OutputToolDeltas("final_answer", (delta) => deltas.push(delta));
  add({ type: "tool-call", index: 0, id: "a", name: "final_answer" });
  add({ type: "tool-arguments", index: 0, text: "{" });
  add({ type: "tool-call", index: 1, id: "b", name: "look" });
  add({ type: "tool-arguments", index: 1, text: "{}" });
  add({ type: "tool-arguments", index: 0, text: "}" });
  add({ type: "tool-call", index: 2, id: "c", name: "final_answer" });
  add({ type: "tool-arguments", index: 2, text: "{}" });
  expect(deltas).toEqual([
    { type: "text", text: "{" },
    { type: "tool-call", index: 0, id: "b", name: "look" },
    { type: "tool-arguments", index: 0, text: "{}" },
    { type: "text", text: "}" },
    { type: "text", text: "\n\n" },
    { type: "text", text: "{}" },
  ]);
});
