// Parameters of the Responses API that are accepted, refused and ignored.
import { zodTextFormat } from "openai/helpers/zod";
import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import { defineAgent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { refusal, responsesServed, servedAgent, show, shown } from "./responses-served.ts";

test.each([
  [{ store: false }, "store"],
  [{ text: { format: { type: "json_schema", name: "x", schema: {} } } }, "text.format"],
  [{ tool_choice: "required" }, "tool_choice"],
  [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
  [{ input: [] }, "input"],
  [{ input: [{ role: "system", content: "x" }] }, "input"],
  [{ input: [{ role: "critic", content: "x" }] }, "input[0].role"],
  [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "x" }] }] }, "input[0].content[0]"],
  [{ input: [{ type: "item_reference", id: "x" }] }, "input[0].type"],
  [{ prompt: { id: "x" } }, null],
  [{ model: undefined }, "model"],
] as const)("a parameter that would change the meaning is refused: %j", async (more, param) => {
  const { client, runtime } = await responsesServed();
  const body = { model: "desk", input: "a", ...more } as unknown as ResponseCreateParamsNonStreaming;
  const [status, code, named] = await refusal(client.responses.create(body));
  expect([status, named]).toEqual([400, param]);
  expect(["invalid_request", "unsupported_parameter"]).toContain(code);
  expect(await runtime.list()).toEqual([]);
});

test("parameters that the agent's definition decides are ignored; a limit of tool calls is applied", async () => {
  const { client } = await responsesServed();
  const response = await client.responses.create({
    model: "desk",
    input: "hello",
    temperature: 0.1,
    top_p: 1,
    metadata: { a: "b" },
    include: ["reasoning.encrypted_content"],
    truncation: "auto",
    user: "somebody",
    reasoning: { effort: "low" },
    parallel_tool_calls: false,
    instructions: null,
    store: true,
  });
  expect(response.output_text).toBe("1: hello");
  const limited = await client.responses.create({ model: "desk", input: "delegate", max_tool_calls: 1 });
  expect(limited.status).toBe("completed");
});

test("an unknown model is refused as in the protocol", async () => {
  const { client } = await responsesServed();
  expect(await refusal(client.responses.create({ model: "gpt-9", input: "a" }))).toEqual([
    404,
    "model_not_found",
    "model",
  ]);
});

test("instructions reach a new agent first; different ones fork a conversation", async () => {
  const { client, runtime } = await responsesServed();
  const ask = (body: ResponseCreateParamsNonStreaming) => client.responses.create({ model: "desk", ...body });
  const first = await ask({
    instructions: "Be brief.",
    input: [
      { role: "developer", content: "In German." },
      { role: "user", content: "a" },
    ],
  });
  const [agent] = await runtime.list();
  const [told] = await (await runtime.find(agent?.agentId ?? "")).getMessages();
  expect(told?.content).toBe("The application gave these instructions:\nBe brief.\n\nIn German.");
  const same = await ask({ previous_response_id: first.id, instructions: "Be brief.\n\nIn German.", input: "b" });
  expect(await ask({ previous_response_id: same.id, input: "c" }).then(({ output_text: text }) => text)).toBe("4: c");
  expect(await runtime.list()).toHaveLength(1);
  const other = await ask({ previous_response_id: first.id, instructions: "Be loud.", input: "d" });
  expect(other.output_text).toBe("3: d");
  const talk = { conversation: "talk", input: "e" };
  for (const [index, more] of [{ instructions: "Be brief." }, {}, { instructions: "Be brief." }].entries()) {
    expect((await ask({ ...talk, ...more })).output_text).toBe(`${index + 2}: e`);
  }
  expect(await refusal(ask({ ...talk, instructions: "Be loud." }))).toEqual([400, "invalid_request", "instructions"]);
});

test("an agent with an output answers in its format, and only with the checked value", async () => {
  const output = z.object({ kilos: z.number() });
  const model = scriptedModel(["I think so", { deltas: ['{"kilos":', "3}"] }]);
  const { client } = await servedAgent(defineAgent({ name: "scales", model, output }));
  const parsed = await client.responses
    .stream({ model: "scales", input: "weigh", text: { format: zodTextFormat(output, "weight") } })
    .finalResponse();
  expect([shown(parsed), parsed.output_parsed]).toEqual([['{"kilos":3}'], { kilos: 3 }]);
  const another = { format: zodTextFormat(z.object({ pounds: z.number() }), "weight") };
  expect(await refusal(client.responses.create({ model: "scales", input: "weigh", text: another }))).toEqual([
    400,
    "unsupported_parameter",
    "text.format",
  ]);
});

test("an agent that accepts no tools from callers refuses them", async () => {
  const { client } = await servedAgent(defineAgent({ name: "alone", model: scriptedModel("done") }));
  const asked = client.responses.create({ model: "alone", input: "show", tools: [show] });
  expect(await refusal(asked)).toEqual([400, "unsupported_parameter", "tools"]);
  const without = await client.responses.create({ model: "alone", input: "show", tools: [show], tool_choice: "none" });
  expect(without.output_text).toBe("done");
});
