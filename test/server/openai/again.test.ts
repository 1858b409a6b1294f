// Repeated requests: by a key, by the official client, after kill -9, at another server, and after a client left.
import type { ConflictError, OpenAI } from "openai";
import { createRuntime, defineAgent, memoryStores, type RuntimeOptions } from "troupe";
import { openaiSurface } from "troupe/server";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "../../../src/base/index.ts";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { serve } from "../served.ts";
import { clientOf } from "./official-client.ts";
import { desk, deskServed, showTool } from "./openai-served.ts";

const model = "desk";
const user = (content: string) => ({ role: "user" as const, content });
const answerContent = ({ choices }: OpenAI.ChatCompletion): string | null | undefined => choices[0]?.message.content;

/** A fetch to a server that loses the first answer. */
function losingFirst(fetch: (request: Request) => Promise<Response>, counts: string[] = []) {
  let isFirst = true;
  return {
    counts,
    fetch: async (request: Request): Promise<Response> => {
      counts.push(request.headers.get("x-stainless-retry-count") ?? "none");
      const answer = await fetch(request);
      if (!isFirst) return answer;
      isFirst = false;
      await answer.text();
      throw new TypeError("the connection was cut");
    },
  };
}

test("two concurrent equal requests with a key get one answer, also if the history is read late, and also for a fork", async () => {
  const stores = memoryStores();
  let beforeReading: (() => Promise<void>) | undefined;
  const messagesOf: typeof stores.messages = async (...place) => {
    await beforeReading?.();
    return await stores.messages(...place);
  };
  const slow = new Proxy(stores, {
    get: (target, name) => (name === "messages" ? messagesOf : (Reflect.get(target, name) as unknown)),
  });
  const { server, runtime } = await deskServed({ stores: slow }, { surface: { chatIdHeaders: ["x-chat"] } });
  const client = clientOf(server, { defaultHeaders: { "x-chat": "holiday" } });
  const send = (key: string, ...messages: OpenAI.ChatCompletionMessageParam[]) =>
    client.chat.completions.create({ model, messages }, { headers: { "idempotency-key": key } });
  const asked = await send("one", user("ask"));
  const answer = [user("ask"), { role: "assistant" as const, content: answerContent(asked) ?? "" }, user("Ann")];
  beforeReading = async () => {
    beforeReading = undefined;
    await send("two", ...answer);
  };
  expect(answerContent(await send("two", ...answer))).toBe("so: Ann");
  expect(beforeReading).toBeUndefined();
  expect(await runtime.turns()).toHaveLength(1);
  const forks = await Promise.all([1, 2, 3].map(() => send("three", user("hello"))));
  expect(forks.map(answerContent)).toEqual(["1: hello", "1: hello", "1: hello"]);
  expect(await runtime.turns()).toHaveLength(2);
});

describe("the official client repeats a request whose answer was lost", () => {
  test.each([
    ["without a conversation", {}],
    ["in a conversation", { "x-troupe-conversation": "holiday" }],
  ])("%s: it is the same turn", async (_, defaultHeaders) => {
    const { server, runtime } = await deskServed();
    const way = losingFirst(server.fetch);
    const client = clientOf(way, { maxRetries: 2, defaultHeaders });
    expect(answerContent(await client.chat.completions.create({ model, messages: [user("hello")] }))).toBe("1: hello");
    expect(way.counts).toEqual(["0", "1"]);
    expect(await runtime.turns()).toHaveLength(1);
    // Sent once more on purpose, it is an ordinary message.
    await client.chat.completions.create({ model, messages: [user("hello")] });
    expect(await runtime.turns()).toHaveLength(2);
  });

  test("an answer to a question is applied once", async () => {
    const { server, runtime } = await deskServed({}, { surface: { chatIdHeaders: ["x-chat"] } });
    const defaultHeaders = { "x-chat": "holiday" };
    const asked = await clientOf(server, { defaultHeaders }).chat.completions.create({
      model,
      messages: [user("ask")],
    });
    const messages = [user("ask"), { role: "assistant" as const, content: answerContent(asked) ?? "" }, user("Ann")];
    const client = clientOf(losingFirst(server.fetch), { maxRetries: 2, defaultHeaders });
    expect(answerContent(await client.chat.completions.create({ model, messages }))).toBe("so: Ann");
    expect(await runtime.turns()).toHaveLength(1);
  });

  test("results of tools are applied once", async () => {
    const { server, runtime } = await deskServed();
    const body = { model, tools: [showTool] };
    const called = await clientOf(server).chat.completions.create({ ...body, messages: [user("show")] });
    const [choice] = called.choices;
    if (choice?.message.tool_calls?.[0] === undefined) throw new Error("there is no call");
    const result = { role: "tool" as const, tool_call_id: choice.message.tool_calls[0].id, content: "shown" };
    const client = clientOf(losingFirst(server.fetch), { maxRetries: 2 });
    const answered = await client.chat.completions.create({
      ...body,
      messages: [user("show"), choice.message, result],
    });
    expect(answerContent(answered)).toBe("so: shown");
    expect(await runtime.turns()).toHaveLength(1);
  });

  test("after 10 minutes it is another turn", async () => {
    const { server, runtime } = await deskServed();
    await clientOf(server).chat.completions.create({ model, messages: [user("hello")] });
    const clock: Clock = { ...systemClock, now: () => systemClock.now() + 600_001 };
    const later = serve(runtime, { surfaces: [openaiSurface()], clock });
    const client = clientOf(later.server, { defaultHeaders: { "x-stainless-retry-count": "1" } });
    await client.chat.completions.create({ model, messages: [user("hello")] });
    expect(await runtime.turns()).toHaveLength(2);
  });
});

