import { type OpenAI, AuthenticationError, NotFoundError, RateLimitError } from "openai";
import { createRuntime, defineAgent } from "troupe";
import { openaiSurface, type OpenAiSurfaceOptions } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { expect, onTestFinished, test } from "vitest";
import { serve, type Served } from "../served.ts";
import { clientOf } from "./official-client.ts";

async function served(options: OpenAiSurfaceOptions = {}, limits = {}, cors: readonly string[] = []): Promise<Served> {
  const agents = ["desk", "lead.v2"].map((name) => defineAgent({ name, model: scriptedModel("done") }));
  const runtime = await createRuntime({ agents });
  onTestFinished(() => runtime.shutdown());
  return serve(runtime, { surfaces: [openaiSurface(options)], limits, cors });
}

test("the official client lists the agents as models, and finds each", async () => {
  const { server } = await served();
  const client = clientOf(server);
  const found: OpenAI.Model[] = [];
  for await (const model of client.models.list()) found.push(model);
  expect(found).toEqual(["desk", "lead.v2"].map((id) => ({ id, object: "model", created: 0, owned_by: "troupe" })));
  expect(await client.models.retrieve("lead.v2")).toMatchObject({ id: "lead.v2" });
});

test("only the named definitions are models, also at another path", async () => {
  const { server } = await served({ agents: ["desk"], path: "/llm/v1" });
  const client = clientOf(server, { path: "/llm/v1" });
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(["desk"]);
  await expect(client.models.retrieve("lead.v2")).rejects.toBeInstanceOf(NotFoundError);
});

test("errors have the protocol's format, and the client recognizes them", async () => {
  const { server, ask } = await served({}, { requestsPerMinute: 3 });
  const unknown = await clientOf(server)
    .models.retrieve("gpt-5")
    .catch((error: unknown) => error);
  expect(unknown).toBeInstanceOf(NotFoundError);
  expect(unknown).toMatchObject({
    status: 404,
    code: "model_not_found",
    param: "model",
    type: "invalid_request_error",
    requestID: expect.any(String),
  });
  const nobody = await clientOf(server, { token: "a-token-of-nobody-1" })
    .models.list()
    .catch((error: unknown) => error);
  expect(nobody).toBeInstanceOf(AuthenticationError);
  expect(nobody).toMatchObject({ status: 401, code: "invalid_api_key", type: "invalid_request_error" });
  const route = await ask("/v1/nothing");
  expect([route.status, await route.json()]).toEqual([404, { error: expect.objectContaining({ code: "not_found" }) }]);
  const method = await ask("/v1/models", { method: "DELETE" });
  expect([method.status, await method.json()]).toMatchObject([405, { error: { code: "method_not_allowed" } }]);
  await ask("/v1/models");
  await ask("/v1/models");
  const often = await clientOf(server)
    .models.list()
    .catch((error: unknown) => error);
  expect(often).toBeInstanceOf(RateLimitError);
  expect(often).toMatchObject({ code: "rate_limit_exceeded", type: "requests" });
  expect(Number((often as RateLimitError).headers?.get("retry-after"))).toBeGreaterThan(0);
});

test("pages of an allowed origin may send the official client's headers and the names of conversations", async () => {
  const { server } = await served({ chatIdHeaders: ["X-Chat"] }, {}, ["https://app.example.com"]);
  const { headers, status } = await server.fetch(
    new Request("http://127.0.0.1/v1/chat/completions", {
      method: "OPTIONS",
      headers: { origin: "https://app.example.com", "access-control-request-method": "POST" },
    }),
  );
  expect(status).toBe(204);
  const allowed = (headers.get("access-control-allow-headers") ?? "").split(", ");
  expect(allowed).toEqual(
    expect.arrayContaining(["authorization", "x-troupe-conversation", "x-chat", "x-stainless-retry-count"]),
  );
});

test("invalid options are refused", () => {
  expect(() => openaiSurface({ path: "/v1/" })).toThrow('a path like "/v1"');
  expect(() => openaiSurface({ chatIdHeaders: ["x y"] })).toThrow("a header name");
  expect(() => openaiSurface({ models: ["desk"] } as never)).toThrow("agents");
});
