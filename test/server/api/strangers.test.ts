import { beforeAll, describe, expect, it } from "vitest";
import { createRuntime, type Runtime } from "troupe";
import { agentSchema, artifactInfoSchema } from "../../../src/server/api/agent-json.ts";
import { pageOf } from "../../../src/server/api/answers.ts";
import { apiSurface } from "../../../src/server/api/api-surface.ts";
import { scheduleJsonSchema } from "../../../src/server/api/schedule-json.ts";
import { turnSchema } from "../../../src/server/api/turn-json.ts";
import { type RuntimeServer, serveRuntime } from "../../../src/server/serve-runtime.ts";
import { ada, askOf, type AskOptions, bob, clerk, eve, identities } from "./served.ts";

/** Ids of ada's data, or of missing data. */
interface Ids {
  readonly agentId: string;
  readonly requestId: string;
  readonly artifactId: string;
  readonly argumentsHash: string;
  readonly scheduleId: string;
}

const unknown: Ids = {
  agentId: "0123456789abcdef0123456789abcdef",
  requestId: "0123456789abcdef0123456789abcdef.2:1:0:1",
  artifactId: "none",
  argumentsHash: "none",
  scheduleId: "0123456789abcdef0123456789abcdef",
};

/** The input of a stranger for each route that names data: the query and the body. */
const inputs: Readonly<Record<string, (ids: Ids) => { readonly query?: string; readonly body?: unknown }>> = {
  startTurn: () => ({ body: { input: "chat" } }),
  steerAgent: () => ({ body: { input: "chat" } }),
  steerTurn: () => ({ body: { input: "chat" } }),
  decideRequest: ({ argumentsHash }) => ({ body: { verdict: "approved", argumentsHash } }),
  createTicket: ({ agentId }) => ({ body: { rootAgentId: agentId } }),
  listRequests: ({ agentId }) => ({ query: `?root=${agentId}` }),
};
/** Routes without an id: they show each caller their own data. */
const ownLists = [
  "listDefinitions",
  "createAgent",
  "listAgents",
  "listAllTurns",
  "listOwnAccounts",
  "createSchedule",
  "listSchedules",
];

const routes = apiSurface().routes.filter(({ access }) => access === "caller");
const named = routes.filter(({ id }) => !ownLists.includes(id));

function requestOf({ id, method, path }: (typeof routes)[number], ids: Ids): [string, AskOptions] {
  const params: Readonly<Record<string, string>> = { ...ids, rootAgentId: ids.agentId, number: "2" };
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? "");
  const { query = "", body } = inputs[id]?.(ids) ?? {};
  return [`${method} ${place}${query}`, body === undefined ? {} : { body }];
}

const oddTokens: Readonly<Record<string, unknown>> = { "oid-null-000000000": null, "oid-empty-00000000": "" };

/** Of a tenant that the server does not serve. */
const zoe = "token-of-zoe-0001";

const strangers: Readonly<Record<string, string | null>> = {
  "another user": bob,
  "the same user of another tenant": eve,
  "the same user of a tenant that is not served": zoe,
  nobody: null,
  "an unknown token": "token-of-none-0001",
  "a token whose oid is null": "oid-null-000000000",
  'a token whose oid is ""': "oid-empty-00000000",
};

let runtimes: Readonly<Record<string, Runtime>>;
let server: RuntimeServer;
let ask: ReturnType<typeof askOf>;
let known: Ids;
let ownerless: Ids;

beforeAll(async () => {
  const agents = [clerk()];
  const runtime = await createRuntime({ agents });
  runtimes = { default: runtime, elsewhere: await createRuntime({ agents, tenant: "elsewhere" }) };
  server = serveRuntime(runtimes, {
    authenticate: (request) => {
      const token = request.headers.get("authorization")?.slice("Bearer ".length) ?? "";
      if (Object.hasOwn(oddTokens, token)) return { userId: oddTokens[token] as string, tenant: "default", scopes: [] };
      if (token === zoe) return { userId: "ada", tenant: "unserved", scopes: [] };
      const identity = identities[token];
      return identity ? { tenant: "default", ...identity } : null;
    },
    surfaces: [apiSurface()],
  });
  ask = askOf(server);
  const { agentId } = agentSchema.parse(
    await (await ask("POST /api/agents", { body: { definition: "clerk" } })).json(),
  );
  const wait = { prefer: "wait=30" };
  await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "save" }, headers: wait });
  const response = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "remove" }, headers: wait });
  const [request] = turnSchema.parse(await response.json()).requests;
  const artifacts = await (await ask(`GET /api/agents/${agentId}/artifacts`)).json();
  const [artifact] = pageOf(artifactInfoSchema).parse(artifacts).items;
  const schedule = { definition: "clerk", input: "chat", every: "1d" };
  const set = scheduleJsonSchema.parse(await (await ask("POST /api/schedules", { body: schedule })).json());
  known = {
    agentId,
    scheduleId: set.scheduleId,
    requestId: request?.requestId.replace("#", ".") ?? "",
    artifactId: artifact?.artifactId ?? "",
    argumentsHash: request?.argumentsHash ?? "",
  };
  // Created in the process, without a user.
  await (await runtime.agent("clerk", { agentId: "nobodys" })).start();
  await runtime.schedule("nobodys", { agent: "clerk", input: "chat", every: "1d" });
  ownerless = { ...unknown, agentId: "nobodys", requestId: "nobodys.2:1:0:1", scheduleId: "nobodys" };
  return async () => {
    await server.close();
    for (const one of Object.values(runtimes)) await one.shutdown();
  };
});

