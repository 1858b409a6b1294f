// Streams of responses that a client resumes after any event, also after the death of their server.
import type { ResponseCreateParamsNonStreaming, ResponseStreamEvent } from "openai/resources/responses/responses";
import { defineAgent, defineTool, ModelError } from "troupe";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { z } from "zod";
import { redisProgram, RedisServer } from "../../support/redis-server.ts";
import { slowSpeaker } from "../../support/slow-speaker.ts";
import { startProgram } from "../../support/waiting-process.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import {
  all,
  approving,
  clientAt,
  ended,
  joined,
  openOf,
  responsesServed,
  returning,
  servedAgent,
  shown,
} from "./responses-served.ts";

const whole = "The first half, and the second.";

/** A client's state after reading a stream. */
class Reader {
  readonly #events: AsyncIterator<ResponseStreamEvent>;
  readonly events: ResponseStreamEvent[] = [];

  constructor(events: AsyncIterable<ResponseStreamEvent>) {
    this.#events = events[Symbol.asyncIterator]();
  }

  get text(): string {
    return streamedText(this.events);
  }

  get number(): number {
    return this.events.at(-1)?.sequence_number ?? -1;
  }

  get id(): string {
    const [created] = this.events;
    if (created?.type !== "response.created") throw new Error("the stream has not begun");
    return created.response.id;
  }

  async until(isThere: (reader: this) => boolean): Promise<this> {
    while (!isThere(this)) {
      const { done, value } = await this.#events.next();
      if (done === true) throw new Error("the stream has ended before");
      this.events.push(value);
    }
    return this;
  }

  async toEnd(): Promise<this> {
    return await this.until(({ events }) => events.at(-1)?.type === "response.completed");
  }
}

function streamedText(events: readonly ResponseStreamEvent[]): string {
  return events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
}

test("after any event the rest of the stream follows, each character once", async () => {
  const { client } = await responsesServed();
  const run = async (body: Pick<ResponseCreateParamsNonStreaming, "input">) =>
    await all(await client.responses.create({ model: "desk", ...body, stream: true }));
  const asked = await run({ input: "remove" });
  const question = await run({ input: "ask" });
  const flows = [
    await run({ input: "hello" }),
    await run({ input: "think" }),
    await run({ input: "delegate" }),
    asked,
    await run(approving(ended(asked))),
    question,
    await run(returning(ended(question), "Ann")),
  ];
  for (const events of flows) {
    const { id } = ended(events);
    for (const [index, { sequence_number: number }] of events.entries()) {
      const rest = await all(await client.responses.retrieve(id, { stream: true, starting_after: number }));
      expect(rest.every((event) => event.sequence_number > number)).toBe(true);
      expect(joined([...events.slice(0, index + 1), ...rest])).toEqual(joined(events));
    }
  }
});

test("a number in the middle of a piece returns the rest of it", async () => {
  const { client } = await responsesServed();
  const events = await all(await client.responses.create({ model: "desk", input: "hello", stream: true }));
  const [created] = events;
  const id = created?.type === "response.created" ? created.response.id : "";
  const first = events.find(({ type }) => type === "response.output_text.delta")?.sequence_number ?? 0;
  const from = first - "1: ".length + 1;
  for (const known of [0, 1, 2, 5, 8]) {
    const query = { stream: true, starting_after: from - 1 + known } as const;
    expect(streamedText(await all(await client.responses.retrieve(id, query)))).toBe("1: hello".slice(known));
  }
});

test("a client that connects in the middle of an answer receives the earlier text, and then the rest", async () => {
  const goOn = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  const { client } = await servedAgent(
    slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: heard.promise }),
  );
  const first = new Reader(await client.responses.create({ model: "speaker", input: "speak", stream: true }));
  await first.until(({ text }) => text === "The first half, ");
  const second = new Reader(await client.responses.retrieve(first.id, { stream: true }));
  await second.until(({ text }) => text === "The first half, ");
  const query = { stream: true, starting_after: first.number } as const;
  const third = new Reader(await client.responses.retrieve(first.id, query));
  goOn.resolve();
  await Promise.all([first, second].map((reader) => reader.until(({ text }) => text === whole)));
  heard.resolve();
  await Promise.all([first, second, third].map((reader) => reader.toEnd()));
  expect([first.text, second.text, third.text]).toEqual([whole, whole, "and the second."]);
  expect(third.events.map(({ type }) => type)).toEqual(
    first.events.slice(-third.events.length).map(({ type }) => type),
  );
  expect([second.number, third.number]).toEqual([first.number, first.number]);
});

test("a client that saw more of an aborted text than is stored still receives its end", async () => {
  const never = new Promise<void>(() => undefined);
  const { client } = await servedAgent(slowSpeaker({ said: () => undefined, goOn: never, whole: never }));
  const first = new Reader(await client.responses.create({ model: "speaker", input: "speak", stream: true }));
  await first.until(({ text }) => text === "The first half, ");
  await client.responses.cancel(first.id);
  const query = { stream: true, starting_after: first.number } as const;
  const rest = await all(await client.responses.retrieve(first.id, query));
  expect(rest.at(-1)).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
  expect(rest[0]?.sequence_number).toBeGreaterThan(first.number);
});

