import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { OpenaiModelOptions } from "../../src/model/index.ts";
import {
  chunk,
  deltaText,
  done,
  failureOf,
  neverAborted,
  request,
  streamed,
  usageChunk,
} from "../support/model-calls.ts";
import {
  byClient,
  callOf,
  completion,
  goodAnswer,
  wireAnswer,
  wireModel,
  type WireRequest,
  wireServer,
} from "../support/wire-server.ts";

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const stream = chunk({ content: "grü" }) + chunk({ content: "ße €" }, "stop") + usageChunk + done;

describe("the request", () => {
  const rows: readonly (readonly [string, string, OpenaiModelOptions, Readonly<Record<string, string>>])[] = [
    ["only a key", "/v1", {}, {}],
    ["additional headers", "/v1", { headers: { "X-Team": "blue", "x-name": "Grüße", "user-agent": "mine" } }, {}],
    [
      "headers that replace the client's",
      "/v1",
      { headers: { authorization: "Basic eA==", accept: "*/*", "content-type": "application/json; charset=utf-8" } },
      {},
    ],
    ["a requested encoding", "/v1", { headers: { "accept-encoding": "gzip" } }, {}],
    ["an organization, and timeouts", "/v1", { organization: "org-1", requestTimeoutMs: 12_345 }, {}],
    [
      "settings from the environment",
      "/v1",
      {},
      { OPENAI_ORG_ID: "org-2", OPENAI_PROJECT_ID: "proj-1", OPENAI_CUSTOM_HEADERS: "x-a: 1\nx-b: 2" },
    ],
    ["a base URL with a path and a query", "/deep/er/v1/?api-version=2026", {}, {}],
    [
      "fields of the body",
      "/v1",
      { extraBody: { top_k: 5, user: "Zoë \u{1f600} \u2028", nested: { a: [1, null, "x"] } } },
      {},
    ],
  ];

  it.each(rows)("equals the client's own request, byte for byte: %s", async (_what, path, options, environment) => {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    for (const isStreamed of [false, true]) {
      const server = await wireServer((socket) =>
        socket.write(isStreamed ? wireAnswer(stream, "content-type: text/event-stream") : goodAnswer),
      );
      for (const way of [{}, byClient]) {
        const model = wireModel(server, { ...options, ...way, baseURL: `http://${server.host}${path}` });
        await (isStreamed ? streamed(model) : model.generate(request, { signal: neverAborted }));
      }
      const [ours, theirs] = server.requests as [WireRequest, WireRequest];
      expect(ours.line).toBe(theirs.line);
      expect(ours.body).toBe(theirs.body);
      // Headers that fetch adds itself are not settings of the client.
      const { "accept-language": _language, "sec-fetch-mode": _mode, ...headers } = theirs.headers;
      const encoding = options.headers?.["accept-encoding"] ?? "identity";
      expect(ours.headers).toEqual({ ...headers, "accept-encoding": encoding });
    }
  });

  it("omits headers that belong to the connection", async () => {
    const server = await wireServer((socket) => socket.write(goodAnswer));
    const headers = {
      "content-length": "1",
      "transfer-encoding": "chunked",
      expect: "100-continue",
      "keep-alive": "9",
      upgrade: "h2c",
    };
    expect((await callOf(server, { headers })).content).toBe("hello");
    const [sent] = server.requests;
    for (const name of ["transfer-encoding", "expect", "keep-alive", "upgrade"])
      expect(sent?.headers).not.toHaveProperty(name);
  });

  it("goes through the client if it logs, so that its logs are complete", async () => {
    vi.stubEnv("OPENAI_LOG", "info");
    const told = vi.spyOn(console, "info").mockReturnValue();
    const server = await wireServer((socket) => socket.write(goodAnswer));
    expect((await callOf(server)).content).toBe("hello");
    expect(told.mock.calls.flat().join(" ")).toContain("succeeded with status 200");
  });
});

const packings: readonly (readonly [string, (text: string) => Buffer])[] = [
  ["gzip", (text) => gzipSync(text)],
  ["deflate", (text) => deflateSync(text)],
  ["br", (text) => brotliCompressSync(text)],
  ["gzip, br", (text) => brotliCompressSync(gzipSync(text))],
  ["identity", (text) => Buffer.from(text)],
];

function chunked(bytes: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)};note=1\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\nx-late: 1\r\n\r\n")]);
}

/** Writes the bytes in packets of this size, each after the previous one was sent. */
function trickle(socket: Socket, bytes: Buffer, size: number, then: () => void = () => undefined): void {
  if (bytes.length === 0) then();
  else socket.write(bytes.subarray(0, size), () => setImmediate(trickle, socket, bytes.subarray(size), size, then));
}

