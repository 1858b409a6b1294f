// The main flows of the Responses API with the official client.
import { APIError } from "openai";
import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import { defineAgent, defineTool, type LanguageModel } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { clientOf } from "./official-client.ts";
import {
  all,
  approving,
  ended,
  lines,
  refusal,
  responsesServed,
  returning,
  servedAgent,
  show,
  shown,
} from "./responses-served.ts";

test("a text: the response, the same when it is read again, and its input", async () => {
  const { client } = await responsesServed();
  const response = await client.responses.create({ model: "desk", input: "hello" });
  expect(response).toMatchObject({
    id: expect.stringMatching(/^resp_/),
    object: "response",
    status: "completed",
    model: "desk",
    output_text: "1: hello",
    output: [{ type: "message", role: "assistant", status: "completed", id: expect.stringMatching(/^msg_/) }],
    usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number), total_tokens: expect.any(Number) },
    error: null,
    incomplete_details: null,
    previous_response_id: null,
    conversation: null,
  });
  expect(Math.abs(response.created_at - Date.now() / 1_000)).toBeLessThan(600);
  expect(await client.responses.retrieve(response.id)).toEqual(response);
  const { data } = await client.responses.inputItems.list(response.id);
  expect(data).toMatchObject([{ type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] }]);
});

test("a stream has the events of the protocol in order, and ends with the stored response", async () => {
  const { client } = await responsesServed();
  const events = await all(await client.responses.create({ model: "desk", input: "hello", stream: true }));
  expect(lines(events)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta 1: ",
    "response.output_text.delta hello",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
  ]);
  const numbers = events.map(({ sequence_number: number }) => number);
  expect(numbers).toEqual([...new Set(numbers)].toSorted((one, other) => one - other));
  const last = ended(events);
  const begun = { id: last.id, status: "in_progress", output: [], usage: null };
  expect(events[0]).toMatchObject({ type: "response.created", response: begun });
  expect({ ...last, output_text: "1: hello" }).toEqual(await client.responses.retrieve(last.id));
});

test("the stream helper of the client accepts every flow", async () => {
  const { client } = await responsesServed();
  const run = async (body: Omit<ResponseCreateParamsNonStreaming, "model">) =>
    await client.responses.stream({ model: "desk", ...body, stream: true }).finalResponse();
  expect((await run({ input: "hello" })).output_text).toBe("1: hello");
  expect(shown(await run({ input: "think" }))).toEqual(["(Let me see.)", "It is so."]);
  const asked = await run({ input: "remove" });
  expect(shown(asked)).toEqual(['may desk remove({"path":"a.txt"})?']);
  expect(shown(await run(approving(asked)))).toEqual([
    'desk.remove({"path":"a.txt"}) completed: removed a.txt',
    "so: removed a.txt",
  ]);
  const question = await run({ input: "ask" });
  expect(shown(question)).toEqual(['call ask_user({"question":"your name?"})']);
  expect(shown(await run(returning(question, "Ann")))).toEqual(["so: Ann"]);
  const called = await run({ input: "show", tools: [show] });
  expect(shown(called)).toEqual(['call show({"what":"a map"})']);
  expect(shown(await run(returning(called, "the map is shown")))).toEqual(["so: the map is shown"]);
  expect(shown(await run({ input: "delegate" }))).toEqual([
    expect.stringMatching(/^desk\.reader\(.*\) completed: .*Read it\./),
    expect.stringMatching(/^so: .*Read it\./),
  ]);
});

test("reasoning is a separate item before the text, in the stream and stored", async () => {
  const { client } = await responsesServed();
  const events = await all(await client.responses.create({ model: "desk", input: "think", stream: true }));
  expect(lines(events).slice(2, 9)).toEqual([
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_text.delta Let me see.",
    "response.reasoning_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.output_item.added",
  ]);
  expect(shown(await client.responses.retrieve(ended(events).id))).toEqual(["(Let me see.)", "It is so."]);
});

