import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { AgentDeletedError, createRuntime, type Runtime } from "../../src/index.ts";
import { runtimeActor } from "../../src/inspector/feed/act.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { type FeedServer, serveFeed } from "../../src/inspector/start-inspector.ts";
import { first, rows } from "../support/full.ts";
import { busyTeam } from "./feed-fixtures.ts";
import { knock, visit } from "./visitors.ts";

let runtime: Runtime;
let server: FeedServer;
let watching: FeedServer;
let port: string;

beforeAll(async () => {
  runtime = await createRuntime({ agents: [busyTeam(1)] });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  const sourced = (): Feed => {
    const feed = new Feed();
    const { stores, tenant } = runtime;
    feed.add({ stores, tenant, runtime, actor: runtimeActor(runtime, "tester") });
    return feed;
  };
  server = await serveFeed(sourced(), { mayAct: true });
  watching = await serveFeed(sourced());
  ({ port } = new URL(server.origin));
});

afterAll(async () => {
  await server.close();
  await watching.close();
  await runtime.shutdown();
});

const reads = [
  "/api/info",
  "/api/runs",
  "/api/runs/desk",
  "/api/runs/desk/agents/desk/machines",
  "/api/runs/desk/agents/desk/transitions",
  "/api/runs/desk/agents/desk/messages",
  "/api/runs/desk/agents/desk/prompts",
  "/api/runs/desk/calls/desk%231%3A1%3A0",
  "/api/runs/desk/rows/1",
  "/api/runs/desk/requests",
  "/api/runs/desk/search?text=go",
  "/api/runs/desk/steps",
  "/api/runs/desk/forks",
  "/api/runs/desk/accounts",
  "/api/runs/desk/owners",
  "/api/queues",
  "/api/schedules",
  "/api/runs/desk/export",
];
const acts = [
  "/api/requests/desk%231%3A1%3A0%3A1/decision",
  "/api/agents/desk/pause",
  "/api/agents/desk/resume",
  "/api/agents/desk/abort",
  "/api/agents/desk/delete",
  "/api/agents",
  "/api/agents/desk/turns",
  "/api/runs/desk/fork",
  "/api/runs/desk/replay",
];

const asJson = { "content-type": "application/json" };
const bearer = (token: string | undefined) => ({ authorization: `Bearer ${token ?? ""}` });

async function fetched(path: string, method: string, headers: Record<string, string>) {
  const answer = await visit(`${server.origin}${path}`, headers, method);
  return [answer.status, answer.body] as const;
}

it("a client with the act token gets the token for a view-only link, one with the view token gets none", async () => {
  const [, forActing] = await fetched("/api/info", "GET", bearer(server.tokens.act));
  const [, forWatching] = await fetched("/api/info", "GET", bearer(server.tokens.watch));
  expect(JSON.parse(forActing)).toMatchObject({ scope: "act", watchToken: server.tokens.watch });
  expect(forActing).not.toContain(server.tokens.act);
  expect(forWatching).not.toContain("oken");
});

