import { createRuntime, NotFoundError } from "troupe";
import { openAuth, ServerError, tokenAuth } from "troupe/server";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { from, identities, requestOf, routeAt, runtimeOf, serve, surfaceOf, tokens } from "./served.ts";

const who = routeAt("who", ({ identity, caller }) => Response.json({ user: identity.userId, tenant: caller.tenant }));
const surfaces = [surfaceOf(who)];

async function answered(response: Response): Promise<unknown[]> {
  return [response.status, await response.json()];
}

describe("a caller", () => {
  it.each<[string, Record<string, string>, string]>([
    ["no token", {}, "Bearer"],
    ["an unknown token", { authorization: "Bearer token-of-ann-000002" }, 'Bearer error="invalid_token"'],
    ["part of a token", { authorization: "Bearer token-of-ann-00000" }, 'Bearer error="invalid_token"'],
    ["another scheme", { authorization: `Basic ${tokens.ann}` }, 'Bearer error="invalid_token"'],
  ])("with %s is not authenticated", async (_, headers, challenge) => {
    const { server } = serve(await runtimeOf(), { surfaces });
    const response = await server.fetch(new Request("http://127.0.0.1/test/who", { headers }));
    expect(response.headers.get("www-authenticate")).toBe(challenge);
    expect(await answered(response)).toEqual([401, { code: "unauthenticated", message: "Authentication required" }]);
  });

  it.each([null, "", " ", undefined, 7])("with the user id %j is not authenticated", async (userId) => {
    const authenticate = () => ({ userId, scopes: [] }) as never;
    const { ask } = serve(await runtimeOf(), { surfaces, authenticate });
    expect((await ask("/test/who")).status).toBe(401);
  });

  it("gets the runtime of its tenant and no other", async () => {
    const [one, two] = [await runtimeOf({ tenant: "one" }), await runtimeOf({ tenant: "two" })];
    const authenticate = tokenAuth({
      tokens: {
        [tokens.ann]: { userId: "ann", tenant: "one", scopes: [] },
        [tokens.bob]: { userId: "bob", tenant: "two", scopes: [] },
        [tokens.eve]: { userId: "eve", tenant: "__proto__", scopes: [] },
      },
    });
    const { ask } = serve({ one, two }, { surfaces, authenticate });
    expect(await answered(await ask("/test/who"))).toEqual([200, { user: "ann", tenant: "one" }]);
    expect(await answered(await ask("/test/who", { as: "bob" }))).toEqual([200, { user: "bob", tenant: "two" }]);
    expect((await ask("/test/who", { as: "eve" })).status).toBe(401);
  });

  it("of a tenant without a runtime is answered like an unknown token, and the log contains the reason", async () => {
    const { ask, server, lines } = serve(await runtimeOf(), { surfaces });
    const refused = await ask("/test/who", { as: "eve", headers: { "x-request-id": "1" } });
    const headers = { authorization: "Bearer token-of-eve-000002", "x-request-id": "1" };
    const unknown = await server.fetch(new Request("http://127.0.0.1/test/who", { headers }));
    expect([...refused.headers]).toEqual([...unknown.headers]);
    expect(await answered(refused)).toEqual(await answered(unknown));
    expect(lines[0]).toMatchObject({
      status: 401,
      tenant: "elsewhere",
      error: 'no runtime serves the tenant "elsewhere"',
    });
    const { ask: askOther } = serve(await runtimeOf(), { surfaces, tenant: "elsewhere" });
    expect((await askOther("/test/who", { as: "eve" })).status).toBe(200);
  });

  it("that cannot be verified now is answered 503", async () => {
    const away = new ServerError("unavailable", "later", { headers: { "retry-after": "30" } });
    const { ask } = serve(await runtimeOf(), { surfaces, authenticate: () => Promise.reject(away) });
    const response = await ask("/test/who");
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "30"]);
  });

  it("has a limit of requests per minute, and is told when it may retry", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces, limits: { requestsPerMinute: 3 } });
    const statuses = await Promise.all([1, 2, 3, 4].map(async () => (await ask("/test/who")).status));
    expect(statuses.filter((status) => status === 429)).toHaveLength(1);
    const refused = await ask("/test/who");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ask("/test/who", { as: "bob" })).status).toBe(200);
  });
});

it("tokens have a minimum length, and no message contains one", () => {
  expect(() => tokenAuth({ tokens: { "short-secret": { userId: "ann", scopes: [] } } })).toThrow(
    /^tokenAuth\(\): token 1 is shorter than 16 characters$/,
  );
  expect(() => tokenAuth({ tokens: { "a-secret-of-somebody": { userId: 7, scopes: [] } as never } })).toThrow(
    /^tokenAuth\(\): identity 1\.userId is 7; expected a non-empty text$/,
  );
});