test("a tool of the server is a completed call, and never a function of the client", async () => {
  const weigh = defineTool({
    name: "weigh",
    description: "Weighs",
    parameters: z.object({ what: z.string() }),
    execute: ({ what }) => {
      if (what === "air") throw new Error("nothing to weigh");
      return `${what}: 3 kg`;
    },
  });
  const weighings = ["box", "air"].map((what) => ({ toolCalls: [{ name: "weigh", arguments: { what } }] }));
  const model = scriptedModel([...weighings, "Done."]);
  const { client } = await servedAgent(defineAgent({ name: "scales", model, tools: [weigh] }));
  const events = await all(await client.responses.create({ model: "scales", input: "weigh", stream: true }));
  expect(lines(events).slice(2, -7)).toEqual([
    "response.output_item.added",
    "response.mcp_call.in_progress",
    "response.mcp_call_arguments.done",
    "response.mcp_call.completed",
    "response.output_item.done",
    "response.output_item.added",
    "response.mcp_call.in_progress",
    "response.mcp_call_arguments.done",
    "response.mcp_call.failed",
    "response.output_item.done",
  ]);
  expect(shown(ended(events))).toEqual([
    'scales.weigh({"what":"box"}) completed: box: 3 kg',
    expect.stringMatching(/^scales\.weigh\(\{"what":"air"\}\) failed: .*nothing to weigh/),
    "Done.",
  ]);
});

test("a conversation continues by previous_response_id and by its name", async () => {
  const { client, runtime, server } = await responsesServed();
  const first = await client.responses.create({ model: "desk", input: "a" });
  const second = await client.responses.create({ previous_response_id: first.id, input: "b" });
  expect([second.output_text, second.previous_response_id]).toEqual(["2: b", first.id]);
  expect(await client.responses.retrieve(second.id)).toEqual(second);
  expect(await runtime.list()).toHaveLength(1);
  for (const [index, conversation] of (["trip", { id: "trip" }, "trip"] as const).entries()) {
    const response = await client.responses.create({ model: "desk", conversation, input: "go" });
    expect([response.output_text, response.conversation]).toEqual([`${index + 1}: go`, { id: "trip" }]);
  }
  const other = await clientOf(server, { as: "bob" }).responses.create({
    model: "desk",
    conversation: "trip",
    input: "go",
  });
  expect(other.output_text).toBe("1: go");
  expect(
    await refusal(
      client.responses.create({ model: "desk", conversation: "trip", previous_response_id: first.id, input: "go" }),
    ),
  ).toEqual([400, "invalid_request", "conversation"]);
});

test("an older response forks: the fork continues from its state, and the original is unchanged", async () => {
  const { client } = await responsesServed();
  const first = await client.responses.create({ model: "desk", input: "a" });
  const second = await client.responses.create({ previous_response_id: first.id, input: "b" });
  const fork = await client.responses.create({ previous_response_id: first.id, input: "c" });
  expect([fork.output_text, fork.previous_response_id]).toEqual(["2: c", first.id]);
  const { data } = await client.responses.inputItems.list(fork.id);
  expect(data).toMatchObject([{ content: [{ text: "c" }] }]);
  expect((await client.responses.create({ previous_response_id: fork.id, input: "d" })).output_text).toBe("3: d");
  expect((await client.responses.create({ previous_response_id: second.id, input: "e" })).output_text).toBe("3: e");
});

test("two concurrent follow-ups of one response do not see each other", async () => {
  const { client } = await responsesServed();
  const { id } = await client.responses.create({ model: "desk", input: "a" });
  const both = await Promise.all(
    ["b", "c", "b"].map((input) => client.responses.create({ previous_response_id: id, input })),
  );
  expect(both.map(({ output_text: text }) => text)).toEqual(["2: b", "2: c", "2: b"]);
  expect(new Set(both.map((response) => response.id)).size).toBe(3);
});

test("a whole history begins a conversation, in which only new messages are sent to the agent", async () => {
  const { client } = await responsesServed();
  const response = await client.responses.create({
    model: "desk",
    input: [
      { role: "user", content: "a" },
      { role: "assistant", content: "1: a" },
      { role: "user", content: "b" },
    ],
  });
  expect(response.output_text).toBe("2: b");
  const { data } = await client.responses.inputItems.list(response.id);
  expect(data).toMatchObject([{ content: [{ text: "b" }] }]);
});

test("in the background: starts immediately, and is polled until it is finished", async () => {
  const goOn = Promise.withResolvers<string>();
  const { client } = await servedAgent(defineAgent({ name: "slow", model: scriptedModel(() => goOn.promise) }));
  const begun = await client.responses.create({ model: "slow", input: "go", background: true });
  expect([["queued", "in_progress"].includes(begun.status ?? ""), begun.output]).toEqual([true, []]);
  const stream = await client.responses.retrieve(begun.id, { stream: true });
  expect((await refusal(client.responses.create({ previous_response_id: begun.id, input: "more" })))[0]).toBe(409);
  goOn.resolve("gone");
  expect(lines(await all(stream)).at(-1)).toBe("response.completed");
  expect(await client.responses.retrieve(begun.id)).toMatchObject({
    id: begun.id,
    status: "completed",
    output_text: "gone",
  });
});

