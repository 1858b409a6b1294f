// Details of the protocol: cards, versions, errors.
import { a2aSurface } from "troupe/server";
import { createRuntime } from "troupe";
import { describe, expect, it, onTestFinished } from "vitest";
import { requestOf, serve, tokens } from "../served.ts";
import { deskAgent, servedDesk } from "./a2a-served.ts";

const card = "/a2a/desk/.well-known/agent-card.json";
const v1 = { "a2a-version": "1.0" };
const text = { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }] };

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown> & {
    error?: { code: number; status?: string; message: string; data?: unknown; details?: unknown };
  };
}

async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

async function opened() {
  const { server, ask } = await servedDesk();
  return {
    server,
    ask,
    rpc: async (body: unknown, headers: Record<string, string> = v1) =>
      await answerOf(await ask("/a2a/desk", { method: "POST", body, headers })),
    call: async (method: string, params: unknown, headers: Record<string, string> = v1) =>
      await answerOf(
        await ask("/a2a/desk", { method: "POST", body: { jsonrpc: "2.0", id: 7, method, params }, headers }),
      ),
    rest: async (path: string, body?: unknown, headers: Record<string, string> = v1) =>
      await answerOf(await ask(`/a2a/desk${path}`, { method: body === undefined ? "GET" : "POST", body, headers })),
  };
}

const info = (reason: string) => [
  { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "a2a-protocol.org" },
];

describe("a card", () => {
  it("is public, and is sent again only if it has changed", async () => {
    const { server } = await opened();
    const first = await server.fetch(new Request(`http://127.0.0.1${card}`));
    expect([first.status, first.headers.get("cache-control")]).toEqual([200, "public, max-age=300"]);
    const etag = first.headers.get("etag") ?? "";
    const again = await server.fetch(new Request(`http://127.0.0.1${card}`, { headers: { "if-none-match": etag } }));
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", etag]);
    const body = (await first.json()) as Record<string, unknown>;
    expect(body).toMatchObject({
      name: "desk",
      description: "Keeps files",
      supportedInterfaces: [
        { url: "http://127.0.0.1/a2a/desk", protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url: "http://127.0.0.1/a2a/desk", protocolBinding: "HTTP+JSON", protocolVersion: "1.0" },
        { url: "http://127.0.0.1/a2a/desk", protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      ],
      url: "http://127.0.0.1/a2a/desk",
      preferredTransport: "JSONRPC",
      capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
      skills: [{ id: "desk", name: "desk", description: "Keeps files", tags: [] }],
    });
    expect(JSON.stringify(body)).not.toContain("remove");
    for (const place of ["/.well-known/agent-card.json", "/a2a/.well-known/agent-card.json"]) {
      expect(await (await server.fetch(new Request(`http://127.0.0.1${place}`))).json()).toEqual(body);
    }
  });

  it("is only at the agent's address if there are several, and contains the public URL of the server", async () => {
    const desk = deskAgent();
    const other = { ...desk, name: "other" };
    const runtime = await createRuntime({ agents: [desk] });
    onTestFinished(() => runtime.shutdown());
    const surface = await a2aSurface({
      agents: [{ definition: desk }, { definition: other }],
      path: "/agents",
      publicUrl: "https://agents.example.com/",
    });
    const { server } = serve(runtime, { surfaces: [surface] });
    const get = async (path: string) => await server.fetch(new Request(`http://127.0.0.1${path}`));
    const none = await get("/.well-known/agent-card.json");
    expect(none.status).toBe(404);
    const url = "https://agents.example.com/agents/other";
    expect(await none.text()).toContain(`${url}/.well-known/agent-card.json`);
    expect(await (await get("/agents/other/.well-known/agent-card.json")).json()).toMatchObject({ name: "other", url });
    await expect(a2aSurface({ agents: [{ definition: desk }, { definition: desk }] })).rejects.toThrow("two agents");
  });

  it("requires a caller if the surface names no agents", async () => {
    const runtime = await createRuntime({ agents: [deskAgent()] });
    onTestFinished(() => runtime.shutdown());
    const { server, ask } = serve(runtime, { surfaces: [await a2aSurface()] });
    expect((await server.fetch(new Request(`http://127.0.0.1${card}`))).status).toBe(401);
    const own = await ask(card);
    expect([own.status, own.headers.get("cache-control")]).toEqual([200, "private, max-age=300"]);
  });
});

describe("a version", () => {
  it.each(["1.0", "1.0.1"])("%s is served over both bindings", async (version) => {
    const { call, rest } = await opened();
    const headers = { "a2a-version": version };
    const answers = [
      await call("SendMessage", { message: text }, headers),
      await rest("/message:send", { message: text }, headers),
    ];
    for (const { body } of answers) expect(JSON.stringify(body)).toContain("TASK_STATE_COMPLETED");
  });

  it.each(["2.0", "x"])("%s is refused over both bindings", async (version) => {
    const { call, rest } = await opened();
    const headers = { "a2a-version": version };
    expect(await call("SendMessage", { message: text }, headers)).toMatchObject({
      status: 200,
      body: { id: 7, error: { code: -32009, data: info("VERSION_NOT_SUPPORTED") } },
    });
    expect(await rest("/message:send", { message: text }, headers)).toMatchObject({
      status: 400,
      body: { error: { code: 400, details: info("VERSION_NOT_SUPPORTED") } },
    });
  });

  it("that is not named is 0.3: its methods over JSON-RPC, and nothing over HTTP", async () => {
    const { call, rest, ask } = await opened();
    const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "hello" }] };
    expect(await call("message/send", { message }, {})).toMatchObject({
      body: { id: 7, result: { kind: "task", status: { state: "completed" } } },
    });
    expect(await call("SendMessage", { message: text }, {})).toMatchObject({ body: { error: { code: -32601 } } });
    expect(await call("message/send", { message })).toMatchObject({ body: { error: { code: -32601 } } });
    expect((await rest("/message:send", { message: text }, {})).body.error?.details).toEqual(
      info("VERSION_NOT_SUPPORTED"),
    );
    const inQuery = await ask("/a2a/desk/message:send?A2A-Version=1.0", { method: "POST", body: { message: text } });
    expect([inQuery.status, inQuery.headers.get("content-type")]).toEqual([200, "application/a2a+json"]);
  });
});

