import { createServer, type AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { billOf } from "../../src/actors/model-cost.ts";
import { callFailure } from "../../src/model/call-failure.ts";
import { openaiModel } from "../../src/model/index.ts";
import { inFull } from "../support/full.ts";
import { chunk, event, failureOf, neverAborted, request, streamed } from "../support/model-calls.ts";
import { byClient, callOf, completion, goodAnswer, wireAnswer, wireModel, wireServer } from "../support/wire-server.ts";

const sse = (body: string): Buffer => wireAnswer(body, "content-type: text/event-stream");
const ask = { promptTokens: 100, price: null } as unknown as Parameters<typeof billOf>[1];
const context = { partial: undefined, secrets: [], tooLongMessages: [], now: 0, wasSent: undefined };
const reserved = { tokens: 5_000, costMicros: 0 } as unknown as Parameters<typeof billOf>[2];

describe("the cost of a failed call", () => {
  it("is that of the part before the server's error, also if the error names another status", async () => {
    const broken = event({ error: { message: "Provider disconnected", code: 502 } });
    const server = await wireServer((socket) => socket.write(sse(chunk({ content: "hello world" }) + broken)));
    const failure = await failureOf(streamed(wireModel(server)));
    expect(failure).toMatchObject({ status: 502, partialOutputTokens: 2 });
    const { settlement } = billOf(failure, ask, reserved);
    expect(settlement.tokens).toBe((failure.partialInputTokens ?? 0) + 2);
    expect(failure.partialInputTokens).toBeGreaterThan(0);
  });

  it("is that reported by the server with its error", async () => {
    const usage = { prompt_tokens: 900, completion_tokens: 1_000 };
    const server = await wireServer((socket) =>
      socket.write(sse(event({ usage, error: { message: "broken", code: 502 }, choices: [] }))),
    );
    expect(billOf(await failureOf(streamed(wireModel(server))), ask, reserved).settlement.tokens).toBe(1_900);
  });

  it("is that of a whole answer with an error next to it", async () => {
    const choices = [{ index: 0, message: { content: "hello world" }, finish_reason: "error" }];
    const body = JSON.stringify({ error: { message: "broken", code: 502 }, choices });
    const server = await wireServer((socket) => socket.write(wireAnswer(body)));
    const failure = await failureOf(callOf(server));
    expect(failure).toMatchObject({ status: 502, partialOutputTokens: 2 });
    expect(billOf(failure, ask, reserved).settlement.tokens).toBe((failure.partialInputTokens ?? 0) + 2);
  });

  const brokenTls = Object.assign(new Error("bad record mac"), { code: "ERR_SSL_BAD_RECORD" });

  it("is unknown if TLS breaks after the request was sent", () => {
    const failure = callFailure(new TypeError("fetch failed", { cause: brokenTls }), { ...context, wasSent: true });
    expect(failure).toMatchObject({ mayHaveBeenSent: true, retryable: true });
    expect(billOf(failure, ask, reserved).settlement).toMatchObject({ tokens: 5_000, unconfirmed: true });
  });

  it("is unknown if TLS breaks after the headers of an answer to a custom fetch", () => {
    const failure = callFailure(new TypeError("terminated", { cause: brokenTls }), context);
    expect(failure).toMatchObject({ mayHaveBeenSent: true, retryable: true });
  });

  it("is zero if the call is aborted or times out before the server has authenticated", async () => {
    const asked: (() => void)[] = [];
    const server = await wireServer(
      () => undefined,
      () => asked.shift()?.(),
    );
    const baseURL = `https://${server.host}/v1`;
    const controller = new AbortController();
    asked.push(() => controller.abort());
    const { signal } = controller;
    const aborted = await failureOf(wireModel(server, { baseURL }).generate(request, { signal }));
    const late = await failureOf(callOf(server, { baseURL, requestTimeoutMs: 20 }));
    for (const failure of [aborted, late])
      expect(billOf(failure, ask, reserved).settlement).toMatchObject({ tokens: 0, unconfirmed: false });
  });

  it("is unknown if the call is aborted after it was sent", async () => {
    const controller = new AbortController();
    const server = await wireServer(() => controller.abort());
    const failure = await failureOf(wireModel(server).generate(request, { signal: controller.signal }));
    expect(failure).toMatchObject({ mayHaveBeenSent: true });
    expect(billOf(failure, ask, reserved).settlement).toMatchObject({ tokens: 5_000, unconfirmed: true });
  });

  it("is zero if a server refuses the call in a stream before anything else", async () => {
    const server = await wireServer((socket) => socket.write(sse(event({ error: { message: "busy", code: 429 } }))));
    const failure = await failureOf(streamed(wireModel(server)));
    expect(failure).toMatchObject({ status: 429, retryable: true });
    expect(billOf(failure, ask, reserved).settlement).toMatchObject({ tokens: 0, unconfirmed: false });
  });

  it("is zero if the connection ends before the server has authenticated", async () => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const model = openaiModel("m", { apiKey: "k", baseURL: `https://127.0.0.1:${port}/v1` });
    expect(await failureOf(model.generate(request, { signal: neverAborted }))).toMatchObject({
      mayHaveBeenSent: false,
    });
  });
});

