import { connect, type Socket } from "node:net";
import type { ListenOptions, ServeOptions, SseFrame } from "troupe/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { createFakeClock } from "troupe/testing";
import { requestOf, routeAt, runtimeOf, serve, surfaceOf, tokens } from "./served.ts";

const MEBIBYTE = 2 ** 20;
const echo = routeAt("echo", ({ body }) => Response.json(body), { method: "POST", body: z.json().optional() });

async function listening(options: Partial<ServeOptions> = {}, how: ListenOptions = {}) {
  const served = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)], ...options });
  return { ...served, ...(await served.server.listen(how)) };
}

/** A connection that the test controls; it collects the received data while it reads. */
function dial(port: number, { reads = true } = {}): { socket: Socket; text: () => string; closed: Promise<void> } {
  const socket = connect({ port, host: "127.0.0.1" });
  onTestFinished(() => void socket.destroy());
  let text = "";
  if (reads) socket.on("data", (chunk) => (text += chunk.toString("latin1")));
  else socket.pause();
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  return { socket, text: () => text, closed };
}

const head = (port: number, more: string): string =>
  `POST /test/echo HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${tokens.ann}\r\nContent-Type: application/json\r\n${more}\r\n`;

/** Writes up to `bytes`, as fast as the server reads them; stops when the server closes. */
async function pour(socket: Socket, bytes: number, chunk: (size: number) => Buffer[]): Promise<number> {
  const size = 64 * 1_024;
  let written = 0;
  while (written < bytes && !socket.destroyed && socket.writable) {
    for (const part of chunk(size)) socket.write(part);
    written += size;
    if (socket.writableNeedDrain) {
      await Promise.race([
        new Promise((resolve) => void socket.once("drain", resolve)),
        new Promise((resolve) => void socket.once("close", resolve)),
      ]);
    }
  }
  return written;
}

describe("a body of 100 MB", () => {
  it("with a declared length is refused by its headers", async () => {
    const { port } = await listening();
    const { socket, text } = dial(port);
    socket.write(head(port, `Content-Length: ${100 * MEBIBYTE}\r\n`));
    await expect.poll(text).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("in chunks is read up to the limit and no further", async () => {
    const { server } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
    let given = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        given += MEBIBYTE;
        controller.enqueue(new Uint8Array(MEBIBYTE).fill(0x20));
        if (given >= 100 * MEBIBYTE) controller.close();
      },
    });
    const headers = { authorization: `Bearer ${tokens.ann}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body, duplex: "half" } as const;
    expect((await server.fetch(new Request("http://127.0.0.1/test/echo", init))).status).toBe(413);
    expect(given).toBeLessThan(13 * MEBIBYTE);
  });

  it("sent as fast as possible costs little memory, ends the connection, and delays no other client", async () => {
    const { port, url } = await listening();
    const { socket, closed } = dial(port);
    const before = process.memoryUsage.rss();
    socket.write(head(port, "Transfer-Encoding: chunked\r\n"));
    const part = Buffer.alloc(64 * 1_024, 0x20);
    const poured = pour(socket, 100 * MEBIBYTE, (size) => [
      Buffer.from(`${size.toString(16)}\r\n`),
      part,
      Buffer.from("\r\n"),
    ]);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await poured).toBeLessThan(100 * MEBIBYTE);
    await closed;
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * MEBIBYTE);
  });
});

function deep(levels: number): string {
  return "[".repeat(levels) + "]".repeat(levels);
}

describe("a body of JSON", () => {
  it.each([
    ["with 100,000 levels", deep(100_000), 413],
    ["with 10,000 levels", deep(10_000), 400],
    ["with 100 levels", deep(100), 200],
    ["that sets a prototype", '{"__proto__":{"isAdmin":true}}', 400],
    ["that reaches a prototype by its constructor", '{"constructor":{"prototype":{"isAdmin":true}}}', 400],
    ["that is cut off", '{"a":', 400],
    ["that is not UTF-8", Buffer.from([0x22, 0xff, 0xfe, 0x22]), 400],
    ["that is empty", "", 400],
  ])("%s", async (_, body, status) => {
    const { server } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
    const headers = { authorization: `Bearer ${tokens.ann}`, "content-type": "application/json" };
    const sent = body === "" ? " " : body;
    const response = await server.fetch(
      new Request("http://127.0.0.1/test/echo", { method: "POST", headers, body: sent }),
    );
    expect(response.status).toBe(status);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""])(
    "that is sent as %j, as a form can, is refused",
    async (type) => {
      const { server } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
      const headers = { authorization: `Bearer ${tokens.ann}`, "content-type": type };
      const body = new TextEncoder().encode("{}");
      const response = await server.fetch(new Request("http://127.0.0.1/test/echo", { method: "POST", headers, body }));
      expect(response.status).toBe(415);
    },
  );

  it("that a body parser has already read gets an explanation", async () => {
    const { server } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
    const request = requestOf("/test/echo", { method: "POST", body: {} });
    await request.text();
    const response = await server.fetch(request);
    expect([response.status, await response.json()]).toEqual([
      500,
      { code: "body_already_read", message: expect.stringContaining("mount it before any body parser") },
    ]);
  });
});

describe("line breaks in headers", () => {
  it("are in no answer", async () => {
    const { port } = await listening();
    const { socket, text } = dial(port);
    socket.write(
      `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Request-Id: a\rset-cookie: b=1\r\nConnection: close\r\n\r\n`,
    );
    await expect.poll(text).toMatch(/^HTTP\/1\.1 /);
    expect(text()).not.toMatch(/set-cookie/i);
  });

  it("are refused as an idempotency key and as a stream cursor", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
    for (const key of ["a b", "ä", "x".repeat(256), ""]) {
      const response = await ask("/test/echo", { method: "POST", body: {}, headers: { "idempotency-key": key } });
      expect([key, response.status]).toEqual([key, 400]);
    }
  });
});

describe("slow clients", () => {
  it("an unfinished head does not delay others, and no head may be larger than 16 KB", async () => {
    const { port, url } = await listening();
    const slow = Array.from({ length: 50 }, () => dial(port));
    for (const { socket } of slow) socket.write(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-A: `);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const large = dial(port);
    large.socket.write(`GET /healthz HTTP/1.1\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`);
    await expect.poll(large.text).toMatch(/^HTTP\/1\.1 431 /);
  });

  it.each([
    ["a head", { headMs: 400 }, (port: number) => `GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-A: `],
    ["a body", { requestMs: 400 }, (port: number) => head(port, "Content-Length: 100000\r\n")],
  ])(
    "%s that arrives byte by byte is cut off after its timeout, and others are served meanwhile",
    async (_, how, beginOf) => {
      const { port, url } = await listening({}, how);
      const { socket, text, closed } = dial(port);
      socket.write(beginOf(port));
      const begun = performance.now();
      const drip = setInterval(() => socket.write("a"), 10);
      onTestFinished(() => clearInterval(drip));
      let isOver = false;
      void closed.then(() => (isOver = true));
      while (!isOver) expect((await fetch(`${url}/healthz`)).status).toBe(200);
      expect(performance.now() - begun).toBeGreaterThan(300);
      expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    },
  );

  it("the timeouts of a listener are checked", async () => {
    const { server } = serve(await runtimeOf());
    await expect(server.listen({ headMs: 0 })).rejects.toThrow("headMs is 0; expected a whole number from 1 to");
    await expect(server.listen({ headTimeout: 1 } as ListenOptions)).rejects.toThrow("headTimeout");
  });
});

