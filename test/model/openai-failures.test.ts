import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { openaiModel } from "../../src/model/index.ts";
import {
  chunk,
  done,
  event,
  failureOf,
  modelAt,
  modelSending,
  neverAborted,
  request,
  stopServers,
  streamed,
  usageChunk,
  ways,
} from "../support/model-calls.ts";
import { startRawServer } from "../support/raw-server.ts";

afterEach(stopServers);

const errorBody = (fields: object): string => JSON.stringify({ error: { message: "No.", ...fields } });

/** A server that sends these events and then does what `end` does. */
async function streaming(events: string, end: (response: { destroy(): unknown; end(): unknown }) => void) {
  return startRawServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(events, () => end(response));
  });
}

describe.each(ways)("over %s", (_way, over) => {
  const at: typeof modelAt = (server, options) => modelAt(server, options, over);
  const sending: typeof modelSending = (body, options) => modelSending(body, options, { over });

  /** The connection breaks after these events. */
  const streamingTo = async (events: string) => at(await streaming(events, (response) => response.destroy()));

  async function answering(status: number, body: string, headers: Record<string, string> = {}) {
    const server = await startRawServer((_request, response) => {
      response.writeHead(status, { "content-type": "application/json", ...headers });
      response.end(body);
    });
    return failureOf(at(server).generate(request, { signal: neverAborted }));
  }

  describe("statuses", () => {
    it.each([408, 409, 429, 500, 502, 503, 529])("%i is retryable", async (status) => {
      expect(await answering(status, errorBody({}))).toMatchObject({ retryable: true, status, mayHaveBeenSent: true });
    });

    it.each([400, 401, 403, 404, 422])("%i is not", async (status) => {
      expect(await answering(status, errorBody({}))).toMatchObject({ retryable: false, status });
    });

    it("reports how long the server asked to wait", async () => {
      expect((await answering(429, "{}", { "retry-after": "7" })).retryAfterMs).toBe(7_000);
      expect((await answering(429, "{}", { "retry-after-ms": "1500", "retry-after": "7" })).retryAfterMs).toBe(1_500);
      const date = new Date(Date.now() + 60_000).toUTCString();
      const wait = (await answering(503, "{}", { "retry-after": date })).retryAfterMs;
      expect(wait).toBeGreaterThan(50_000);
      expect(wait).toBeLessThanOrEqual(60_000);
      expect((await answering(429, "{}")).retryAfterMs).toBeUndefined();
    });

    it("recognizes a prompt that is too long", async () => {
      for (const fields of [
        { code: "context_length_exceeded" },
        { message: "prompt is too long: 210000 tokens > 200000 maximum" },
      ]) {
        expect(await answering(400, errorBody(fields))).toMatchObject({
          retryable: false,
          details: { kind: "context_length" },
        });
      }
    });

    it("is not retryable if the account is out of funds", async () => {
      const failure = await answering(429, errorBody({ code: "insufficient_quota", type: "insufficient_quota" }));
      expect(failure).toMatchObject({ retryable: false, details: { kind: "insufficient_quota" } });
    });

    it("follows the server's header on whether to retry", async () => {
      expect((await answering(500, "{}", { "x-should-retry": "false" })).retryable).toBe(false);
      expect((await answering(400, "{}", { "x-should-retry": "true" })).retryable).toBe(true);
    });

    it("contains the server's message and request id, never the key", async () => {
      const failure = await answering(401, errorBody({ message: "Incorrect API key provided: secret-key" }), {
        "x-request-id": "req-9",
      });
      expect(failure.message).toContain("401: Incorrect API key provided: ***");
      expect(failure.details["requestId"]).toBe("req-9");
      expect((await answering(502, "<html>bad gateway</html>")).message).toContain("bad gateway");
    });
  });

  describe("broken answers", () => {
    it("malformed JSON is retryable, streamed or not", async () => {
      const whole = await sending('{"choices": [');
      expect(await failureOf(whole.generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: true,
        partialOutputTokens: undefined,
        details: { kind: "malformed" },
      });
      const stream = await sending(`${chunk({ content: "hello world" })}data: {"choices": [\n\n`);
      expect(await failureOf(streamed(stream))).toMatchObject({
        retryable: true,
        partialOutputTokens: 2,
        details: { kind: "malformed" },
      });
    });

    it("a stream that ends without a finish reason is a failure, unless its last event follows text only", async () => {
      const answered = await streamed(await sending(chunk({ content: "hello world" }) + done));
      expect(answered.answer).toMatchObject({ content: "hello world", finishReason: "unknown" });
      const call = { index: 0, id: "a", function: { name: "f", arguments: "" } };
      const begun = chunk({ content: "hello world" });
      for (const body of [begun, begun + chunk({ tool_calls: [call] }) + done]) {
        const failure = await failureOf(streamed(await sending(body)));
        expect(failure).toMatchObject({
          retryable: true,
          mayHaveBeenSent: true,
          details: { kind: "incomplete" },
        });
        expect(failure.partialOutputTokens).toBeGreaterThanOrEqual(2);
      }
      expect(await failureOf(streamed(await sending(chunk({ content: "" }) + done)))).toMatchObject({
        details: { kind: "incomplete" },
      });
    });

    it("a cut connection is retryable", async () => {
      const cutStream = await streaming(chunk({ content: "hello world" }), (response) => response.destroy());
      expect(await failureOf(streamed(at(cutStream)))).toMatchObject({
        retryable: true,
        mayHaveBeenSent: true,
        partialOutputTokens: 2,
        details: { kind: "connection" },
      });
      const cutWhole = await startRawServer((_request, response) => {
        response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
        response.write('{"choices"', () => response.destroy());
      });
      expect(await failureOf(at(cutWhole).generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: true,
        partialOutputTokens: undefined,
        details: { kind: "connection" },
      });
      const cutBefore = await startRawServer((_request, response) => void response.destroy());
      expect(await failureOf(streamed(at(cutBefore)))).toMatchObject({
        retryable: true,
        mayHaveBeenSent: true,
        partialOutputTokens: undefined,
      });
    });

    it("the built-in fetch gives the same results as our own", async () => {
      const cut = await streaming(chunk({ content: "hello world" }), (response) => response.destroy());
      const failure = await failureOf(streamed(at(cut, { fetch: globalThis.fetch })));
      expect(failure).toMatchObject({ retryable: true, partialOutputTokens: 2, details: { kind: "connection" } });
      const good = await sending(chunk({ content: "grüße" }, "stop") + usageChunk + done, {
        fetch: globalThis.fetch,
      });
      expect((await streamed(good)).answer).toMatchObject({ content: "grüße", usage: { outputTokens: 3 } });
    });

    it("is not paid twice if only the end after the finish reason is missing", async () => {
      const server = await streaming(chunk({ content: "hello world" }, "stop"), (response) => response.destroy());
      const { answer } = await streamed(at(server));
      expect(answer).toMatchObject({ content: "hello world", usage: { outputTokens: 2, estimated: true } });
    });

    it("does not wait for a server that never closes a finished stream", async () => {
      const server = await streaming(chunk({ content: "hi" }, "stop") + usageChunk + done, () => undefined);
      const start = performance.now();
      const { answer } = await streamed(at(server, { stallTimeoutMs: 30_000 }));
      expect(answer).toMatchObject({ content: "hi", usage: { inputTokens: 7 } });
      expect(performance.now() - start).toBeLessThan(20_000);
      await expect.poll(() => server.openConnections()).toBe(0);
    });
  });

  describe("content that the provider refuses", () => {
    it.each([
      ["Azure", 400, { code: "content_filter", message: "The response was filtered." }],
      ["OpenAI", 400, { code: "content_policy_violation", message: "Your request was rejected." }],
      [
        "OpenAI's reasoning models",
        400,
        { code: "invalid_prompt", message: "It was flagged as potentially violating our usage policy." },
      ],
      ["Anthropic", 400, { type: "invalid_request_error", message: "Output blocked by content filtering policy" }],
      ["DeepSeek", 400, { message: "Content Exists Risk" }],
      ["DashScope", 400, { code: "data_inspection_failed", message: "Input data may contain inappropriate content." }],
      ["xAI", 403, { message: "Content violates usage guidelines." }],
    ])("is a refusal, in the words of %s", async (_provider, status, fields) => {
      const failure = await answering(status, errorBody(fields));
      expect(failure).toMatchObject({ retryable: false, status, details: { kind: "refusal" } });
    });

    it("is no refusal if the server merely fails or is asked too often", async () => {
      const words = { message: "The content filter is not available." };
      expect((await answering(503, errorBody(words))).details["kind"]).toBe("http");
      expect((await answering(429, errorBody(words))).details["kind"]).toBe("http");
    });
  });

  describe("finish reasons", () => {
    const parts = { content: "The first of three po" };
    const wholeAnswer = (finish_reason: string | null, message: object = parts): string =>
      JSON.stringify({ choices: [{ message, finish_reason }] });

    it.each([
      ["stop", "stop"],
      ["end_turn", "stop"],
      ["eos", "stop"],
      ["STOP", "stop"],
      ["length", "length"],
      ["MAX_TOKENS", "length"],
      ["content_filter", "content_filter"],
      ["sensitive", "content_filter"],
      ["tool-calls", "stop"],
      ["content-filter", "content_filter"],
    ])("%s ends an answer", async (reason, finishReason) => {
      const model = await sending(wholeAnswer(reason));
      expect(await model.generate(request, { signal: neverAborted })).toMatchObject({ ...parts, finishReason });
      expect((await streamed(await sending(chunk(parts, reason) + done))).answer).toMatchObject({ finishReason });
    });

    it.each([
      "error",
      "insufficient_system_resource",
      "abort",
      "load",
      "MALFORMED_FUNCTION_CALL",
      "network_error",
      "an unknown reason",
    ])("%s breaks an answer off: the received part is counted, and a retry may help", async (reason) => {
      const calls = { tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] };
      for (const message of [parts, calls, { content: "" }]) {
        for (const failure of [
          await failureOf((await sending(wholeAnswer(reason, message))).generate(request, { signal: neverAborted })),
          await failureOf(streamed(await sending(chunk(message, reason) + done))),
          await failureOf(streamed(await streamingTo(chunk(message, reason)))),
        ]) {
          expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true });
          expect(failure.partialInputTokens).toBeGreaterThan(0);
          expect(failure.partialOutputTokens).toBe(message === parts ? 5 : message === calls ? 2 : 0);
        }
      }
    });

    it("one for a full window counts as a prompt that is too long", async () => {
      const model = await sending(wholeAnswer("model_context_window_exceeded"));
      expect(await failureOf(model.generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: false,
        partialOutputTokens: 5,
        details: { kind: "context_length" },
      });
    });

    it("a whole answer with text needs none, and an empty answer is none", async () => {
      expect((await (await sending(wholeAnswer(null))).generate(request, { signal: neverAborted })).content).toBe(
        parts.content,
      );
      for (const message of [{ content: "" }, { content: null, reasoning_content: "Hm" }]) {
        const failure = failureOf(
          (await sending(wholeAnswer(null, message))).generate(request, { signal: neverAborted }),
        );
        expect(await failure).toMatchObject({ retryable: true, details: { kind: "incomplete" } });
      }
    });
  });

  describe("errors inside a successful answer", () => {
    it("an error object with status 200 is a failure", async () => {
      const model = await sending(JSON.stringify({ error: { message: "Upstream is down", code: 502 } }));
      expect(await failureOf(model.generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: true,
        status: 502,
        mayHaveBeenSent: true,
        message: expect.stringContaining("Upstream is down") as string,
      });
    });

    it("an error chunk in a stream is a failure, and the received part is counted", async () => {
      for (const broken of [
        event({ error: { message: "overloaded", type: "server_error" } }),
        `event: error\n${event({ message: "overloaded" })}`,
      ]) {
        const failure = await failureOf(streamed(await sending(chunk({ content: "hello world" }) + broken)));
        expect(failure).toMatchObject({
          retryable: true,
          partialOutputTokens: 2,
          details: { kind: "error_in_answer" },
        });
      }
    });

    it("a permanent error is not retryable", async () => {
      const invalid = await sending(JSON.stringify({ error: { message: "no", type: "invalid_request_error" } }));
      expect((await failureOf(invalid.generate(request, { signal: neverAborted }))).retryable).toBe(false);
      const tooLong = await sending(event({ error: { message: "maximum context length is 4096 tokens", code: 400 } }));
      expect(await failureOf(streamed(tooLong))).toMatchObject({
        retryable: false,
        details: { kind: "context_length" },
      });
    });

    it("an answer without choices is a failure", async () => {
      const model = await sending(JSON.stringify({ id: "c1", choices: [] }));
      expect(await failureOf(model.generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: true,
        details: { kind: "incomplete" },
      });
    });
  });

  describe("a request that was never sent", () => {
    it("a refused connection certainly cost nothing", async () => {
      const listener = createServer();
      await new Promise<void>((resolve) => {
        listener.listen(0, "127.0.0.1", resolve);
      });
      const { port } = listener.address() as AddressInfo;
      await new Promise((resolve) => {
        listener.close(resolve);
      });
      for (const fetch of [undefined, globalThis.fetch]) {
        const model = openaiModel("m", { apiKey: "k", baseURL: `http://127.0.0.1:${port}/v1`, fetch });
        const failure = await failureOf(model.generate(request, { signal: neverAborted }));
        expect(failure).toMatchObject({
          retryable: true,
          mayHaveBeenSent: false,
          details: { kind: "connection", errno: "ECONNREFUSED" },
        });
        expect(failure.message).toMatch(/not sent.*baseURL/);
      }
    });

    it("a server without TLS is not retried", async () => {
      const server = await startRawServer(() => undefined);
      const model = at(server, { baseURL: server.origin.replace("http:", "https:") });
      expect(await failureOf(model.generate(request, { signal: neverAborted }))).toMatchObject({
        retryable: false,
        mayHaveBeenSent: false,
      });
    });
  });
});