test("a text that is repeated differently gets no more pieces, and ends with the stored text", async () => {
  const error = new ModelError("cut off", { retryable: true, retryAfterMs: 1, mayHaveBeenSent: true });
  const model = scriptedModel([{ deltas: ["The wr", "ong one"], error }, { deltas: ["The right one", ", at last"] }]);
  const { client } = await servedAgent(defineAgent({ name: "speaker", model }));
  const events = await all(await client.responses.create({ model: "speaker", input: "speak", stream: true }));
  expect(streamedText(events)).toBe("The wrong one");
  expect(shown(ended(events))).toEqual(["The right one, at last"]);
  const later = await all(await client.responses.retrieve(ended(events).id, { stream: true }));
  expect(streamedText(later)).toBe("The right one, at last");
  expect(joined(later).slice(-4)).toEqual(joined(events).slice(-4));
});

test("a stream waits while the agent is paused, and continues afterwards", async () => {
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<string>();
  const look = defineTool({
    name: "look",
    description: "Looks",
    parameters: z.object({}),
    execute: () => {
      begun.resolve();
      return goOn.promise;
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "look", arguments: {} }] }, "seen"]);
  const { client, runtime } = await servedAgent(defineAgent({ name: "watcher", model, tools: [look] }));
  const reader = new Reader(await client.responses.create({ model: "watcher", input: "look", stream: true }));
  await reader.until(({ events }) => events.some(({ type }) => type === "response.mcp_call.in_progress"));
  await begun.promise;
  const [record] = await runtime.list();
  const agent = await runtime.find(record?.agentId ?? "");
  const paused = agent.pause();
  goOn.resolve("a hill");
  await paused;
  await reader.until(({ events }) => events.some(({ type }) => type === "response.mcp_call.completed"));
  expect((await client.responses.retrieve(reader.id)).status).toBe("in_progress");
  const late = new Reader(await client.responses.retrieve(reader.id, { stream: true }));
  await late.until(({ events }) => events.some(({ type }) => type === "response.mcp_call.completed"));
  await agent.resume();
  for (const one of [reader, late]) expect((await one.toEnd()).text).toBe("seen");
});

it("continues at another server after kill -9 in its middle, over the same SQLite file", async () => {
  const path = temporaryFile();
  const process = startProgram(new URL("../killed-speaker.ts", import.meta.url).pathname, [path, "openai"]);
  onTestFinished(() => process.kill());
  const there = clientAt(await process.firstLine);
  const before = new Reader(await there.responses.create({ model: "speaker", input: "speak", stream: true }));
  await before.until(({ text }) => text === "The first half, ");
  process.kill();
  await process.ended;
  const goOn = Promise.withResolvers<void>();
  const speaker = slowSpeaker({ said: () => undefined, goOn: goOn.promise, whole: goOn.promise });
  const { client, runtime } = await servedAgent(speaker, { stores: sqliteStores(path) });
  expect(await runtime.recover()).toHaveLength(1);
  const query = { stream: true, starting_after: before.number } as const;
  const after = new Reader(await client.responses.retrieve(before.id, query));
  goOn.resolve();
  await after.toEnd();
  expect(before.text + after.text).toBe(whole);
  expect(await client.responses.retrieve(before.id)).toMatchObject({ status: "completed", output_text: whole });
});

describe.skipIf(!redisProgram)("two servers over one Redis", () => {
  it("one follows and answers a response that the other one began", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    const open = async () => (await responsesServed({ stores: redisStores({ url: place.url }) })).client;
    const [one, two] = [await open(), await open()];
    const begun = await one.responses.create({ model: "desk", input: "ask", background: true });
    const followed = new Reader(await two.responses.retrieve(begun.id, { stream: true }));
    await followed.toEnd();
    const asked = await one.responses.retrieve(begun.id);
    expect(await two.responses.retrieve(begun.id)).toEqual(asked);
    expect(openOf(asked)).toMatch(/^call_/);
    const answered = await two.responses.create(returning(asked, "Ann"));
    expect(shown(answered)).toEqual(["so: Ann"]);
    expect(await one.responses.retrieve(answered.id)).toEqual(answered);
    const next = await one.responses.create({ previous_response_id: answered.id, input: "hello" });
    expect(next.output_text).toBe("2: hello");
  });

  it("of concurrent decisions at both the first counts", async () => {
    const place = await RedisServer.start();
    onTestFinished(() => place.stop());
    const nodes = await Promise.all([1, 2].map(() => responsesServed({ stores: redisStores({ url: place.url }) })));
    const clients = nodes.map(({ client }) => client);
    const asked = await clients[0]?.responses.create({ model: "desk", input: "remove" });
    if (asked === undefined) throw new Error("no answer came");
    const tries = clients.map((client, index) => client.responses.create(approving(asked, index === 0)));
    const settled = await Promise.allSettled(tries);
    expect(settled.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const removed = nodes.flatMap((node) => node.removed);
    expect(removed).toEqual(settled[0]?.status === "fulfilled" ? ["a.txt"] : []);
  });
});
