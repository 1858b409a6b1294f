import { afterEach, describe, expect, it } from "vitest";
import {
  chunk,
  failureOf,
  modelAt,
  neverAborted,
  request,
  stopServers,
  streamed,
  ways,
} from "../support/model-calls.ts";
import { startRawServer } from "../support/raw-server.ts";

afterEach(stopServers);

/** Sends the headers and these events, then nothing more. */
const stallingAfter = (events: string) =>
  startRawServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.flushHeaders();
    if (events !== "") response.write(events);
  });

const silent = () => startRawServer(() => undefined);

describe.each(ways)("over %s", (_way, over) => {
  const at: typeof modelAt = (server, options) => modelAt(server, options, over);

  describe("time limits", () => {
    it("cuts a stream that stalls, counts the received part, and frees the connection", async () => {
      const server = await stallingAfter(chunk({ content: "hello world" }));
      const failure = await failureOf(streamed(at(server, { stallTimeoutMs: 60 })));
      expect(failure).toMatchObject({
        retryable: true,
        mayHaveBeenSent: true,
        partialOutputTokens: 2,
        details: { kind: "stalled" },
      });
      expect(failure.message).toContain("60 ms");
      await expect.poll(() => server.openConnections()).toBe(0);
    });

    it("keeps a slow stream as long as data arrives, including comments", async () => {
      const server = await startRawServer((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        let beats = 0;
        const beat = setInterval(() => {
          beats += 1;
          if (beats < 14) {
            response.write(": still here\n\n");
            return;
          }
          clearInterval(beat);
          response.end(chunk({ content: "done" }, "stop"));
        }, 40);
      });
      const { answer } = await streamed(at(server, { stallTimeoutMs: 400 }));
      expect(answer.content).toBe("done");
    });

    it("cuts a stream that does not begin", async () => {
      const failure = await failureOf(streamed(at(await silent(), { headersTimeoutMs: 300 })));
      expect(failure).toMatchObject({
        retryable: true,
        mayHaveBeenSent: true,
        partialOutputTokens: undefined,
        details: { kind: "timeout" },
      });
      expect(failure.message).toContain("headersTimeoutMs");
    });

    it("allows the first piece of a stream the time of a whole answer, also after headers or comments", async () => {
      for (const early of [undefined, "", ": reading\n\n", chunk({ role: "assistant", content: "" })]) {
        const server = await startRawServer((_request, response) => {
          response.setHeader("content-type", "text/event-stream");
          if (early !== undefined) response.flushHeaders();
          if (early) response.write(early);
          setTimeout(() => response.end(chunk({ content: "late" }, "stop")), 150);
        });
        const { answer } = await streamed(at(server, { stallTimeoutMs: 50 }));
        expect(answer.content).toBe("late");
        const failure = await failureOf(streamed(at(server, { headersTimeoutMs: 50 })));
        expect(failure).toMatchObject({ retryable: true, details: { kind: "timeout" } });
        expect(failure.message).toContain("headersTimeoutMs");
      }
    });

    it("allows a whole answer more time to begin than a stream, up to the timeout of the call", async () => {
      const server = await startRawServer((_request, response) => {
        setTimeout(() => {
          response.writeHead(200, { "content-type": "application/json" });
          response.end(
            JSON.stringify({
              choices: [{ message: { content: "late" } }],
              usage: { prompt_tokens: 1, completion_tokens: 1 },
            }),
          );
        }, 150);
      });
      const model = at(server, { headersTimeoutMs: 30, stallTimeoutMs: 100 });
      expect((await model.generate(request, { signal: neverAborted })).content).toBe("late");
      const failure = await failureOf(
        at(await silent(), { requestTimeoutMs: 60 }).generate(request, { signal: neverAborted }),
      );
      expect(failure).toMatchObject({ retryable: true, details: { kind: "timeout" } });
      expect(failure.message).toContain("requestTimeoutMs");
    });
  });

  describe("an aborted call", () => {
    it("rejects with the received part, and frees the connection", async () => {
      const server = await stallingAfter(chunk({ content: "hello world" }));
      const controller = new AbortController();
      const reason = new Error("the person left");
      const call = at(server).generate(request, {
        signal: controller.signal,
        onDelta: () => controller.abort(reason),
      });
      const failure = await failureOf(call);
      expect(failure).toMatchObject({
        retryable: false,
        mayHaveBeenSent: true,
        partialOutputTokens: 2,
        details: { kind: "aborted" },
      });
      expect(failure.cause).toBe(reason);
      await expect.poll(() => server.openConnections()).toBe(0);
    });

    it("rejects also after the last piece had arrived", async () => {
      const server = await stallingAfter(chunk({ content: "hello" }, "stop"));
      const controller = new AbortController();
      const call = at(server).generate(request, { signal: controller.signal, onDelta: () => controller.abort() });
      expect(await failureOf(call)).toMatchObject({ retryable: false, details: { kind: "aborted" } });
    });

    it("rejects even if a custom fetch ignores the abort and its stream then ends normally", async () => {
      const controller = new AbortController();
      const deaf = at(await silent(), { fetch: () => new Promise<Response>(() => undefined) });
      const waiting = failureOf(deaf.generate(request, { signal: controller.signal }));
      setImmediate(() => controller.abort());
      expect(await waiting).toMatchObject({ details: { kind: "aborted" } });

      const second = new AbortController();
      const body = chunk({ content: "hi" }, "stop");
      const polite = at(await silent(), {
        fetch: () => {
          second.abort();
          return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
        },
      });
      expect(
        await failureOf(polite.generate(request, { signal: second.signal, onDelta: () => undefined })),
      ).toMatchObject({ details: { kind: "aborted" } });
    });

    it("that was aborted before it began sends nothing", async () => {
      const server = await silent();
      const failure = await failureOf(at(server).generate(request, { signal: AbortSignal.abort() }));
      expect(failure).toMatchObject({ retryable: false, mayHaveBeenSent: false, details: { kind: "aborted" } });
      expect(server.connections()).toBe(0);
    });
  });
});
