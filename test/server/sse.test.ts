import { createFakeClock, type FakeClock } from "troupe/testing";
import { eventFrame, type ServeOptions, type SseFrame } from "troupe/server";
import { describe, expect, it } from "vitest";
import { requestOf, routeAt, runtimeOf, type Served, serve, surfaceOf } from "./served.ts";

/** A source of frames that a test feeds; it counts the requested frames. */
class Feed implements AsyncIterableIterator<SseFrame> {
  readonly #frames: SseFrame[] = [];
  readonly #waiting: PromiseWithResolvers<IteratorResult<SseFrame>>[] = [];
  asked = 0;
  isLeft = false;

  push(...frames: readonly SseFrame[]): void {
    for (const value of frames) {
      const waiting = this.#waiting.shift();
      if (waiting) waiting.resolve({ done: false, value });
      else this.#frames.push(value);
    }
  }

  next(): Promise<IteratorResult<SseFrame>> {
    this.asked += 1;
    const value = this.#frames.shift();
    if (value) return Promise.resolve({ done: false, value });
    const waiting = Promise.withResolvers<IteratorResult<SseFrame>>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  return(): Promise<IteratorResult<SseFrame>> {
    this.isLeft = true;
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

interface Streaming extends Served {
  readonly clock: FakeClock;
  readonly feed: Feed;
}

async function streaming(options: Partial<ServeOptions> = {}): Promise<Streaming> {
  const clock = createFakeClock();
  const feed = new Feed();
  const stream = routeAt("stream", (call) => call.stream(() => feed));
  return { ...serve(await runtimeOf(), { clock, surfaces: [surfaceOf(stream)], ...options }), clock, feed };
}

const decoder = new TextDecoder();

async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> {
  const { done, value } = await reader.read();
  return done ? undefined : decoder.decode(value);
}

/** Runs all work that waits for no timer and no socket. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function readerOf(response: Response): ReadableStreamDefaultReader<Uint8Array> {
  if (response.body === null) throw new Error("the response has no body");
  return response.body.getReader();
}

it("writes id, event and data, with a data line for each line", async () => {
  const { ask, feed } = await streaming();
  feed.push(
    { id: "1.1.0", event: "a", data: '{"x":1}' },
    { event: "b\r\nid: 9", data: "one\r\ntwo\nthree" },
    { data: "" },
  );
  const response = await ask("/test/stream");
  expect(response.status).toBe(200);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
  });
  const reader = readerOf(response);
  expect(await readText(reader)).toBe('id: 1.1.0\nevent: a\ndata: {"x":1}\n\n');
  expect(await readText(reader)).toBe("event: b  id: 9\ndata: one\ndata: two\ndata: three\n\n");
  expect(await readText(reader)).toBe("data: \n\n");
});

it("requests the next frame once the client has read the last one", async () => {
  const { ask, feed } = await streaming();
  feed.push(...Array.from({ length: 100 }, (_, index) => ({ data: String(index) })));
  const reader = readerOf(await ask("/test/stream"));
  await settled();
  expect(feed.asked).toBe(1);
  await readText(reader);
  await settled();
  expect(feed.asked).toBe(2);
});

it("sends headers without a frame if none comes, and comments while idle", async () => {
  const { ask, feed, clock } = await streaming({ keepAliveMs: 15_000 });
  const asked = ask("/test/stream");
  await settled();
  clock.advance(250);
  const reader = readerOf(await asked);
  const first = readText(reader);
  await settled();
  clock.advance(15_000);
  expect(await first).toBe(": keep-alive\n\n");
  const second = readText(reader);
  await settled();
  feed.push({ data: "late" });
  expect(await second).toBe("data: late\n\n");
  expect(feed.asked).toBe(2);
});

it("answers an error before the first frame with its status", async () => {
  const stream = routeAt("stream", (call) =>
    call.stream(async function* (signal) {
      for await (const event of call.caller.events("nobody", { signal })) yield eventFrame(event);
    }),
  );
  const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(stream)], limits: { streamsPerCaller: 1 } });
  // Each of them frees its slot.
  for (const _ of [1, 2, 3]) {
    const response = await ask("/test/stream");
    expect([response.status, await response.json()]).toEqual([
      404,
      { code: "not_found", message: "there is no such agent" },
    ]);
  }
});

it("disconnects a client that reads nothing for a minute", async () => {
  const { ask, feed, clock } = await streaming();
  feed.push({ data: "1" }, { data: "2" }, { data: "3" });
  const reader = readerOf(await ask("/test/stream"));
  expect(await readText(reader)).toBe("data: 1\n\n");
  await settled();
  clock.advance(59_999);
  expect(feed.isLeft).toBe(false);
  clock.advance(1);
  expect(feed.isLeft).toBe(true);
  await expect(readText(reader)).rejects.toThrow("the stream was cut off");
  expect(clock.pendingTimers).toBe(0);
});

it("cancels its source when the client leaves", async () => {
  const { ask, feed, clock, server } = await streaming();
  feed.push({ data: "1" });
  const reader = readerOf(await ask("/test/stream"));
  await readText(reader);
  await settled();
  await reader.cancel();
  expect(feed.isLeft).toBe(true);
  await settled();
  expect(clock.pendingTimers).toBe(0);
  await server.close();
});

it("ends when the server closes, and accepts no more requests", async () => {
  const { ask, feed, server } = await streaming();
  feed.push({ data: "1" });
  const reader = readerOf(await ask("/test/stream"));
  await readText(reader);
  const end = readText(reader);
  await settled();
  await server.close();
  expect(await end).toBeUndefined();
  expect(feed.isLeft).toBe(true);
  const late = await ask("/test/stream");
  expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
});

it("cancels its source when the client leaves before the first frame", async () => {
  const { server, feed } = await streaming();
  const client = new AbortController();
  const asked = server.fetch(requestOf("/test/stream", { signal: client.signal }));
  await settled();
  client.abort();
  const reader = readerOf(await asked);
  expect(await readText(reader)).toBeUndefined();
  expect(feed.isLeft).toBe(true);
});

describe("the number of streams is limited", () => {
  it.each([
    ["of a caller", { streamsPerCaller: 2 }, "you have 2 open streams; close one of them"],
    ["of a server", { streams: 2 }, "this server has too many open streams"],
  ])("%s", async (_, limits, message) => {
    const { ask, feed } = await streaming({ limits });
    feed.push({ data: "1" }, { data: "2" }, { data: "3" });
    const [one] = [await ask("/test/stream"), await ask("/test/stream")];
    const refused = await ask("/test/stream");
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await refused.json()).toEqual({ code: "rate_limited", message });
    await one.body?.cancel();
    expect((await ask("/test/stream")).status).toBe(200);
  });

  it("HEAD opens no stream", async () => {
    const { ask } = await streaming();
    expect((await ask("/test/stream", { method: "HEAD" })).status).toBe(405);
  });
});

/** A stream that fails after its first frame. */
async function* broken(): AsyncGenerator<SseFrame> {
  yield { data: "1" };
  throw new Error("the disk is gone");
}

it("an error in the middle is logged with the route and the user of its stream", async () => {
  const stream = routeAt("stream/{id}", (call) => call.stream(broken), { method: "POST" });
  const clock = createFakeClock();
  const { ask, lines } = serve(await runtimeOf(), { surfaces: [surfaceOf(stream)], clock });
  const response = await ask("/test/stream/7", { method: "POST", headers: { "x-request-id": "abc" } });
  clock.advance(40);
  await expect(response.text()).rejects.toThrow("the stream was cut off");
  expect(lines.map(({ code }) => code)).toEqual([null, "stream_cut"]);
  expect(lines[1]).toMatchObject({
    requestId: "abc",
    method: "POST",
    route: "test /test/stream/{id}",
    userId: "ann",
    error: "the disk is gone",
  });
});