describe("S5: every address", () => {
  const strangers: readonly (readonly [string, (port: string) => Record<string, string>])[] = [
    ["under a foreign host name", () => ({ host: "evil.example" })],
    ["under a foreign host name that resolves to this machine", () => ({ host: `evil.example:${port}` })],
    ["under a host name with another port", () => ({ host: "127.0.0.1:1" })],
    ["under another address of this machine", () => ({ host: `0.0.0.0:${port}` })],
    ["from a foreign page", () => ({ origin: "https://evil.example" })],
    ["from a page of another port", () => ({ origin: "http://127.0.0.1:1" })],
    ["from a page without an origin", () => ({ origin: "null" })],
    [
      "from another host name of this server",
      () => ({ host: `localhost:${port}`, origin: `http://127.0.0.1:${port}` }),
    ],
  ];

  it.each(strangers)("%s: 403 without a body, with either token", async (_title, headersOf) => {
    for (const token of [server.tokens.watch, server.tokens.act]) {
      const headers = { ...headersOf(port), ...bearer(token), ...asJson };
      for (const path of reads) expect(await fetched(path, "GET", headers)).toEqual([403, ""]);
      for (const path of acts) expect(await fetched(path, "POST", headers)).toEqual([403, ""]);
      const socket = { ...headersOf(port), "sec-websocket-protocol": `troupe.feed.v1, bearer.${token}` };
      const knocked = await knock(`ws://127.0.0.1:${port}/feed`, socket);
      expect([knocked.status, knocked.body]).toEqual([403, ""]);
    }
  });

  it.each([
    ["no token", {}],
    ["an empty token", { authorization: "Bearer " }],
    ["a wrong token", bearer("A".repeat(32))],
    ["a token as password", { authorization: `Basic ${btoa("x:y")}` }],
    ["a token in a cookie", { cookie: "token=x" }],
  ])("with %s: 401 without a body", async (_title, headers) => {
    const given = headers as Record<string, string>;
    for (const path of reads) expect(await fetched(path, "GET", given)).toEqual([401, ""]);
    for (const path of acts) expect(await fetched(path, "POST", { ...given, ...asJson })).toEqual([401, ""]);
  });

  it.each(["since=yesterday", "until=-1", "limit=0", "limit=201", "after=1&since=1.5"])(
    "with a query of runs by %s is answered 400 with the error",
    async (query) => {
      const [status, body] = await fetched(`/api/runs?${query}`, "GET", bearer(server.tokens.watch));
      expect(status).toBe(400);
      expect(body).toContain("the request does not fit its schema");
    },
  );

  it("with a token in the address: 401", async () => {
    const { watch } = server.tokens;
    expect(await fetched(`/api/runs?token=${watch}`, "GET", {})).toEqual([401, ""]);
    expect((await knock(`ws://127.0.0.1:${port}/feed?token=${watch}`)).status).toBe(401);
  });

  it("for changes requires the act token, and JSON", async () => {
    for (const path of acts) {
      expect(await fetched(path, "POST", { ...bearer(server.tokens.watch), ...asJson })).toEqual([403, ""]);
      for (const type of ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain", ""]) {
        const [status] = await fetched(path, "POST", { ...bearer(server.tokens.act), "content-type": type });
        expect(status).toBe(415);
      }
      expect((await fetched(path, "GET", bearer(server.tokens.act)))[0]).toBe(405);
    }
    expect(watching.tokens.act).toBeUndefined();
  });

  it("is open to its own page and to programs with the token, and returns JSON", async () => {
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) {
      for (const origin of [{}, { origin: `http://${host}` }]) {
        for (const path of reads) {
          const headers = { host, ...origin, ...bearer(server.tokens.watch) };
          const answer = await visit(`${server.origin}${path}`, headers);
          expect([path, answer.status]).toEqual([path, 200]);
          expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
          expect(answer.headers["cache-control"]).toBe("no-store");
          expect(answer.headers["set-cookie"]).toBeUndefined();
          expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
        }
      }
    }
  });
});

it("the page contains no data, needs no token, and allows only its own resources", async () => {
  const page = await visit(server.origin);
  expect(page.status).toBe(200);
  expect(page.body).not.toContain("desk");
  const policy = String(page.headers["content-security-policy"]);
  expect(policy).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  );
  expect((await visit(server.origin, { host: "evil.example" })).status).toBe(403);
  for (const name of ["../http/gate.ts", "..%2Fhttp%2Fgate.ts", ".", "", "none.js"]) {
    expect((await visit(`${server.origin}/assets/${name}`)).status).toBe(404);
  }
});