describe.each([
  ["its own connections", {}],
  ["a custom fetch", byClient],
])("over %s", (_way, way) => {
  it("no key is shown, in any form in which a server repeats it", async () => {
    const key = "sk-CANARY-0123456789";
    const headers = { "api-key": "HEADER-CANARY-1", "x-gate-token": "Bearer GATE-CANARY-2" };
    const padding = "x".repeat(2_000 - 10);
    const message = `HEADER-CANARY-1 and GATE-CANARY-2 ${padding.slice(40)}${key}`;
    const body = JSON.stringify({ error: { message, code: key, type: "GATE-CANARY-2" } });
    const server = await wireServer((socket) => socket.write(wireAnswer(body, "content-type: application/json", 400)));
    const failure = await failureOf(callOf(server, { apiKey: `${key}\n`, headers, ...way }));
    expect(failure.message + JSON.stringify(failure.details)).not.toContain("CANARY");
    expect(failure.message).toContain("*** and *** x");
  });

  it("a short placeholder key does not damage messages", async () => {
    const server = await wireServer((socket) =>
      socket.write(
        wireAnswer(JSON.stringify({ error: { message: "took long" } }), "content-type: application/json", 400),
      ),
    );
    const headers = { "x-title": "something that took long", "x-env": "took long" };
    expect((await failureOf(callOf(server, { apiKey: "k", headers, ...way }))).message).toContain("took long");
  });

  it.each(["Application/JSON", "APPLICATION/JSON; charset=utf-8"])(
    "a whole answer to a streaming request is read: %s",
    async (type) => {
      const server = await wireServer((socket) =>
        socket.write(wireAnswer(completion("hello"), `content-type: ${type}`)),
      );
      expect((await streamed(wireModel(server, way))).answer.content).toBe("hello");
    },
  );

  it("a byte order mark before an answer is skipped", async () => {
    const server = await wireServer((socket) => socket.write(wireAnswer(`\uFEFF${completion("hello")}`)));
    expect((await callOf(server, way)).content).toBe("hello");
  });

  it("a byte order mark before a stream is skipped, and so is one before a packed answer", async () => {
    const stream = chunk({ content: "hello" }) + chunk({}, "stop");
    const plain = await wireServer((socket) => socket.write(sse(`\uFEFF${stream}`)));
    expect((await streamed(wireModel(plain, way))).answer.content).toBe("hello");
    const headers = "content-type: application/json\r\ncontent-encoding: gzip";
    const packed = gzipSync(`\uFEFF${completion("hello")}`);
    const packing = await wireServer((socket) => socket.write(wireAnswer(packed, headers)));
    expect((await callOf(packing, way)).content).toBe("hello");
  });

  it("with streaming turned off a call may wait for the answer as long as for a whole one", async () => {
    const server = await wireServer((socket) => void setTimeout(() => socket.write(goodAnswer), 60));
    const model = wireModel(server, { extraBody: { stream: false }, headersTimeoutMs: 5, ...way });
    expect((await streamed(model)).answer.content).toBe("hello");
  });

  it("with streaming turned off a call does not request its usage", async () => {
    const server = await wireServer((socket) => socket.write(goodAnswer));
    const { answer } = await streamed(wireModel(server, { extraBody: { stream: false }, ...way }));
    expect(answer.content).toBe("hello");
    expect(JSON.parse(server.requests[0]?.body ?? "")).toMatchObject({ stream: false });
    expect(server.requests[0]?.body).not.toContain("stream_options");
  });
});

