import { serveRuntime, tokenAuth } from "troupe/server";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { from, requestOf, routeAt, runtimeOf, serve, surfaceOf, tokens } from "./served.ts";

it("answers probes, and counts its answers", async () => {
  const { ask, server } = serve(await runtimeOf());
  expect(await (await ask("/healthz")).json()).toEqual({ status: "ok" });
  expect((await ask("/readyz")).status).toBe(200);
  const metrics = await (await server.fetch(requestOf("/metrics"), from("127.0.0.1"))).text();
  expect(metrics).toContain('troupe_http_requests_total{route="GET server /healthz",status="200"} 1');
  expect(metrics).toContain('troupe_live_agents{tenant="default"} 0');
});

describe("/metrics", () => {
  const near = from("::ffff:127.0.0.1");
  const tenantLabel = 'troupe_live_agents{tenant="default"} 0';

  it("is only for clients on this machine that came through no proxy", async () => {
    const { server } = serve(await runtimeOf());
    const status = async (env: unknown, headers = {}) =>
      (await server.fetch(requestOf("/metrics", { headers }), env)).status;
    expect(await status(near)).toBe(200);
    for (const [env, headers] of [
      [from("10.0.0.7"), {}],
      [undefined, {}],
      [near, { "x-forwarded-for": "10.0.0.7" }],
      [near, { forwarded: "for=10.0.0.7" }],
      [near, { host: "api.example.com" }],
    ] as const) {
      expect([env, headers, await status(env, headers)]).toEqual([env, headers, 403]);
    }
  });

  it("that is open shows no names of tenants", async () => {
    const runtimes = { one: await runtimeOf({ tenant: "one" }), two: await runtimeOf({ tenant: "two" }) };
    const { server } = serve(runtimes, { metrics: "open" });
    const text = await (await server.fetch(requestOf("/metrics"), from("10.0.0.7"))).text();
    expect(text).toMatch(/^troupe_live_agents 0$/m);
    expect(text).not.toContain("tenant");
  });

  it("requires a scope if one is configured, and a token with it", async () => {
    const authenticate = tokenAuth({
      tokens: {
        [tokens.ann]: { userId: "ann", scopes: [] },
        [tokens.bob]: { userId: "bob", scopes: ["metrics.read"] },
      },
    });
    const { ask, server } = serve(await runtimeOf(), { metrics: { scope: "metrics.read" }, authenticate });
    expect((await ask("/metrics")).status).toBe(403);
    expect(await (await ask("/metrics", { as: "bob" })).text()).toContain(tenantLabel);
    expect((await server.fetch(new Request("http://127.0.0.1/metrics"), near)).status).toBe(401);
  });

  it("that is off has no route", async () => {
    const { server } = serve(await runtimeOf(), { metrics: "off" });
    expect((await server.fetch(requestOf("/metrics"), near)).status).toBe(404);
    expect(() => serveRuntime({} as never, { authenticate: () => null, metrics: "all" as never })).toThrow(
      'metrics is the text "all"; expected "local", "open", "off" or { scope }',
    );
  });
});

it("passes the values parsed by its schemas to a handler", async () => {
  const echo = routeAt(
    "echo/{id}",
    ({ params, query, body, identity }) => Response.json({ params, query, body, user: identity.userId }),
    {
      method: "POST",
      params: z.object({ id: z.string() }),
      query: z.object({ limit: z.coerce.number().optional() }),
      body: z.object({ text: z.string() }),
    },
  );
  const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
  const response = await ask("/test/echo/a%2Fb?limit=3", { method: "POST", body: { text: "hi" } });
  expect(await response.json()).toEqual({
    params: { id: "a/b" },
    query: { limit: 3 },
    body: { text: "hi" },
    user: "ann",
  });
  const refused = await ask("/test/echo/a", { method: "POST", body: { text: 3 } });
  expect([refused.status, await refused.json()]).toEqual([
    400,
    { code: "invalid_request", message: expect.stringMatching(/^body\.text: /) },
  ]);
});