async function socketOf(token: string | undefined): Promise<{ socket: WebSocket; next: () => Promise<unknown> }> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/feed`, ["troupe.feed.v1", `bearer.${token ?? ""}`]);
  const texts: string[] = [];
  const waiting: ((text: string) => void)[] = [];
  socket.on("message", (data: Buffer) => {
    const text = data.toString("utf8");
    const take = waiting.shift();
    if (take) take(text);
    else texts.push(text);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("error", reject);
  });
  const next = async (): Promise<unknown> =>
    JSON.parse(texts.shift() ?? (await new Promise<string>((resolve) => void waiting.push(resolve))));
  return { socket, next };
}

it("the socket sends agents and rows under credit, and answers invalid messages with an error", async () => {
  const { socket, next } = await socketOf(server.tokens.watch);
  expect(socket.protocol).toBe("troupe.feed.v1");
  for (const nonsense of ["", "[]", '{"type":"watch"}', '{"type":"credit","batches":-1}']) {
    socket.send(nonsense);
    expect(await next()).toMatchObject({ type: "error", code: "invalid" });
  }
  socket.send(JSON.stringify({ type: "watch", run: "nobody", after: 0, credit: 1 }));
  expect(await next()).toMatchObject({ type: "error", code: "not_found", run: "nobody" });
  socket.send(JSON.stringify({ type: "watch", run: "desk", after: 0, credit: 5 }));
  expect(await next()).toMatchObject({ type: "agents", run: "desk" });
  expect(await next()).toMatchObject({ type: "rows", run: "desk", isCaughtUp: true });
  const closed = new Promise<void>((resolve) => void socket.once("close", () => resolve()));
  socket.send("x".repeat(10_000));
  await closed;
});

const repeated: readonly (readonly [string, (count: number) => string])[] = [
  [
    "unknown runs",
    (count) => JSON.stringify({ type: "watch", run: `${"x".repeat(500)}${count}`, after: 0, credit: 1 }),
  ],
  ["nonsense", () => "nonsense"],
];

it.each(rows(repeated, first))(
  "a client that reads nothing and requests %s repeatedly is disconnected",
  async (_what, messageOf) => {
    const protocols = ["troupe.feed.v1", `bearer.${server.tokens.watch}`];
    const socket = new WebSocket(`ws://127.0.0.1:${port}/feed`, protocols, { perMessageDeflate: false });
    socket.once("upgrade", (response) => response.socket.pause());
    await new Promise<void>((resolve) => void socket.once("open", () => resolve()));
    let isCut = false;
    // Writing to a closed connection fails.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      isCut = true;
    });
    for (let count = 0; !isCut; count += 1) {
      socket.send(messageOf(count));
      // The server is in this process, so its event loop has to turn.
      if (count % 100 === 0) await setImmediate();
    }
    // The others are still served.
    expect((await fetched("/api/runs", "GET", bearer(server.tokens.watch)))[0]).toBe(200);
  },
);

async function call(path: string, body: object): Promise<Response> {
  const headers = { ...bearer(server.tokens.act), ...asJson };
  return await fetch(`${server.origin}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
}

it("talks, pauses and aborts with the act token; a turn that is sent twice is one turn", async () => {
  const made = await call("/api/agents", { definition: "lead", agentId: "talk" });
  expect(await made.json()).toMatchObject({ agentId: "talk", definition: { name: "lead" } });
  const first = await call("/api/agents/talk/turns", { key: "k1", text: "go" });
  const again = await call("/api/agents/talk/turns", { key: "k1", text: "go" });
  expect([await first.json(), await again.json()]).toEqual([{ turnId: "talk#1" }, { turnId: "talk#1" }]);
  const other = await call("/api/agents/talk/turns", { key: "k1", text: "other" });
  expect(other.status).toBe(409);
  const agent = await runtime.find("talk");
  expect((await agent.turn("talk#1").result).text).toBe("done");
  expect((await call("/api/agents/talk/pause", {})).status).toBe(204);
  expect((await call("/api/agents/talk/resume", {})).status).toBe(204);
  expect((await call("/api/agents/talk/abort", { reason: "enough" })).status).toBe(204);
  expect((await call("/api/agents/nobody/abort", {})).status).toBe(404);
  expect((await call("/api/agents/talk/delete", {})).status).toBe(204);
  await expect(runtime.find("talk")).rejects.toThrow(AgentDeletedError);
  expect((await call("/api/agents/talk/delete", {})).status).toBe(404);
  const wrong = await call("/api/agents", { definition: "nobody" });
  expect([wrong.status, (await wrong.json()) as unknown]).toMatchObject([404, { error: { code: "not_found" } }]);
  expect((await call("/api/agents", { name: 1 })).status).toBe(400);
});