describe("a browser", () => {
  const app = "https://app.example.com";

  it("may call from an allowed page, and from the server's own", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces, cors: [app] });
    const shared = await ask("/test/who", { headers: { origin: app } });
    expect([shared.status, shared.headers.get("access-control-allow-origin")]).toEqual([200, app]);
    expect(shared.headers.get("access-control-allow-credentials")).toBeNull();
    const own = await ask("/test/who", { headers: { origin: "http://127.0.0.1" } });
    expect([own.status, own.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  });

  it("may not call from other pages", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces, cors: [app] });
    for (const origin of ["https://evil.example.com", "null", `${app}.evil.com`, "http://app.example.com"]) {
      const response = await ask("/test/who", { headers: { origin } });
      expect([origin, response.status, response.headers.get("access-control-allow-origin")]).toEqual([
        origin,
        403,
        null,
      ]);
    }
  });

  it("is answered with its permissions on a preflight request", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces, cors: [app] });
    const headers = { origin: app, "access-control-request-method": "POST" };
    const allowed = await ask("/test/who", { method: "OPTIONS", headers });
    expect([allowed.status, allowed.headers.get("access-control-allow-origin")]).toEqual([204, app]);
    expect(allowed.headers.get("access-control-allow-headers")).toContain("idempotency-key");
    const refused = await ask("/test/who", { method: "OPTIONS", headers: { ...headers, origin: "https://evil.com" } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([403, null]);
  });

  it("may send and read the surface's own headers", async () => {
    const own = surfaces.map((surface) => ({ ...surface, headers: ["x-wire-version"] }));
    const { ask } = serve(await runtimeOf(), { surfaces: own, cors: [app] });
    const headers = { origin: app, "access-control-request-method": "POST" };
    const allowed = await ask("/test/who", { method: "OPTIONS", headers });
    for (const name of ["access-control-allow-headers", "access-control-expose-headers"]) {
      expect(allowed.headers.get(name)?.split(", ")).toContain("x-wire-version");
    }
  });

  it("gets no CORS headers if no page is allowed", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces });
    const preflight = await ask("/test/who", {
      method: "OPTIONS",
      headers: { "access-control-request-method": "POST" },
    });
    expect(preflight.status).toBe(405);
    const names = [...(await ask("/test/who")).headers.keys()];
    expect(names.filter((name) => name.startsWith("access-control") || name === "vary")).toEqual([]);
  });
});

describe("the name of the server", () => {
  it("is a configured one", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces, hosts: ["127.0.0.1", "API.example.com"] });
    expect((await ask("/test/who", { headers: { host: "api.example.com" } })).status).toBe(200);
    expect((await ask("/test/who", { headers: { host: "evil.example.com" } })).status).toBe(403);
  });

  it("is also its own on this machine, for probes", async () => {
    const { server } = serve(await runtimeOf(), { surfaces, hosts: ["api.example.com"] });
    const { url } = await server.listen();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await server.fetch(requestOf("/healthz", { headers: { host: "evil.example.com" } }))).status).toBe(403);
  });

  it("is a loopback name if the server requires no tokens", async () => {
    const { ask, server } = serve(await runtimeOf(), { surfaces, authenticate: openAuth() });
    const askFrom = (address: string, headers = {}) => server.fetch(requestOf("/test/who", { headers }), from(address));
    expect(await answered(await askFrom("::ffff:127.0.0.1"))).toEqual([200, { user: "developer", tenant: "default" }]);
    expect((await askFrom("127.0.0.1", { host: "evil.example.com" })).status).toBe(403);
    expect((await askFrom("10.0.0.7")).status).toBe(403);
    // Mounted without Node's connection, the server cannot tell that the client is local.
    const { error } = (await (await ask("/elsewhere")).json()) as { error: { code: string; message: string } };
    expect(error).toMatchObject({ code: "forbidden", message: expect.stringContaining("nodeListener()") });
    await expect(server.listen({ host: "0.0.0.0" })).rejects.toThrow("listens only on loopback");
  });
});

