import { afterEach, describe, expect, it, vi } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import type { ScriptedReply } from "../../src/testing/index.ts";
import { failureOf, neverAborted, request, streamed, userMessage } from "../support/model-calls.ts";
import { type ModelServer, type ServerReply, startModelServer } from "../support/model-server.ts";

let server: ModelServer | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  server = undefined;
});

async function modelReplying(reply: ServerReply, options: OpenaiModelOptions = {}) {
  server = await startModelServer(() => reply);
  return openaiModel("gpt-5-mini", { apiKey: "key", baseURL: server.baseURL, ...options });
}

const notSent = { retryable: false, mayHaveBeenSent: false, details: { kind: "configuration" } };
const reply: ScriptedReply = {
  text: "Hello there",
  reasoning: "They greet.",
  toolCalls: [
    { name: "search", arguments: { q: "x" }, id: "a" },
    { name: "read", id: "b" },
  ],
  usage: { inputTokens: 20, outputTokens: 9, cachedInputTokens: 16, reasoningTokens: 4 },
};
const expected = {
  content: "Hello there",
  reasoning: { reasoning_content: "They greet." },
  toolCalls: [
    { id: "a", name: "search", arguments: '{"q":"x"}' },
    { id: "b", name: "read", arguments: "{}" },
  ],
  usage: reply.usage,
  finishReason: "tool_calls",
  model: "gpt-5-mini",
};

