import { expect, it } from "vitest";
import { z } from "zod";
import { routeAt, runtimeOf, serve, surfaceOf } from "./served.ts";

it("answers probes, and counts what it answered", async () => {
  const { ask } = serve(await runtimeOf());
  expect(await (await ask("/healthz")).json()).toEqual({ status: "ok" });
  expect((await ask("/readyz")).status).toBe(200);
  const metrics = await (await ask("/metrics")).text();
  expect(metrics).toContain('troupe_http_requests_total{route="GET server /healthz",status="200"} 1');
  expect(metrics).toContain('troupe_live_agents{tenant="default"} 0');
});

it("gives a handler what its schemas took from the request", async () => {
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
