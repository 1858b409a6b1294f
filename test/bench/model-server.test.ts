import { afterAll, beforeAll, expect, test } from "vitest";
import { answerText } from "../../bench/model-answers.ts";
import { type ModelProcess, startModelProcess } from "../../bench/model-process.ts";

let server: ModelProcess;

beforeAll(async () => {
  server = await startModelProcess();
});

afterAll(async () => {
  await server.stop();
});

const user = { role: "user", content: "Go" };
const result = { role: "tool", tool_call_id: "call", content: "42" };

async function ask(model: string, messages: readonly object[], stream = false): Promise<Response> {
  return await fetch(`${server.baseUrl}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model, messages, stream }),
  });
}

interface Completion {
  readonly choices: readonly [{ message: { content: string | null; tool_calls?: { function: { name: string } }[] } }];
  readonly usage: { readonly total_tokens: number };
}

async function answerOf(model: string, messages: readonly object[]): Promise<string | readonly string[] | null> {
  const { choices, usage } = (await (await ask(model, messages)).json()) as Completion;
  expect(usage.total_tokens).toBeGreaterThan(0);
  const { content, tool_calls: calls } = choices[0].message;
  return calls?.map((call) => call.function.name) ?? content;
}

test("counts the steps of a loop from the last user message on", async () => {
  expect(await answerOf("one", [user])).toBe(answerText);
  expect(await answerOf("loop-3", [user])).toEqual(["lookup"]);
  expect(await answerOf("loop-3", [user, result, result, user, result])).toEqual(["lookup"]);
  expect(await answerOf("loop-3", [user, result, result])).toBe(answerText);
  expect(await answerOf("child-2", [user, result])).toBe(answerText);
});

test("requests parallel calls and answers when all results are there", async () => {
  expect(await answerOf("calls-2", [user])).toEqual(["lookup", "lookup"]);
  expect(await answerOf("spawn-2", [user])).toEqual(["child", "child"]);
  expect(await answerOf("spawn-2", [user, result, result])).toBe(answerText);
  const early = await ask("spawn-2", [user, result]);
  expect(early.status).toBe(400);
  expect(await early.text()).toContain("1 tool messages after the last user message do not fit spawn-2");
});

test("streams every answer, with usage in the last chunk", async () => {
  const response = await ask("stream-40", [user], true);
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const events = (await response.text()).trimEnd().split("\n\n");
  expect(events.at(-1)).toBe("data: [DONE]");
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice("data: ".length)));
  expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content)).toHaveLength(40);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) } });
  expect(await (await ask("calls-2", [user], true)).text()).toContain('"index":1,"id":"call_lookup_1"');
});

async function idsOf(stream: boolean) {
  const text = await (await ask("stream-40", [user], stream)).text();
  return [...new Set([...text.matchAll(/"id":"(chatcmpl-[0-9]{9})"/g)].map(([, id]) => id))];
}

test("returns an answer with its own id, the same in all pieces of a stream", async () => {
  const all = [...(await idsOf(false)), ...(await idsOf(true)), ...(await idsOf(true))];
  expect(new Set(all).size).toBe(3);
  expect(all).toHaveLength(3);
});

test("refuses unknown requests", async () => {
  expect((await ask("gpt-5", [user])).status).toBe(404);
  expect((await fetch(`${server.baseUrl}/chat/completions`, { method: "POST", body: "{" })).status).toBe(400);
});

test("is closed when it was stopped", async () => {
  const other = await startModelProcess();
  await other.stop();
  await expect(other.answered()).rejects.toThrow("fetch failed");
});
