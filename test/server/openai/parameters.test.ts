import { createRuntime, defineAgent } from "troupe";
import { openaiSurface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { zodResponseFormat } from "openai/helpers/zod";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { serve } from "../served.ts";
import { clientOf } from "./official-client.ts";

const person = z.object({ name: z.string().describe("The whole name"), age: z.number() });

/** `desk` answers with text, `clerk` with a structured person, invalid at first. */
async function served() {
  const desk = defineAgent({ name: "desk", model: scriptedModel(() => ({ text: "done" })) });
  const clerk = defineAgent({
    name: "clerk",
    output: person,
    model: scriptedModel(({ messages }) =>
      messages.length > 1 ? { deltas: ['{"name":"Ann",', '"age":7}'] } : { deltas: ['{"name":', '"Ann"}'] },
    ),
  });
  const runtime = await createRuntime({ agents: [desk, clerk] });
  onTestFinished(() => runtime.shutdown());
  const { server } = serve(runtime, { surfaces: [openaiSurface()] });
  return clientOf(server).chat.completions;
}

const messages = [{ role: "user" as const, content: "Who?" }];

test("parameters that influence an answer are ignored, and so are unknown ones", async () => {
  const completions = await served();
  const unknown = { top_k: 5, think: true };
  const completion = await completions.create({
    model: "desk",
    messages,
    temperature: 0.5,
    top_p: 0.5,
    max_tokens: 5,
    max_completion_tokens: 5,
    seed: 1,
    frequency_penalty: 1,
    presence_penalty: 1,
    logit_bias: {},
    reasoning_effort: "low",
    verbosity: "low",
    service_tier: "auto",
    store: true,
    metadata: { a: "b" },
    user: "ann",
    safety_identifier: "s",
    prompt_cache_key: "p",
    n: 1,
    stop: null,
    logprobs: false,
    modalities: ["text"],
    tool_choice: "none",
    tools: [{ type: "function", function: { name: "show" } }],
    ...unknown,
  });
  expect(completion.choices[0]?.message.content).toBe("done");
});

test.each([
  ["n", { n: 2 }],
  ["stop", { stop: "x" }],
  ["stop", { stop: ["x"] }],
  ["logprobs", { logprobs: true }],
  ["modalities", { modalities: ["text", "audio"] }],
  ["audio", { audio: { voice: "alloy", format: "wav" } }],
  ["functions", { functions: [] }],
  ["function_call", { function_call: "auto" }],
  ["web_search_options", { web_search_options: {} }],
  ["stream_options", { stream_options: { include_usage: true } }],
  ["tools", { tools: [{ type: "function", function: { name: "show" } }] }],
  ["response_format", { response_format: { type: "json_object" } }],
  ["response_format", { response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } } }],
  ["response_format", { response_format: { type: "grammar" } }],
])("parameters that would change the kind of answer are refused: %s", async (param, more) => {
  const completions = await served();
  const asked = completions.create({ model: "desk", messages, ...more } as never);
  await expect(asked).rejects.toMatchObject({ status: 400, param, code: "unsupported_parameter" });
});

test("an agent with an output answers in its schema, whole and in a stream, and refuses another one", async () => {
  const completions = await served();
  const response_format = zodResponseFormat(person, "person");
  const parsed = await completions.parse({ model: "clerk", messages, response_format });
  expect(parsed.choices[0]?.message.parsed).toEqual({ name: "Ann", age: 7 });
  const stream = completions.stream({ model: "clerk", messages, response_format });
  expect((await stream.finalChatCompletion()).choices[0]?.message.parsed).toEqual({ name: "Ann", age: 7 });
  const json = await completions.create({ model: "clerk", messages, response_format: { type: "json_object" } });
  expect(json.choices[0]?.message.content).toBe('{"name":"Ann","age":7}');
  const other = completions.create({
    model: "clerk",
    messages,
    response_format: zodResponseFormat(z.object({ name: z.string() }), "p"),
  });
  await expect(other).rejects.toMatchObject({
    status: 400,
    param: "response_format",
    message: expect.stringContaining("age"),
  });
});
