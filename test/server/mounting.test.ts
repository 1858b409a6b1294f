import express from "express";
import { Hono } from "hono";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { nodeListener } from "troupe/server";
import { expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { requestOf, routeAt, runtimeOf, type Served, serve, surfaceOf } from "./served.ts";

const echo = routeAt("echo", ({ body }) => Response.json(body), {
  method: "POST",
  body: z.object({ text: z.string() }),
});

async function served(): Promise<Served> {
  return serve(await runtimeOf(), { surfaces: [surfaceOf(echo)] });
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** The URL of a plain Node server, as inside Express and Fastify. */
async function mounted(handler: Handler): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function post(url: string): Promise<unknown[]> {
  const { headers } = requestOf("/", { body: {}, method: "POST" });
  const response = await fetch(`${url}/test/echo`, { method: "POST", headers, body: JSON.stringify({ text: "hi" }) });
  return [response.status, await response.json()];
}

it("a Node server accepts the handler as a listener", async () => {
  const { server } = await served();
  const listener = nodeListener(server);
  expect(await post(await mounted((request, response) => void listener(request, response)))).toEqual([
    200,
    { text: "hi" },
  ]);
});

it("after a body parser it reports the wrong order", async () => {
  const { server } = await served();
  const app = express()
    .use(express.json())
    .all(/^\/test\//, nodeListener(server));
  expect(await post(await mounted(app))).toEqual([
    500,
    { code: "body_already_read", message: expect.stringContaining("mount it before any body parser") },
  ]);
});

it.each(["troupe", "/troupe/", "/", "/a b", 5])("%j is not a valid base path", async (basePath) => {
  const runtime = await runtimeOf();
  expect(() => serve(runtime, { basePath: basePath as string })).toThrow(/basePath .*a path like "\/troupe"/);
});

it("below a path of the app: routes, errors of their surface, and URLs of created resources", async () => {
  const made = routeAt("made", () => new Response(null, { status: 201, headers: { location: "/test/made/1" } }));
  const { ask } = serve(await runtimeOf(), { surfaces: [surfaceOf(made)], basePath: "/troupe" });
  const created = await ask("/troupe/test/made");
  expect([created.status, created.headers.get("location")]).toEqual([201, "/troupe/test/made/1"]);
  const unknown = await ask("/troupe/test/none");
  expect([unknown.status, await unknown.json()]).toEqual([404, { code: "not_found", message: expect.any(String) }]);
  expect((await ask("/test/made")).status).toBe(404);
  expect((await ask("/troupe/healthz")).status).toBe(200);
});

it("another Hono app mounts it below a path", async () => {
  const { server } = await served();
  const app = new Hono().get("/mine", (context) => context.text("mine")).mount("/agents", server.fetch);
  const response = await app.fetch(requestOf("/agents/test/echo", { method: "POST", body: { text: "hi" } }));
  expect([response.status, await response.json()]).toEqual([200, { text: "hi" }]);
});