test("a key means one turn: its stream can be read again from the beginning, and another body is refused", async () => {
  const { server, runtime } = await deskServed();
  for (const more of [{}, { "x-troupe-conversation": "holiday" }]) {
    const headers = { "idempotency-key": "k-1", ...more };
    const { completions } = clientOf(server).chat;
    const say = (text: string) => completions.stream({ model, messages: [user(text)] }, { headers }).finalContent();
    const before = (await runtime.turns()).length;
    expect([await say("think"), await say("think"), await say("think")]).toEqual([
      "It is so.",
      "It is so.",
      "It is so.",
    ]);
    expect((await runtime.turns()).length).toBe(before + 1);
    await expect(say("hello")).rejects.toMatchObject({ status: 422, code: "idempotency_key_reused" });
  }
  const messages = [user("earlier"), { role: "assistant" as const, content: "yes" }, user("think")];
  const other = clientOf(server).chat.completions.create(
    { model, messages },
    { headers: { "idempotency-key": "k-1" } },
  );
  await expect(other).rejects.toMatchObject({ status: 422 });
});

const whole = "The first half, and the second.";
const saying = (stream: AsyncIterable<OpenAI.ChatCompletionChunk>) => {
  const iterator = stream[Symbol.asyncIterator]();
  let text = "";
  return async (isThere: (text: string) => boolean): Promise<string> => {
    while (!isThere(text)) {
      const { done, value } = await iterator.next();
      if (done === true) break;
      text += value.choices[0]?.delta.content ?? "";
    }
    return text;
  };
};

async function speakers(options: Partial<RuntimeOptions>, clock: Clock = systemClock) {
  const goOn = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  const agents = [slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: heard.promise })];
  const runtime = await createRuntime({ agents, ...options });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: [openaiSurface()], clock }), runtime, goOn, heard };
}

const speak = { model: "speaker", messages: [user("speak")] };

test("the server is killed in the middle of a stream: the same key restarts the stream at another server", async () => {
  const path = temporaryFile();
  const process = startProgram(new URL("../killed-speaker.ts", import.meta.url).pathname, [path, "openai"]);
  onTestFinished(() => process.kill());
  const base = await process.firstLine;
  const options = { headers: { "idempotency-key": "k-1" } };
  const first = clientOf({
    fetch: async (request) => await fetch(new Request(request.url.replace("http://127.0.0.1", base), request)),
  });
  const before = saying(await first.chat.completions.create({ ...speak, stream: true }, options));
  expect(await before((text) => text === "The first half, ")).toBe("The first half, ");
  process.kill();
  await process.ended;
  expect(await before(() => false).catch((error: unknown) => error)).toBeInstanceOf(Error);
  const { server, runtime, goOn, heard } = await speakers({ stores: sqliteStores(path) });
  expect(await runtime.recover()).toHaveLength(1);
  const after = saying(await clientOf(server).chat.completions.create({ ...speak, stream: true }, options));
  expect(await after((text) => text === "The first half, ")).toBe("The first half, ");
  goOn.resolve();
  expect(await after((text) => text === whole)).toBe(whole);
  heard.resolve();
  expect(await after(() => false)).toBe(whole);
  expect(await runtime.turns()).toHaveLength(1);
});