/** Everything of an answer that a stranger sees, except the request id. */
async function seen([place, options]: [string, AskOptions], token: string | null) {
  const response = await ask(place, { ...options, token });
  const { "x-request-id": _, ...headers } = Object.fromEntries(response.headers);
  return { status: response.status, headers, body: await response.text() };
}

describe.each(named.map((route) => [`${route.method} ${route.path}`, route] as const))("%s", (_, route) => {
  it.each(Object.entries(strangers))("is answered to %s like missing data", async (who, token) => {
    const answer = await seen(requestOf(route, known), token);
    expect(answer).toEqual(await seen(requestOf(route, unknown), token));
    const isSomebody = token === bob || token === eve;
    expect([who, answer.status]).toEqual([who, isSomebody ? 404 : 401]);
  });

  it("is answered to its owner", async () => {
    // Routes with an effect are tested elsewhere; here they would change the data of later rows.
    const { status } = route.method === "GET" ? await statusOf(requestOf(route, known)) : { status: 200 };
    expect(status).toBe(200);
  });

  it("is not shown to any user if it has no owner", async () => {
    for (const token of [ada, bob]) {
      expect(await seen(requestOf(route, ownerless), token)).toEqual(await seen(requestOf(route, unknown), token));
    }
  });
});

/** The status of an answer to the owner; a stream is closed immediately. */
async function statusOf([place, options]: [string, AskOptions]): Promise<{ readonly status: number }> {
  const { status, body } = await ask(place, options);
  await body?.cancel();
  return { status };
}

it.each([zoe, "token-of-none-0001", ...Object.keys(oddTokens)])("%s has no list and creates nothing", async (token) => {
  for (const { method, path } of routes.filter(({ id }) => ownLists.includes(id))) {
    const body = method === "POST" ? { body: { definition: "clerk" } } : {};
    const answer = await seen([`${method} ${path}`, body], token);
    expect(answer).toEqual(await seen([`${method} ${path}`, body], "token-of-none-0002"));
    expect([path, answer.status]).toEqual([path, 401]);
  }
});

function variants({ agentId }: Ids): [string, AskOptions][] {
  return [
    [`GET /api/trees/${agentId}/events`, { headers: { "last-event-id": "1.1.0" } }],
    [`GET /api/trees/${agentId}/events?after=1.1.0`, {}],
    [`GET /api/trees/${agentId}/events?from=now`, {}],
    [`POST /api/agents/${agentId}/turns`, { body: { input: "chat" }, headers: { accept: "text/event-stream" } }],
    [`POST /api/agents/${agentId}/turns`, { body: { input: "chat" }, headers: { "idempotency-key": "k" } }],
    [`GET /api/agents/${agentId}/turns/2`, { headers: { prefer: "wait=1" } }],
    [`GET /api/agents/${agentId}/turns/2`, { headers: { accept: "text/event-stream" } }],
    [`GET /api/agents/${agentId}/turns/99`, {}],
    [`GET /api/agents/${agentId.slice(0, -1)}%00`, {}],
  ];
}

it.each([bob, eve])("a cursor, a key or another response format gives no access either", async (token) => {
  for (const [index, variant] of variants(known).entries()) {
    const answer = await seen(variant, token);
    expect(answer).toEqual(await seen(variants(unknown)[index] ?? variant, token));
    expect([variant[0], answer.status]).toEqual([variant[0], 404]);
  }
});

it("lists contain only the caller's data", async () => {
  for (const [place, token, count] of [
    ["agents", ada, 1],
    ["turns", ada, 2],
    ["requests", ada, 1],
    ["agents", bob, 0],
    ["turns", bob, 0],
    ["requests", bob, 0],
    ["agents", eve, 0],
    ["turns", eve, 0],
    ["requests", eve, 0],
  ] as const) {
    const { items } = (await (await ask(`GET /api/${place}`, { token })).json()) as { items: unknown[] };
    expect([place, token, items.length]).toEqual([place, token, count]);
  }
});

async function create(token: string, body: object, headers = {}): Promise<string> {
  return agentSchema.parse(await (await ask("POST /api/agents", { token, body, headers })).json()).agentId;
}

it("the same name and the same key mean another agent for another user", async () => {
  const desk = { definition: "clerk", key: "desk" };
  const key = { "idempotency-key": "one" };
  const names = await Promise.all([ada, bob, eve].map((token) => create(token, desk)));
  const keys = await Promise.all([ada, bob, eve].map((token) => create(token, { definition: "clerk" }, key)));
  expect(new Set([...names, ...keys])).toHaveLength(6);
  expect(await create(ada, desk)).toBe(names[0]);
  expect(await create(ada, { definition: "clerk" }, key)).toBe(keys[0]);
});

it("a stranger's attempts had no effect", async () => {
  const { status } = turnSchema.parse(await (await ask(`GET /api/agents/${known.agentId}/turns/2`)).json());
  expect(status).toBe("waiting");
  expect(agentSchema.parse(await (await ask(`GET /api/agents/${known.agentId}`)).json()).status).toBe("busy");
});
