// The main flows of the Responses API with the official client.
import { APIError } from "openai";
import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import { defineAgent, defineTool, memoryStores } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { showTool } from "../ag-ui/ag-ui-served.ts";
import { clientOf } from "./official-client.ts";
import {
  all,
  approving,
  ended,
  lines,
  openOf,
  responsesServed,
  returning,
  servedAgent,
  shown,
} from "./responses-served.ts";

const show = { type: "function", strict: false, ...showTool } as const;

/** The status, the code and the parameter of a refusal. */
async function refusal(asked: PromiseLike<unknown>): Promise<readonly unknown[]> {
  try {
    await asked;
  } catch (error) {
    if (error instanceof APIError) return [error.status, error.code, error.param];
    throw error;
  }
  throw new Error("it was not refused");
}

test("a text: the response, the same when it is read again, and what it was begun with", async () => {
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

test("a stream has the events of the protocol in their order, and ends with the response as it is stored", async () => {
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

test("the stream helper of the client has nothing to say against any flow", async () => {
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

test("reasoning is an item of its own before the text, in the stream and stored", async () => {
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

test("a tool of the server is a call that is made, and never a function of the client's", async () => {
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

test("a conversation goes on by previous_response_id, and by its name", async () => {
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

test("an older response forks: the conversation goes on as it was then, and the other one as it is", async () => {
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

test("two that go on from the same response at once do not see each other", async () => {
  const { client } = await responsesServed();
  const { id } = await client.responses.create({ model: "desk", input: "a" });
  const both = await Promise.all(
    ["b", "c", "b"].map((input) => client.responses.create({ previous_response_id: id, input })),
  );
  expect(both.map(({ output_text: text }) => text)).toEqual(["2: b", "2: c", "2: b"]);
  expect(new Set(both.map((response) => response.id)).size).toBe(3);
});

test("a whole history begins a conversation, of which only what is new is asked", async () => {
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

test("an approval that is rejected tells the reason; a message to a question is its answer", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const rejected = await client.responses.create(approving(asked, false, "not today"));
  expect(shown(rejected)).toEqual([
    expect.stringMatching(/^desk\.remove\(.*\) failed: .*not today/),
    expect.stringMatching(/^so: .*not today/),
  ]);
  expect([rejected.previous_response_id, removed]).toEqual([asked.id, []]);
  const { data } = await client.responses.inputItems.list(rejected.id);
  expect(data).toMatchObject([{ type: "mcp_approval_response", approve: false, reason: "not today" }]);
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const answered = await client.responses.create({ previous_response_id: question.id, input: "Ann" });
  expect(answered.output_text).toBe("so: Ann");
  expect(await client.responses.retrieve(answered.id)).toEqual(answered);
});

test("what was asked for stays as it was when the turn has gone on, and each part counts its own tokens", async () => {
  const { client, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const done = await client.responses.create(approving(asked));
  expect(await client.responses.retrieve(asked.id)).toEqual(asked);
  expect(await client.responses.retrieve(done.id)).toEqual(done);
  const [agent] = await runtime.list();
  const { spent } = await (await runtime.find(agent?.agentId ?? "")).turn(`${agent?.agentId}#1`).result;
  expect((asked.usage?.input_tokens ?? 0) + (done.usage?.input_tokens ?? 0)).toBe(spent.tree.inputTokens);
  expect(await refusal(client.responses.create({ previous_response_id: asked.id, input: "and now?" }))).toEqual([
    400,
    "invalid_request",
    "previous_response_id",
  ]);
  expect((await client.responses.create({ previous_response_id: done.id, input: "go on" })).output_text).toBe(
    "2: go on",
  );
});

test("an answer that an equal one overtakes is the same response", async () => {
  const stores = memoryStores();
  let afterReading: (() => Promise<void>) | undefined;
  const requestOf: typeof stores.request = async (...place) => {
    const found = await stores.request(...place);
    await afterReading?.();
    return found;
  };
  const overtaken = new Proxy(stores, {
    get: (target, name) => (name === "request" ? requestOf : (Reflect.get(target, name) as unknown)),
  });
  const { client, removed } = await responsesServed({ stores: overtaken });
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const approved: string[] = [];
  const approve = async () => {
    const { id } = await client.responses.create(approving(asked));
    approved.push(id);
  };
  afterReading = async () => {
    afterReading = undefined;
    await approve();
  };
  await approve();
  expect(new Set(approved).size).toBe(1);
  expect([approved.length, removed]).toEqual([2, ["a.txt"]]);
});

test("of two that decide at once the first counts; the same again is the same response", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const settled = await Promise.allSettled(
    [true, false].map((approve) => client.responses.create(approving(asked, approve))),
  );
  expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  const [winner] = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const isApproved = removed.length === 1;
  expect(settled[isApproved ? 0 : 1]?.status).toBe("fulfilled");
  for (const again of [
    client.responses.create(approving(asked, isApproved)),
    client.responses.retrieve(winner?.id ?? ""),
  ]) {
    expect(await again).toEqual(winner);
  }
  expect(await refusal(client.responses.create(approving(asked, !isApproved)))).toEqual([
    409,
    "request_conflict",
    null,
  ]);
  expect(removed).toHaveLength(isApproved ? 1 : 0);
});

test("answers are given to all that is asked for, or nothing is decided", async () => {
  const { client, removed, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove two" });
  const ids = asked.output.flatMap((item) => (item.type === "mcp_approval_request" ? [item.id] : []));
  expect(ids).toHaveLength(2);
  const answers = ids.map((id) => ({ type: "mcp_approval_response", approval_request_id: id, approve: true }) as const);
  const one = client.responses.create({ previous_response_id: asked.id, input: answers.slice(0, 1) });
  await expect(one).rejects.toThrow(ids[1]);
  expect([await runtime.requests({ status: "decided" }), removed]).toEqual([[], []]);
  const done = await client.responses.create({ input: answers });
  expect(shown(done).filter((line) => line.includes("completed"))).toHaveLength(2);
  expect(removed.toSorted()).toEqual(["a.txt", "b.txt"]);
  expect((await client.responses.create({ previous_response_id: asked.id, input: answers.slice(1) })).id).toBe(done.id);
});

test("the approval of a subagent's call is asked for in its name, and its call is shown", async () => {
  const { client, removed } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "delegate remove" });
  expect(shown(asked)).toEqual([
    expect.stringMatching(/^desk\.reader\(.*\) incomplete: $/),
    'may reader remove({"path":"a.txt"})?',
  ]);
  const done = await client.responses.stream(approving(asked)).finalResponse();
  expect(shown(done)).toEqual([
    'reader.remove({"path":"a.txt"}) completed: removed a.txt',
    expect.stringMatching(/^desk\.reader\(.*\) completed: .*Read it\./),
    expect.stringMatching(/^so: /),
  ]);
  expect(removed).toEqual(["a.txt"]);
});

test("answers of the wrong kind, to nothing, or with a message are refused, and decide nothing", async () => {
  const { client, runtime } = await responsesServed();
  const asked = await client.responses.create({ model: "desk", input: "remove" });
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const output = { type: "function_call_output", call_id: openOf(question), output: "Ann" } as const;
  const approval = { type: "mcp_approval_response", approval_request_id: openOf(asked), approve: true } as const;
  const cases = [
    { previous_response_id: asked.id, input: [{ ...output, call_id: openOf(asked).replace("mcpr_", "call_") }] },
    { previous_response_id: asked.id, input: [approval, approval] },
    { previous_response_id: asked.id, input: [approval, { role: "user", content: "please" } as const] },
    { previous_response_id: question.id, input: [approval] },
    { conversation: "another", input: [approval] },
    { input: [approval, output] },
  ];
  for (const body of cases) expect((await refusal(client.responses.create({ model: "desk", ...body })))[0]).toBe(400);
  expect((await refusal(client.responses.create({ input: [{ ...output, call_id: "call_x" }] })))[0]).toBe(404);
  expect(await runtime.requests({ status: "decided" })).toEqual([]);
});

test("in the background: begun at once, read until it is finished", async () => {
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

test("cancelled: it ends so, also while it waits for somebody; what has ended stays as it is", async () => {
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

test("a failure and a limit end a response as the protocol says", async () => {
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

test("a response that is not finished in time is named by the error, and goes on", async () => {
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

test("the same key is the same response; another body under it is refused", async () => {
  const { client, runtime } = await responsesServed();
  const headers = { "idempotency-key": "one" };
  const ask = (input: string, more: object = {}) =>
    client.responses.create({ model: "desk", input, ...more }, { headers });
  const [one, again] = [await ask("a"), await ask("a")];
  expect(again).toEqual(one);
  expect((await refusal(ask("b")))[0]).toBe(422);
  const previous = { previous_response_id: one.id };
  const next = (input: string, key: string) =>
    client.responses.create({ ...previous, input }, { headers: { "idempotency-key": key } });
  const second = await next("b", "two");
  const third = await next("c", "three");
  expect([second.output_text, third.output_text]).toEqual(["2: b", "2: c"]);
  expect([await next("b", "two"), await next("c", "three")]).toEqual([second, third]);
  expect((await refusal(next("d", "two")))[0]).toBe(422);
  const question = await client.responses.create({ model: "desk", conversation: "q", input: "ask" });
  const tell = () =>
    client.responses.create(
      { previous_response_id: question.id, input: "Ann" },
      { headers: { "idempotency-key": "four" } },
    );
  const told = await tell();
  expect([told.output_text, await tell()]).toEqual(["so: Ann", told]);
  expect(await runtime.list({ rootsOnly: true })).toHaveLength(3);
});

test("what the client sends again by itself is the same response, what a person asks again another one", async () => {
  const { client } = await responsesServed();
  const ask = (body: ResponseCreateParamsNonStreaming, count: number) =>
    client.responses.create(body, { headers: { "x-stainless-retry-count": String(count) } });
  const fresh = { model: "desk", input: "a" };
  const first = await ask(fresh, 0);
  const second = await ask(fresh, 0);
  expect(second.id).not.toBe(first.id);
  expect([first.id, second.id]).toContain((await ask(fresh, 1)).id);
  const follow = { previous_response_id: first.id, input: "b" };
  const next = await ask(follow, 0);
  expect(await ask(follow, 1)).toEqual(next);
  const question = await client.responses.create({ model: "desk", input: "ask" });
  const answer = { previous_response_id: question.id, input: "Ann" };
  expect(await ask(answer, 0).then(({ id }) => id)).toBe((await ask(answer, 2)).id);
});

test.each([
  [{ instructions: "Be brief." }, "instructions"],
  [{ store: false }, "store"],
  [{ text: { format: { type: "json_schema", name: "x", schema: {} } } }, "text.format"],
  [{ tool_choice: "required" }, "tool_choice"],
  [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
  [{ input: [] }, "input"],
  [{ input: [{ role: "system", content: "x" }] }, "input[0].role"],
  [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "x" }] }] }, "input[0].content"],
  [{ input: [{ type: "item_reference", id: "x" }] }, "input[0].type"],
  [{ prompt: { id: "x" } }, null],
  [{ model: undefined }, "model"],
] as const)("what would mean something else is refused: %j", async (more, param) => {
  const { client, runtime } = await responsesServed();
  const body = { model: "desk", input: "a", ...more } as unknown as ResponseCreateParamsNonStreaming;
  expect(await refusal(client.responses.create(body))).toEqual([400, "invalid_request", param]);
  expect(await runtime.list()).toEqual([]);
});

test("what the agent's definition decides is ignored; a limit of tool calls is kept", async () => {
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

test("a response is kept: who deletes it is told so", async () => {
  const { client } = await responsesServed();
  const { id } = await client.responses.create({ model: "desk", input: "a" });
  expect(await refusal(client.responses.delete(id))).toEqual([400, "unsupported", null]);
  expect((await client.responses.retrieve(id)).id).toBe(id);
});

test("a model that is none is refused as the protocol says", async () => {
  const { client } = await responsesServed();
  expect(await refusal(client.responses.create({ model: "gpt-9", input: "a" }))).toEqual([
    404,
    "model_not_found",
    "model",
  ]);
});