test("the server is killed before its answer: the official client's retry finds the turn at another server", async () => {
  const path = temporaryFile();
  const process = startProgram(new URL("../killed-speaker.ts", import.meta.url).pathname, [path, "openai"]);
  onTestFinished(() => process.kill());
  const base = await process.firstLine;
  const { server, runtime, goOn, heard } = await speakers({ stores: sqliteStores(path) });
  goOn.resolve();
  heard.resolve();
  const recovered = async (): Promise<void> => {
    await runtime.recover();
    expect(await runtime.turns()).toMatchObject([{ status: "completed" }]);
  };
  const killed = async (request: Request): Promise<Response> => {
    const asked = fetch(new Request(request.url.replace("http://127.0.0.1", base), request));
    asked.catch(() => undefined);
    await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "open" }]), 30_000);
    process.kill();
    await process.ended;
    await vi.waitFor(recovered, 30_000);
    return await asked;
  };
  let isFirst = true;
  const client = clientOf(
    {
      fetch: async (request) => {
        if (!isFirst) return await server.fetch(request);
        isFirst = false;
        return await killed(request);
      },
    },
    { maxRetries: 1 },
  );
  expect(answerContent(await client.chat.completions.create(speak))).toBe(whole);
  expect(await runtime.turns()).toHaveLength(1);
});

test("an answer that takes too long is refused as retryable, and found by the same request later", async () => {
  const { runtime, goOn, heard } = await speakers({});
  const { server } = serve(runtime, { surfaces: [openaiSurface()], waitMs: 20 });
  const late = clientOf(server).chat.completions.create(speak);
  await expect(late).rejects.toMatchObject({
    status: 504,
    code: "timeout",
    message: expect.stringContaining("is still running"),
  });
  goOn.resolve();
  heard.resolve();
  await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "completed" }]), 30_000);
  const again = clientOf(server, { defaultHeaders: { "x-stainless-retry-count": "1" } });
  const { data, response } = await again.chat.completions.create(speak).withResponse();
  expect([answerContent(data), response.headers.get("idempotency-replayed")]).toEqual([whole, "true"]);
});

test("a message to a busy turn is refused as retryable", async () => {
  const { server, runtime, goOn, heard } = await speakers({});
  const { completions } = clientOf(server, { defaultHeaders: { "x-troupe-conversation": "holiday" } }).chat;
  const first = completions.create(speak);
  await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "open" }]), 30_000);
  const refused = await completions.create({ ...speak, messages: [user("and?")] }).catch((error: unknown) => error);
  expect(refused).toMatchObject({ status: 409, code: "agent_busy", type: "conflict_error" });
  expect((refused as ConflictError).headers?.get("x-should-retry")).toBe("true");
  goOn.resolve();
  heard.resolve();
  expect(answerContent(await first)).toBe(whole);
});

test.each([false, true])("an agent that is paused is an error (stream: %j)", async (isStream) => {
  const thinker = defineAgent({
    name: "speaker",
    model: {
      name: "endless",
      provider: "test",
      countPromptTokens: () => 1,
      generate: async (_, { signal }) =>
        await new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new Error("it was told to stop")), { once: true });
        }),
    },
  });
  const runtime = await createRuntime({ agents: [thinker] });
  onTestFinished(() => runtime.shutdown());
  const { server } = serve(runtime, { surfaces: [openaiSurface()] });
  const defaultHeaders = { "x-troupe-conversation": "holiday" };
  const { completions } = clientOf(server, { defaultHeaders }).chat;
  const asked = isStream ? completions.stream(speak).finalContent() : completions.create(speak);
  asked.catch(() => undefined);
  await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "open" }]), 30_000);
  const [turn] = await runtime.turns();
  await (await runtime.find(turn?.agentId ?? "")).pause({ now: true });
  await expect(asked).rejects.toMatchObject({ error: { code: "paused" } });
});