describe("a client that never reads its stream", () => {
  it("costs a bounded number of frames, and is disconnected", async () => {
    const clock = createFakeClock();
    let given = 0;
    let isLeft = false;
    async function* frames(): AsyncGenerator<SseFrame> {
      try {
        for (;;) {
          given += 1;
          yield { data: "x".repeat(100_000) };
        }
      } finally {
        isLeft = true;
      }
    }
    const stream = routeAt("stream", (call) => call.stream(frames));
    const { port } = await listening({ clock, surfaces: [surfaceOf(stream)] });
    const { socket, closed } = dial(port, { reads: false });
    socket.write(`GET /test/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${tokens.ann}\r\n\r\n`);
    // The buffers of the two sockets fill, then no more frames are requested.
    let seen = -1;
    await expect
      .poll(() => [given > 1 && seen === given, (seen = given)][0], { interval: 200, timeout: 20_000 })
      .toBe(true);
    expect(given).toBeLessThan(400);
    // On a busy machine the last of the buffers may have filled only now.
    await expect
      .poll(() => {
        clock.advance(60_000);
        return isLeft;
      })
      .toBe(true);
    socket.resume();
    await closed;
  });
});

it("closes with an open stream, an idle connection and a half-sent request", async () => {
  const clock = createFakeClock();
  const stream = routeAt("stream", (call) =>
    call.stream(async function* () {
      yield { data: "1" };
      await new Promise(() => undefined);
    }),
  );
  const { port, server } = await listening({ clock, surfaces: [surfaceOf(stream)] });
  const reading = dial(port);
  reading.socket.write(
    `GET /test/stream HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${tokens.ann}\r\n\r\n`,
  );
  await expect.poll(reading.text).toContain("data: 1");
  const half = dial(port);
  half.socket.write(head(port, "Content-Length: 100\r\nExpect: 100-continue\r\n"));
  await expect.poll(half.text).toContain("100 Continue");
  const closed = server.close({ timeoutMs: 1_000 });
  await reading.closed;
  clock.advance(1_000);
  await Promise.all([closed, half.closed]);
  // The stream ended normally and was not cut.
  expect(reading.text()).toMatch(/\r\n0\r\n\r\n$/);
});