describe("bodies", () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
  const forms: readonly (readonly [string, (socket: Socket) => void])[] = [
    ["with a length", (socket) => socket.write(wireAnswer(stream, "content-type: text/event-stream"))],
    [
      "with a length, byte by byte",
      (socket) => trickle(socket, wireAnswer(stream, "content-type: text/event-stream"), 1),
    ],
    [
      "in chunks that cut characters",
      (socket) =>
        socket.write(
          Buffer.concat([Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n`), chunked(Buffer.from(stream), 3)]),
        ),
    ],
    [
      "in chunks, in packets of seven bytes",
      (socket) =>
        trickle(
          socket,
          Buffer.concat([Buffer.from(`${head}transfer-encoding: chunked\r\n\r\n`), chunked(Buffer.from(stream), 5)]),
          7,
        ),
    ],
    ["up to the end of the connection", (socket) => socket.end(`${head}\r\n${stream}`)],
    [
      "after an interim answer",
      (socket) =>
        socket.write(
          Buffer.concat([
            Buffer.from("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
            wireAnswer(stream, "content-type: text/event-stream"),
          ]),
        ),
    ],
  ];

  it.each(forms)("are read %s", async (_form, answer) => {
    const server = await wireServer((socket) => answer(socket));
    for (const way of [{}, byClient])
      expect((await streamed(wireModel(server, way))).answer).toMatchObject({
        content: "grüße €",
        usage: { inputTokens: 7 },
      });
  });

  it.each(packings)(
    "are unpacked: %s, whole and streamed, although the request did not ask for it",
    async (coding, pack) => {
      const server = await wireServer((socket, { body }) => {
        const isStreamed = body.includes('"stream":true');
        const type = isStreamed ? "text/event-stream" : "application/json";
        const answer = wireAnswer(
          pack(isStreamed ? stream : completion("hello")),
          `content-type: ${type}\r\ncontent-encoding: ${coding}`,
        );
        trickle(socket, answer, 16);
      });
      expect((await callOf(server)).content).toBe("hello");
      expect((await streamed(wireModel(server))).answer.content).toBe("grüße €");
    },
  );

  it("are delivered piece by piece, also if they are packed", async () => {
    const server = await wireServer((socket) => {
      socket.write(`${head}content-encoding: gzip\r\nconnection: close\r\n\r\n`);
      socket.write(gzipSync(chunk({ content: "hello" })));
      // Not ended: the listener aborts the call after the first piece.
    });
    const controller = new AbortController();
    const pieces: string[] = [];
    const call = wireModel(server).generate(request, {
      signal: controller.signal,
      onDelta: (delta) => {
        pieces.push(deltaText(delta));
        controller.abort();
      },
    });
    expect(await failureOf(call)).toMatchObject({ details: { kind: "aborted" } });
    expect(pieces).toEqual(["hello"]);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("that are packed and broken are failures of the connection", async () => {
    const headers = "content-type: application/json\r\ncontent-encoding: gzip";
    const server = await wireServer((socket) => socket.write(wireAnswer("no gzip at all", headers)));
    expect(await failureOf(callOf(server))).toMatchObject({
      retryable: true,
      mayHaveBeenSent: true,
      details: { kind: "connection" },
    });
  });
});

describe("broken answers", () => {
  const bodies: readonly (readonly [string, string])[] = [
    ["cut inside the head", "HTTP/1.1 200 OK\r\ncontent-"],
    [
      "cut before its length",
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"choices"',
    ],
    [
      "cut inside a chunk",
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n20\r\n{"choi',
    ],
    [
      "cut without the last chunk",
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n",
    ],
    [
      "shorter than the JSON in it",
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n${completion("x")}`,
    ],
    ["not HTTP", "220 mail.example.org ESMTP\r\n"],
    ["a length that is not a number", "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}"],
    ["chunks without a length", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n"],
    ["endless headers", `HTTP/1.1 200 OK\r\nx-long: ${"a".repeat(40_000)}\r\n\r\n{}`],
    ["an empty body", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n"],
  ];

  it.each(bodies)("are reported as by the client itself, and sent once: %s", async (_what, bytes) => {
    const server = await wireServer((socket) => socket.end(bytes));
    const [ours, theirs] = [await failureOf(callOf(server)), await failureOf(callOf(server, byClient))];
    const { retryable, mayHaveBeenSent, status, details } = theirs;
    expect(ours).toMatchObject({ retryable, mayHaveBeenSent, status, details: { kind: details["kind"] } });
    expect(server.requests).toHaveLength(2);
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("contain the system's error code with every library", async () => {
    const server = await wireServer((socket, { index }) => {
      if (index === 0) socket.destroy();
      else socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"choices"');
    });
    for (const words of ["socket hang up", "aborted"]) {
      const failure = await failureOf(callOf(server));
      expect(failure).toMatchObject({
        message: `The connection to the model server failed: ${words}`,
        details: { errno: "ECONNRESET" },
      });
    }
  });

  const statuses: readonly (readonly [number, string, string])[] = [
    [400, '{"error":{"message":"No.","code":"bad","type":"invalid_request_error"}}', ""],
    [401, '{"error":{"message":"Wrong key: key"}}', "x-request-id: r1"],
    [429, "{}", "retry-after: 7"],
    [500, '{"error":"in words"}', "x-should-retry: false"],
    [502, "<html>bad gateway</html>", "set-cookie: a=1\r\nset-cookie: b=2"],
    [503, "null", "retry-after-ms: 1500"],
    [404, "", "x-a: 1"],
    [304, "", "x-a: 1"],
    [307, "", "x-without: location"],
  ];
  it.each(statuses)("with status %i have the same message as from the client", async (status, body, headers) => {
    const server = await wireServer((socket) =>
      socket.write(wireAnswer(body, headers === "" ? "x-b: 1" : headers, status)),
    );
    const [ours, theirs] = [await failureOf(callOf(server)), await failureOf(callOf(server, byClient))];
    expect(ours.message).toBe(theirs.message);
    const { retryable, mayHaveBeenSent, retryAfterMs, details } = theirs;
    expect(ours).toMatchObject({ retryable, mayHaveBeenSent, status, retryAfterMs, details });
  });
});