/** A clock whose long delays end when the test releases them. */
function clockWithDelays() {
  const delays = new Map<() => void, number>();
  const clock: Clock = {
    ...systemClock,
    setDelay: (ms, callback) => {
      if (ms !== 10_000 && ms !== 3_600_000) return systemClock.setDelay(ms, callback);
      delays.set(callback, ms);
      return () => delays.delete(callback);
    },
  };
  const over = (): void => {
    for (const callback of delays.keys()) callback();
  };
  return { clock, delays, over };
}

describe("a client that leaves a request without a conversation", () => {
  test.each([true, false])("has its turn aborted 10 seconds later (stream: %j)", async (stream) => {
    const { clock, delays, over } = clockWithDelays();
    const { server, runtime } = await speakers({}, clock);
    const { url } = await server.listen();
    const client = clientOf({
      fetch: (request) => fetch(new Request(request.url.replace("http://127.0.0.1", url), request)),
    });
    const leaving = new AbortController();
    const asked = client.chat.completions.create({ ...speak, stream }, { signal: leaving.signal });
    asked.catch(() => undefined);
    if (stream) await saying((await asked) as AsyncIterable<OpenAI.ChatCompletionChunk>)((text) => text !== "");
    await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "open" }]), 30_000);
    leaving.abort();
    await vi.waitFor(() => expect([...delays.values()]).toEqual([10_000]), 30_000);
    expect(await runtime.turns()).toMatchObject([{ status: "open" }]);
    over();
    await vi.waitFor(
      async () => expect(await runtime.turns()).toMatchObject([{ stopReason: "user_requested" }]),
      30_000,
    );
  });

  test("and comes back in time keeps its turn", async () => {
    const { clock, delays } = clockWithDelays();
    const { server, runtime, goOn, heard } = await speakers({}, clock);
    const { url } = await server.listen();
    const way = (request: Request) => fetch(new Request(request.url.replace("http://127.0.0.1", url), request));
    const leaving = new AbortController();
    const stream = await clientOf({ fetch: way }).chat.completions.create(
      { ...speak, stream: true },
      { signal: leaving.signal },
    );
    await saying(stream)((text) => text !== "");
    leaving.abort();
    await vi.waitFor(() => expect(delays.size).toBe(1), 30_000);
    const back = clientOf({ fetch: way }, { defaultHeaders: { "x-stainless-retry-count": "1" } });
    const read = saying(await back.chat.completions.create({ ...speak, stream: true }));
    await read((text) => text !== "");
    expect(delays.size).toBe(0);
    goOn.resolve();
    await read((text) => text === whole);
    heard.resolve();
    expect(await read(() => false)).toBe(whole);
    expect(await runtime.turns()).toMatchObject([{ status: "completed" }]);
  });

  test("and never sends the results of its tools has its turn ended after an hour", async () => {
    const { clock, delays, over } = clockWithDelays();
    const { server, runtime } = await deskServed({}, { clock });
    await clientOf(server).chat.completions.create({ model, messages: [user("show")], tools: [showTool] });
    expect([...delays.values()]).toEqual([3_600_000]);
    over();
    await vi.waitFor(async () => expect(await runtime.turns()).toMatchObject([{ status: "stopped" }]), 30_000);
  });
});

describe.skipIf(!redisProgram)("two servers over one Redis", () => {
  test("one continues with the conversation and the call of the other", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    const open = async () => {
      const runtime = await createRuntime({ agents: [desk()], stores: redisStores({ url: place.url }) });
      onTestFinished(() => runtime.shutdown());
      const { server } = serve(runtime, { surfaces: [openaiSurface()] });
      return clientOf(server, { defaultHeaders: { "x-troupe-conversation": "holiday" } }).chat.completions;
    };
    const [one, two] = [await open(), await open()];
    expect(answerContent(await one.create({ model, messages: [user("hello")] }))).toBe("1: hello");
    const called = await two.create({ model, messages: [user("show")], tools: [showTool] });
    const [choice] = called.choices;
    if (choice?.message.tool_calls?.[0] === undefined) throw new Error("there is no call");
    const result = { role: "tool" as const, tool_call_id: choice.message.tool_calls[0].id, content: "shown" };
    const answered = await one.stream({ model, messages: [user("show"), choice.message, result] }).finalContent();
    expect(answered).toBe("so: shown");
    expect(answerContent(await two.create({ model, messages: [user("again")] }))).toBe("3: again");
  });
});
