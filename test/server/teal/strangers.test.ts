// Every route of the surface, for all kinds of callers: data of another user is answered 401 with the same body
// for all, and missing data 404.
import { createRuntime, defineAgent, defineTool, type Runtime } from "troupe";
import { type RuntimeServer, serveRuntime, tealSurface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { identities, tokens } from "../served.ts";

/** A task and its request: ann's, or missing ones. */
interface Ids {
  readonly task: string;
  readonly request: string;
}

const unknown: Ids = {
  task: "33333333-3333-4333-8333-333300000000",
  request: "33333333-3333-4333-8333-333300000001",
};

const oddTokens: Readonly<Record<string, unknown>> = { "oid-null-000000000": null, "oid-empty-00000000": "" };
/** Callers whose tenant this server does not serve, and callers with a runtime here. */
const [zoe, eve] = ["token-of-zoe-000001", tokens.eve];

const strangers: Readonly<
  Record<string, { readonly token: string | null; readonly known: 401 | 404; readonly new: 200 | 401 }>
> = {
  "another user": { token: tokens.bob, known: 401, new: 200 },
  // Their own runtime does not have the task.
  "the same user of another tenant": { token: eve, known: 404, new: 200 },
  "the same user of a tenant that is not served": { token: zoe, known: 401, new: 401 },
  nobody: { token: null, known: 401, new: 401 },
  "an unknown token": { token: "token-of-none-0001", known: 401, new: 401 },
  "a token whose oid is null": { token: "oid-null-000000000", known: 401, new: 401 },
  'a token whose oid is ""': { token: "oid-empty-00000000", known: 401, new: 401 },
};

const remove = defineTool({
  name: "remove",
  description: "Removes",
  parameters: z.object({}),
  needsApproval: true,
  execute: () => "removed",
});
const model = scriptedModel(({ messages }) =>
  messages.at(-1)?.role === "tool" ? { text: "done" } : { toolCalls: [{ name: "remove" }] },
);
const definition = defineAgent({ name: "desk", model, tools: [remove] });
const surface = tealSurface({ agents: [{ definition, version: "0.1" }] });
const routes = surface.routes.filter(({ access }) => access === "caller");
const openRoutes = surface.routes.filter(({ access }) => access === "public");
const named = routes.map((route) => [`${route.method} ${route.path}`, route] as const);

let runtimes: Readonly<Record<string, Runtime>>;
let server: RuntimeServer;
let known: Ids;

async function answerTo(path: string, token: string | null, body?: object) {
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await server.fetch(new Request(`http://127.0.0.1${path}`, { ...init, headers }));
  const { "x-request-id": _, ...shown } = Object.fromEntries(response.headers);
  return { status: response.status, headers: shown, body: await response.text() };
}

/** A request to a route that names a task, in the path or in the body. */
function seen({ path }: (typeof routes)[number], { task, request }: Ids, token: string | null) {
  const isResume = path.includes("{request_id}");
  const body = isResume ? { action: "approve" } : { items: [{ content: "go on" }], task_id: task };
  return answerTo(path.replace("{request_id}", request), token, body);
}

beforeAll(async () => {
  const agents = [definition];
  runtimes = {
    default: await createRuntime({ agents }),
    elsewhere: await createRuntime({ agents, tenant: "elsewhere" }),
  };
  server = serveRuntime(runtimes, {
    authenticate: (request) => {
      const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
      if (Object.hasOwn(oddTokens, token)) return { userId: oddTokens[token] as string, tenant: "default", scopes: [] };
      if (token === zoe) return { userId: "ann", tenant: "unserved", scopes: [] };
      const identity = identities[token];
      return identity ? { tenant: "default", ...identity } : null;
    },
    surfaces: [surface],
  });
  const begun = await answerTo("/desk/0.1", tokens.ann, { items: [{ content: "remove it" }] });
  const { task_id, request_id } = JSON.parse(begun.body) as { task_id: string; request_id: string };
  known = { task: task_id, request: request_id };
  return async () => {
    await server.close();
    for (const runtime of Object.values(runtimes)) await runtime.shutdown();
  };
});

describe.each(named)("%s", (_, route) => {
  it.each(Object.entries(strangers))("is answered to %s like a missing task or token", async (_who, stranger) => {
    const { token } = stranger;
    const answer = await seen(route, known, token);
    expect(answer.status).toBe(stranger.known);
    const like =
      stranger.known === 404 ? await seen(route, unknown, token) : await seen(route, known, strangerLike(token));
    expect(answer).toEqual(like);
  });

  it("has no other task either: its owner gets 404 for it", async () => {
    expect((await seen(route, unknown, tokens.ann)).status).toBe(404);
  });
});

/** Tokens that are refused with the same body: none, or an unknown one. */
function strangerLike(token: string | null): string | null {
  return token === null || token === tokens.bob ? null : "token-of-none-0002";
}

it.each(Object.entries(strangers))("%s begins a task of their own, or none", async (_who, { token, new: status }) => {
  for (const path of ["/desk/0.1", "/desk/0.1/sse"]) {
    expect((await answerTo(path, token, { items: [{ content: "remove it" }] })).status).toBe(status);
  }
});

it("public routes show nothing of a task", async () => {
  for (const { path } of openRoutes) {
    const { status, body } = await answerTo(path, null);
    expect([path, status]).toEqual([path, 200]);
    expect(body).not.toContain(known.task);
  }
});

it("its owner finds it unchanged, and decides it", async () => {
  expect((await runtimes["default"]?.requests({ rootAgentId: known.task }))?.length).toBe(1);
  for (const route of routes.filter(({ path }) => path.includes("{request_id}"))) {
    expect([route.path, (await seen(route, known, tokens.ann)).status]).toEqual([route.path, 200]);
  }
});