test("cancelled: the response ends as cancelled, also while it waits for a person; an ended one is unchanged", async () => {
  const { client } = await servedAgent(
    defineAgent({ name: "slow", model: scriptedModel(() => new Promise<never>(() => undefined)) }),
  );
  const begun = await client.responses.create({ model: "slow", input: "go", background: true });
  const stream = all(await client.responses.retrieve(begun.id, { stream: true }));
  expect((await client.responses.cancel(begun.id)).status).toBe("cancelled");
  expect((await client.responses.cancel(begun.id)).status).toBe("cancelled");
  const last = (await stream).at(-1);
  expect(last).toMatchObject({
    type: "response.incomplete",
    response: { status: "cancelled", incomplete_details: null },
  });
  const { client: other } = await responsesServed();
  const asked = await other.responses.create({ model: "desk", input: "remove" });
  expect((await other.responses.cancel(asked.id)).status).toBe("cancelled");
  const ended = await other.responses.create({ model: "desk", input: "hello" });
  expect(await other.responses.cancel(ended.id)).toMatchObject({ status: "completed", output: ended.output });
});

test("a failure and a limit end a response as in the protocol", async () => {
  const { client } = await responsesServed();
  const failed = await client.responses.create({ model: "desk", input: "fail" });
  expect(failed).toMatchObject({
    status: "failed",
    error: { code: "server_error", message: expect.stringContaining("broken") },
  });
  const events = lines(await all(await client.responses.create({ model: "desk", input: "fail", stream: true })));
  expect(events.at(-1)).toBe("response.failed");
  const looping = scriptedModel(() => ({ text: "again", toolCalls: [{ name: "look", arguments: {} }] }));
  const look = defineTool({ name: "look", description: "Looks", parameters: z.object({}), execute: () => "nothing" });
  const agent = defineAgent({ name: "loop", model: looping, tools: [look], budget: { maxSteps: 2 } });
  const { client: other } = await servedAgent(agent);
  const limited = await other.responses.create({ model: "loop", input: "look" });
  expect(limited).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
});

test("the error names a response that is not finished in time, and it continues", async () => {
  const goOn = Promise.withResolvers<string>();
  const agent = defineAgent({ name: "slow", model: scriptedModel(() => goOn.promise) });
  const { client } = await servedAgent(agent, {}, { waitMs: 50 });
  const waiting = client.responses.create({ model: "slow", input: "go" });
  const error = await waiting.then(
    () => undefined,
    (thrown: unknown) => (thrown instanceof APIError ? thrown : undefined),
  );
  expect([error?.status, error?.code]).toEqual([504, "response_in_progress"]);
  const [id = ""] = /resp_[\w-]+/.exec(error?.message ?? "") ?? [];
  expect((await client.responses.retrieve(id)).status).toBe("in_progress");
  goOn.resolve("gone");
  expect(lines(await all(await client.responses.retrieve(id, { stream: true }))).at(-1)).toBe("response.completed");
});

test("a response cannot be deleted, and the error explains why", async () => {
  const { client } = await responsesServed();
  const { id } = await client.responses.create({ model: "desk", input: "a" });
  expect(await refusal(client.responses.delete(id))).toEqual([400, "unsupported", null]);
  expect((await client.responses.retrieve(id)).id).toBe(id);
});

test("thoughts that a model has as items are reasoning, and one whose text is hidden has none", async () => {
  const scripted = scriptedModel([{ text: "Three.", reasoning: "unused" }]);
  const items = [
    { type: "reasoning", summary: ["I count.", "There are three."], encrypted: "c2VjcmV0" },
    { type: "reasoning", encrypted: "c2VjcmV0" },
    { type: "message", length: 6 },
    { type: "reasoning", content: ["Done."] },
    "no item",
  ];
  const model: LanguageModel = {
    name: "items",
    provider: "test",
    countPromptTokens: (request) => scripted.countPromptTokens(request),
    generate: async (request, options) => {
      const answer = await scripted.generate(request, { ...options, onDelta: undefined });
      return { ...answer, reasoning: { items } };
    },
  };
  const { client } = await servedAgent(defineAgent({ name: "desk", model }));
  const response = await client.responses.create({ model: "desk", input: "how many?" });
  expect(response.output_text).toBe("Three.");
  const thoughts = JSON.stringify(response.output.filter(({ type }) => type === "reasoning"));
  expect(thoughts).toContain(JSON.stringify("I count.\n\nThere are three.\n\nDone."));
  expect(thoughts).not.toContain("c2VjcmV0");
});