describe("an answer", () => {
  it("has a request id: the client's, if it can be logged, or a new one", async () => {
    const { ask, lines } = serve(await runtimeOf(), { surfaces });
    expect((await ask("/test/who", { headers: { "x-request-id": "abc.1" } })).headers.get("x-request-id")).toBe(
      "abc.1",
    );
    const strange = await ask("/test/who", { headers: { "x-request-id": "a b" } });
    expect(strange.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
    expect(lines.map(({ requestId }) => requestId)).toEqual(["abc.1", strange.headers.get("x-request-id")]);
  });

  it("for an unknown route has the format of the surface at its path", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces });
    expect(await answered(await ask("/test/else"))).toEqual([
      404,
      { code: "not_found", message: "there is no such route" },
    ]);
    const error = { code: "not_found", message: "there is no such route", retryable: false, details: {} };
    expect(await answered(await ask("/testing"))).toEqual([404, { error }]);
  });

  it("for a wrong method lists the allowed ones", async () => {
    const { ask } = serve(await runtimeOf(), { surfaces });
    const response = await ask("/test/who", { method: "DELETE" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET"]);
  });

  it("for a fault of the server contains no details, and the log does, without secrets", async () => {
    const fault = routeAt("fault", () => {
      throw new Error("cannot reach redis://user:geheim@10.0.0.1 with sk-0123456789abcdef0123");
    });
    const { ask, lines } = serve(await runtimeOf(), { surfaces: [surfaceOf(fault)] });
    expect(await answered(await ask("/test/fault"))).toEqual([500, { code: "internal", message: "the server failed" }]);
    expect(lines[0]).toMatchObject({ route: "test /test/fault", status: 500, userId: "ann", code: "internal" });
    expect(lines[0]?.error).toContain("cannot reach redis://");
    expect(JSON.stringify(lines)).not.toMatch(/geheim|sk-0123/);
  });

  it("that a handler fetched elsewhere also gets the headers", async () => {
    const fetched = routeAt("fetched", () => fetch("data:text/plain,hello"));
    const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(fetched)] });
    const response = await ask("/test/fetched", { headers: { "x-request-id": "abc.1" } });
    expect([await response.text(), response.headers.get("x-request-id")]).toEqual(["hello", "abc.1"]);
  });

  it("is sent even if the surface has no format for an error", async () => {
    const broken = { ...surfaceOf(who), failure: () => Promise.reject(new Error("broken")) };
    const { ask, lines } = serve(await runtimeOf(), { surfaces: [broken] });
    expect((await ask("/test/who", { method: "PUT" })).status).toBe(500);
    expect(lines[0]?.error).toBe("broken");
  });

  it("is sent by the route of a path before a pattern of another surface", async () => {
    const one = { ...surfaceOf(routeAt("{name}", () => Response.json("pattern"), { method: "POST" })), name: "one" };
    const { ask } = serve(await runtimeOf(), { surfaces: [one, ...surfaces] });
    expect((await ask("/test/who")).status).toBe(200);
  });

  it("has the status of the error", async () => {
    const missing = routeAt("missing", () => {
      throw new NotFoundError("there is no such thing");
    });
    const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(missing)] });
    expect(await answered(await ask("/test/missing"))).toEqual([
      404,
      { code: "not_found", message: "there is no such thing" },
    ]);
  });
});

it("logs, metrics and answers contain no secret of a request", async () => {
  const canary = "canary-0123456789";
  const echo = routeAt("echo", () => Response.json({}), { method: "POST", body: z.strictObject({ n: z.number() }) });
  const authenticate = tokenAuth({ tokens: { [canary]: { userId: "ann", scopes: ["m"], credentials: canary } } });
  const { server, ask, lines } = serve(await runtimeOf(), {
    surfaces: [surfaceOf(echo)],
    authenticate,
    metrics: { scope: "m" },
  });
  const headers = { authorization: `Bearer ${canary}`, cookie: `token=${canary}` };
  const answers = await Promise.all(
    [{ n: 1 }, { n: canary }, { n: { a: canary } }, canary].map((body) =>
      server.fetch(requestOf(`/test/echo?token=${canary}`, { method: "POST", body, headers })),
    ),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 400, 400]);
  const bodies = await Promise.all(answers.map((answer) => answer.text()));
  const seen = [JSON.stringify(lines), await (await ask("/metrics", { headers })).text(), ...bodies];
  expect(seen.filter((text) => text.includes(canary))).toEqual([]);
});

it("a server is not ready while its runtime is not healthy", async () => {
  const runtime = await createRuntime({ agents: [] });
  const { ask } = serve(runtime);
  await runtime.shutdown();
  expect((await ask("/readyz")).status).toBe(503);
  expect((await ask("/healthz")).status).toBe(200);
});

it("does not accept an inherited key as an identity", () => {
  expect(Object.keys(identities)).toHaveLength(3);
  expect(
    tokenAuth({ tokens: identities })(requestOf("/", { headers: { authorization: "Bearer __proto__________" } })),
  ).toBeNull();
});