describe("a base URL with a user or a password", () => {
  for (const way of [{}, byClient]) {
    it.each(["http://me:secret@", "http://secret@", "http://:secret@", "ftp://me:secret@", "me:secret@"])(
      `is refused before anything is sent, and not shown${way === byClient ? ", with a fetch too" : ""}: %s`,
      async (beginning) => {
        const server = await wireServer((socket) => socket.write(goodAnswer));
        const model = wireModel(server, { ...way, baseURL: `${beginning}${server.host}/v1` });
        const error = await model.generate(request, { signal: neverAborted }).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ mayHaveBeenSent: false, details: { kind: "configuration" } });
        expect(String(error)).toMatch(/base URL/);
        expect(String(error)).not.toContain("secret");
        expect(server.requests).toEqual([]);
      },
    );
  }
});

describe("a refusal whose body does not arrive is reported with its status", () => {
  const stalled = "HTTP/1.1 429 Too Many\r\nretry-after: 7\r\ncontent-length: 100\r\n\r\n{";
  const told = { status: 429, retryable: true, retryAfterMs: 7_000 };

  it.each([
    ["over its own connections", {}],
    ["over a custom fetch", byClient],
  ])("%s", async (_way, way) => {
    const server = await wireServer((socket) => socket.write(stalled));
    expect(await failureOf(callOf(server, way))).toMatchObject(told);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("also if the timeouts of the call are shorter than that of the refusal", async () => {
    const server = await wireServer((socket) => socket.write(stalled));
    expect(await failureOf(streamed(wireModel(server, { headersTimeoutMs: 500 })))).toMatchObject(told);
    expect(await failureOf(callOf(server, { requestTimeoutMs: 500 }))).toMatchObject(told);
  });
});

inFull(() => {
  it("an endless answer is not read to its end, packed or not", async () => {
    const bomb = gzipSync(`{"choices":"${" ".repeat(2 ** 26)}"}`);
    const headers = "content-type: application/json\r\ncontent-encoding: gzip";
    const server = await wireServer((socket) => socket.write(wireAnswer(bomb, headers)));
    expect(await failureOf(callOf(server))).toMatchObject({ retryable: false, details: { kind: "malformed" } });
  });

  it.each([
    ["an event", "data: ", "x".repeat(2 ** 20), "an event of more than"],
    ["a stream", "", `: ${"x".repeat(2 ** 20)}\n\n`, "it has more than"],
  ])("%s without end is not read to its end", async (_what, beginning, part, words) => {
    const server = await wireServer((socket) => {
      socket.write("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + beginning);
      const write = (): void => {
        while (socket.writable && socket.write(part));
        socket.once("drain", write);
      };
      write();
    });
    const failure = await failureOf(streamed(wireModel(server)));
    expect(failure).toMatchObject({ retryable: false, details: { kind: "malformed" } });
    expect(failure.message).toContain(words);
    await expect.poll(() => server.openConnections()).toBe(0);
  });
});
