import { type AddressInfo, createServer } from "node:net";
import { AzureOpenAI, OpenAI } from "openai";
import { describe, expect, it, vi } from "vitest";
import { openaiModel, type OpenaiModelOptions } from "../../src/model/index.ts";
import { failureOf, neverAborted, request, streamed } from "../support/model-calls.ts";
import { goodAnswer, wireAnswer, type WireServer, wireServer } from "../support/wire-server.ts";

const noKey = () => Promise.reject(new Error("the identity service is away"));
const answering = () => wireServer((socket) => socket.write(goodAnswer));
const call = (client: OpenAI, options: OpenaiModelOptions = {}) =>
  openaiModel("m", { client, ...options }).generate(request, { signal: neverAborted });
const clientAt = (server: WireServer, options: ConstructorParameters<typeof OpenAI>[0] = {}) =>
  new OpenAI({ apiKey: "client-key", baseURL: `http://${server.host}/v1`, ...options });

describe("a client from the user", () => {
  it("sends to its URL, with its query, headers, organization and fetch", async () => {
    const server = await answering();
    const asked: string[] = [];
    const client = clientAt(server, {
      organization: "org-1",
      defaultHeaders: { "x-team": "blue" },
      defaultQuery: { tenant: "7" },
      fetch: (input, init) => {
        asked.push(String(input instanceof Request ? input.url : input));
        return fetch(input, init);
      },
    });
    expect((await call(client)).content).toBe("hello");
    expect((await streamed(openaiModel("m", { client }))).answer.content).toBe("hello");
    expect(asked).toHaveLength(2);
    expect(server.requests[0]?.line).toBe("POST /v1/chat/completions?tenant=7 HTTP/1.1");
    expect(server.requests[0]?.headers).toMatchObject({
      authorization: "Bearer client-key",
      "openai-organization": "org-1",
      "x-team": "blue",
    });
    expect(JSON.parse(server.requests[1]?.body ?? "")).toMatchObject({ model: "m", stream: true });
  });

  it("for Azure calls its deployment, with a fresh token for each call", async () => {
    const server = await answering();
    let tokens = 0;
    const client = new AzureOpenAI({
      endpoint: `http://${server.host}`,
      apiVersion: "2026-10-01",
      azureADTokenProvider: async () => `token-${(tokens += 1)}`,
    });
    const model = openaiModel("gpt-5-mini", { client, provider: "azure" });
    for (let count = 0; count < 2; count += 1) await model.generate(request, { signal: neverAborted });
    const path = "/openai/deployments/gpt-5-mini/chat/completions?api-version=2026-10-01";
    expect(server.requests.map(({ line }) => line)).toEqual([`POST ${path} HTTP/1.1`, `POST ${path} HTTP/1.1`]);
    expect(server.requests.map(({ headers }) => headers["authorization"])).toEqual([
      "Bearer token-1",
      "Bearer token-2",
    ]);
  });

  it("for Azure sends its key in Azure's header", async () => {
    const server = await answering();
    const client = new AzureOpenAI({
      endpoint: `http://${server.host}`,
      apiVersion: "2026-10-01",
      deployment: "mine",
      apiKey: "azure-key",
    });
    await call(client);
    expect(server.requests[0]?.line).toContain("/openai/deployments/mine/chat/completions");
    expect(server.requests[0]?.headers).toMatchObject({ "api-key": "azure-key" });
  });

  it("does not retry a call itself, even with maxRetries", async () => {
    const server = await wireServer((socket) => socket.write(wireAnswer("{}", "x-a: 1", 500)));
    expect(await failureOf(call(clientAt(server, { maxRetries: 5 })))).toMatchObject({ status: 500, retryable: true });
    expect(server.requests).toHaveLength(1);
  });

  it("logs with its own logger, without keys", async () => {
    const server = await answering();
    const lines: string[] = [];
    const log = (...parts: unknown[]) => void lines.push(JSON.stringify(parts));
    const logger = { error: log, warn: log, info: log, debug: log };
    expect((await call(clientAt(server, { logger, logLevel: "debug" }))).content).toBe("hello");
    expect(lines.join("\n")).toContain("succeeded with status 200");
    expect(lines.join("\n")).not.toContain("client-key");
  });

  it("whose key function fails has sent nothing, and the call is retryable", async () => {
    const server = await answering();
    const failure = await failureOf(call(clientAt(server, { apiKey: noKey })));
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: false, details: { kind: "client" } });
    expect(failure.message).toContain("the identity service is away");
    expect(server.requests).toEqual([]);
  });

  it("has its own timeout, after which the call may have been received", async () => {
    const server = await wireServer(() => undefined);
    const failure = await failureOf(call(clientAt(server, { timeout: 200 })));
    expect(failure).toMatchObject({ retryable: true, mayHaveBeenSent: true, details: { kind: "timeout" } });
    expect(failure.message).toContain("200 ms");
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("has sent nothing if its server cannot be reached", async () => {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const { port } = server.address() as AddressInfo;
    await new Promise((closed) => server.close(closed));
    const client = new OpenAI({ apiKey: "k", baseURL: `http://127.0.0.1:${port}/v1` });
    expect(await failureOf(call(client))).toMatchObject({ retryable: true, mayHaveBeenSent: false });
  });

  it("may have sent the request if a call is aborted", async () => {
    const controller = new AbortController();
    const server = await wireServer(() => controller.abort());
    const model = openaiModel("m", { client: clientAt(server) });
    const failure = await failureOf(model.generate(request, { signal: controller.signal }));
    expect(failure).toMatchObject({ mayHaveBeenSent: true, details: { kind: "aborted" } });
    await expect.poll(() => server.openConnections()).toBe(0);
  });

  it("shows no key, including one from a function", async () => {
    const key = "sk-CANARY-0123456789";
    const body = JSON.stringify({ error: { message: `Wrong key: ${key}`, code: key } });
    const server = await wireServer((socket) => socket.write(wireAnswer(body, "content-type: application/json", 401)));
    const failure = await failureOf(call(clientAt(server, { apiKey: async () => key })));
    expect(failure.message + JSON.stringify(failure.details)).not.toContain("CANARY");
  });

  it("with a password in its URL is refused without showing the password", async () => {
    const client = new OpenAI({ apiKey: "k", baseURL: "http://me:secret@127.0.0.1:1/v1" });
    const failure = await failureOf(call(client));
    expect(failure).toMatchObject({ mayHaveBeenSent: false, details: { kind: "configuration" } });
    expect(failure.message).not.toContain("secret");
  });

  it.each([
    [{ apiKey: "k" }, /client and apiKey: set apiKey on the client/],
    [{ baseURL: "http://a.test", headers: {} }, /client and baseURL, headers: set/],
    [{ organization: "o", fetch: globalThis.fetch }, /client and organization, fetch: set/],
  ] as const)("is refused next to options that contradict it: %o", (options, words) => {
    const client = new OpenAI({ apiKey: "k" });
    expect(() => openaiModel("m", { client, ...options })).toThrow(words);
  });

  it.each([{}, "sk-1", OpenAI])("is refused if it is invalid: %s", (client) => {
    expect(() => openaiModel("m", { client: client as unknown as OpenAI })).toThrow(/client.*new OpenAI\(/);
  });
});

it("a client of ours with full logging logs no key, and a logger may write JSON", async () => {
  vi.stubEnv("OPENAI_LOG", "debug");
  const lines: string[] = [];
  for (const level of ["info", "debug"] as const) {
    vi.spyOn(console, level).mockImplementation((...parts) => void lines.push(JSON.stringify(parts)));
  }
  const server = await answering();
  const model = openaiModel("m", { apiKey: "own-secret-key", baseURL: `http://${server.host}/v1` });
  expect((await model.generate(request, { signal: neverAborted })).content).toBe("hello");
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  expect(lines.join("\n")).toContain("succeeded with status 200");
  expect(lines.join("\n")).not.toContain("own-secret-key");
});