describe("openaiModel", () => {
  it("returns the same answer whole and streamed", async () => {
    const model = await modelReplying({ ...reply, deltas: ["Hello", " there"] });
    const server = expect.stringMatching(/^127\.0\.0\.1:\d+\/v1$/) as string;
    const whole = { ...expected, adapter: { provider: "openai", model: "gpt-5-mini", server } };
    expect(await model.generate(request, { signal: neverAborted })).toEqual(whole);
    const { answer, deltas } = await streamed(model);
    expect(answer).toEqual(whole);
    expect(deltas).toEqual([
      { type: "reasoning", text: "They greet." },
      { type: "text", text: "Hello there" },
      { type: "tool-call", index: 0, id: "a", name: "search" },
      { type: "tool-arguments", index: 0, text: '{"q":"x"}' },
      { type: "tool-call", index: 1, id: "b", name: "read" },
      { type: "tool-arguments", index: 1, text: "{}" },
    ]);
  });

  it("requests a stream, with usage, only if there is a listener", async () => {
    const model = await modelReplying({ text: "x" });
    await model.generate(request, { signal: neverAborted });
    await streamed(model);
    const [whole, stream] = server?.requests ?? [];
    expect(whole?.body).toEqual({ model: "gpt-5-mini", messages: [{ role: "user", content: "Say hello" }] });
    expect(stream?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it("reads key and base URL from the environment, at first use", async () => {
    const model = openaiModel("gpt-5-mini");
    await modelReplying({ text: "hi" });
    vi.stubEnv("OPENAI_API_KEY", "from-env");
    vi.stubEnv("OPENAI_BASE_URL", server?.baseURL ?? "");
    expect((await model.generate(request, { signal: neverAborted })).content).toBe("hi");
    expect(server?.requests[0]?.headers.authorization).toBe("Bearer from-env");
  });

  it("names the missing key and how to set it, and works once it is set", async () => {
    const { baseURL } = await startedServer();
    const model = openaiModel("gpt-5-mini", { baseURL });
    const failure = await failureOf(model.generate(request, { signal: neverAborted }));
    expect(failure).toMatchObject(notSent);
    expect(failure.message).toMatch(/not sent.*OPENAI_API_KEY/);
    vi.stubEnv("OPENAI_API_KEY", "late");
    expect((await model.generate(request, { signal: neverAborted })).content).toBe("ok");
  });

  it("sends the given headers, organization and extra fields", async () => {
    const model = await modelReplying(
      { text: "x" },
      { headers: { "x-team": "blue" }, organization: "org-1", extraBody: { top_k: 5, temperature: 0 } },
    );
    await model.generate({ ...request, temperature: 1 }, { signal: neverAborted });
    expect(server?.requests[0]?.headers).toMatchObject({ "x-team": "blue", "openai-organization": "org-1" });
    expect(server?.requests[0]?.body).toMatchObject({ top_k: 5, temperature: 0 });
  });

  it("uses one connection for consecutive calls, and never retries itself", async () => {
    const model = await modelReplying({ text: "x" });
    for (let call = 0; call < 5; call += 1) await model.generate(request, { signal: neverAborted });
    expect(server?.connections()).toBe(1);
    await server?.stop();
    const failing = await modelReplying({ status: 500 });
    await expect(failing.generate(request, { signal: neverAborted })).rejects.toThrow("500");
    expect(server?.requests).toHaveLength(1);
  });

  it("leaves no listener on a signal that outlives the call", async () => {
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, "addEventListener");
    const removed = vi.spyOn(signal, "removeEventListener");
    await (await modelReplying({ text: "x" })).generate(request, { signal });
    expect(added).toHaveBeenCalledOnce();
    expect(removed.mock.calls.map(([type, listener]) => [type, listener])).toEqual(
      added.mock.calls.map(([type, listener]) => [type, listener]),
    );
  });

  it("counts a prompt with a tokenizer, and bounds it immediately by its bytes", async () => {
    const long = { messages: [userMessage("hello world ".repeat(100))] };
    expect(openaiModel("m").boundPromptTokens?.(long)).toBeGreaterThan(1_200);
    const tokens = await openaiModel("m").countPromptTokens(long);
    expect(tokens).toBeGreaterThan(200);
    expect(tokens).toBeLessThan(260);
  });

  it("has the provider OpenAI unless another is given", () => {
    expect(openaiModel("m").provider).toBe("openai");
    expect(openaiModel("m", { provider: "groq" }).provider).toBe("groq");
    expect(() => openaiModel("m", { provider: "" })).toThrow("provider");
  });

  it.each([
    { stallTimeoutMs: 0 },
    { headersTimeoutMs: Number.NaN },
    { requestTimeoutMs: 2 ** 31 },
    { contextWindow: -1 },
    { imageTokens: 1.5 },
    { fileTokens: 0 },
    { structuredOutput: "yaml" as never },
    { structuredOutput: ["tool"] as never },
    { structuredOutput: { type: "tool" } as never },
  ])("refuses %o and names the field", (options) => {
    const [field = ""] = Object.keys(options);
    expect(() => openaiModel("m", options)).toThrow(InvalidInputError);
    expect(() => openaiModel("m", options)).toThrow(field);
  });

  it("refuses a model without a name, and an invalid base URL", async () => {
    expect(() => openaiModel(" ")).toThrow(InvalidInputError);
    for (const baseURL of ["localhost:1234", "http://", "https://bad host/v1", "http://127.0.0.1:99999/v1"]) {
      const model = openaiModel("m", { apiKey: "k", baseURL });
      const failure = await failureOf(model.generate(request, { signal: neverAborted }));
      expect(failure).toMatchObject(notSent);
      expect(failure.message).toMatch(/not sent.*expected an http or https URL/);
      expect(failure.message).toContain(baseURL);
    }
  });

  it.each<OpenaiModelOptions>([
    { apiKey: "schlüssel-\u{1f511}" },
    { apiKey: "secret\nkey" },
    { apiKey: "k", headers: { "x y": "secret" } },
    { apiKey: "k", headers: { "x-team": "secret\u2028" } },
    { apiKey: "k", organization: "secret\nx" },
  ])("sends nothing with a key or a header that no request can contain, and does not show it: %j", async (options) => {
    const { baseURL, requests } = await startedServer();
    for (const fetch of [undefined, globalThis.fetch]) {
      const model = openaiModel("m", { baseURL, fetch, ...options });
      const failure = await failureOf(model.generate(request, { signal: neverAborted }));
      expect(failure).toMatchObject(notSent);
      expect(failure.message).not.toMatch(/secret|schl/);
    }
    expect(requests).toEqual([]);
  });
});

async function startedServer(): Promise<ModelServer> {
  server = await startModelServer(() => "ok");
  return server;
}