describe("an error", () => {
  it.each<[string, unknown, number, string]>([
    ["GetTask", { id: "none" }, -32001, "TASK_NOT_FOUND"],
    ["CancelTask", { id: "none" }, -32001, "TASK_NOT_FOUND"],
    ["SendMessage", { message: { ...text, taskId: "none" } }, -32001, "TASK_NOT_FOUND"],
    ["SendStreamingMessage", { message: { ...text, taskId: "none" } }, -32001, "TASK_NOT_FOUND"],
    ["SubscribeToTask", { id: "none" }, -32001, "TASK_NOT_FOUND"],
    ["CreateTaskPushNotificationConfig", { taskId: "none" }, -32001, "TASK_NOT_FOUND"],
    [
      "SendMessage",
      { message: { ...text, parts: [{ url: "http://x/y.pdf", mediaType: "application/pdf" }] } },
      -32005,
      "CONTENT_TYPE_NOT_SUPPORTED",
    ],
    ["SendMessage", { message: { ...text, parts: [{ raw: "AAAA" }] } }, -32005, "CONTENT_TYPE_NOT_SUPPORTED"],
    [
      "SendMessage",
      { message: text, configuration: { taskPushNotificationConfig: { url: "https://x" } } },
      -32003,
      "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ],
    ["SendMessage", {}, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, messageId: "" } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, role: "ROLE_AGENT" } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, role: "ROLE_KING" } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, parts: [] } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, parts: [{}] } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, parts: [{ raw: 5 }] } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: { ...text, contextId: "x".repeat(300) } }, -32602, "INVALID_PARAMS"],
    ["SendMessage", { message: text, configuration: { historyLength: -1 } }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { pageSize: 0 }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { pageSize: 101 }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { pageSize: "many" }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { historyLength: -1 }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { status: "TASK_STATE_DREAMING" }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { statusTimestampAfter: "yesterday" }, -32602, "INVALID_PARAMS"],
    ["ListTasks", { pageToken: "nowhere" }, -32602, "INVALID_PARAMS"],
    ["GetTask", [], -32602, "INVALID_PARAMS"],
  ])("of %s with %j has its code and its ErrorInfo", async (method, params, code, reason) => {
    const { call } = await opened();
    const { status, body } = await call(method, params);
    expect([status, body["id"], body.error?.code, body.error?.data]).toEqual([200, 7, code, info(reason)]);
  });

  it.each([
    [[]],
    [{}],
    [{ jsonrpc: "1.0", id: 1, method: "GetTask" }],
    [{ jsonrpc: "2.0", id: {}, method: "GetTask" }],
    ["text"],
    [null],
  ])("%j is not a valid request", async (body) => {
    const { rpc } = await opened();
    expect(await rpc(body)).toMatchObject({ status: 200, body: { jsonrpc: "2.0", id: null, error: { code: -32600 } } });
  });

  it("of an unknown method, of invalid JSON, and without a token", async () => {
    const { call, server } = await opened();
    for (const method of ["Sing", "toString", "__proto__", "tasks/get"]) {
      expect((await call(method, {})).body.error?.code).toBe(-32601);
    }
    const broken = new Request("http://127.0.0.1/a2a/desk", {
      method: "POST",
      body: "{",
      headers: { ...v1, "content-type": "application/json", authorization: `Bearer ${tokens.ann}` },
    });
    const parsed = await server.fetch(broken);
    expect([parsed.status, await parsed.json()]).toMatchObject([
      400,
      { jsonrpc: "2.0", id: null, error: { code: -32700 } },
    ]);
    const nobody = await server.fetch(new Request("http://127.0.0.1/a2a/desk/tasks", { headers: v1 }));
    expect([nobody.status, await nobody.json()]).toMatchObject([
      401,
      { error: { code: 401, status: "UNAUTHENTICATED" } },
    ]);
  });

  it("over HTTP has the status and the name of the specification", async () => {
    const { rest, server } = await opened();
    expect(await rest("/tasks/none")).toEqual({
      status: 404,
      body: {
        error: { code: 404, status: "NOT_FOUND", message: "there is no such task", details: info("TASK_NOT_FOUND") },
      },
    });
    expect(await rest("/tasks?pageSize=0")).toMatchObject({
      status: 400,
      body: { error: { details: info("INVALID_PARAMS") } },
    });
    for (const path of ["/message:sing", "/tasks/none:sing", "/nothing"]) {
      expect((await rest(path, {})).status).toBe(404);
    }
    const { body } = await rest("/message:send", { message: text });
    const { id } = body["task"] as { id: string };
    expect(await rest(`/tasks/${id}:cancel`, {})).toMatchObject({
      status: 400,
      body: { error: { status: "FAILED_PRECONDITION", details: info("TASK_NOT_CANCELABLE") } },
    });
    expect(await rest(`/tasks/${id}/pushNotificationConfigs`, { url: "https://x" })).toMatchObject({
      status: 400,
      body: { error: { details: info("PUSH_NOTIFICATION_NOT_SUPPORTED") } },
    });
    const subscribing = await server.fetch(requestOf(`/a2a/desk/tasks/${id}:subscribe`, { headers: v1 }));
    expect([subscribing.status, await subscribing.json()]).toMatchObject([
      400,
      { error: { details: info("UNSUPPORTED_OPERATION") } },
    ]);
  });
});
