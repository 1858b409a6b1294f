import { describe, expect, test } from "vitest";
import { address, tealServed, text, uuid } from "./teal-served.ts";

describe("T1: a new request", () => {
  test("has three ids, and is stored before the model is called", async () => {
    let stored: unknown;
    const teal = await tealServed({
      script: async () => {
        const [record] = await teal.runtime.list({ rootsOnly: true });
        stored = record && { ownerId: record.ownerId, openTurnId: record.openTurnId };
        return { text: "8", usage: { inputTokens: 40, outputTokens: 5 } };
      },
    });
    const { status, json } = await teal.post("", text("5 + 3?"));
    expect(status).toBe(200);
    const ids = { session_id: uuid, task_id: uuid, request_id: uuid };
    expect(json).toEqual({
      ...ids,
      status: "Completed",
      content: {
        ...ids,
        output: "8",
        source: "MathAgent:0.1",
        token_usage: { completion_tokens: 5, prompt_tokens: 40, total_tokens: 45 },
        extra_data: null,
      },
    });
    const { session_id, task_id, request_id } = json;
    expect(json.content).toMatchObject({ session_id, task_id, request_id });
    expect(request_id).toBe(`${task_id.slice(0, -8)}00000001`);
    expect(stored).toEqual({ ownerId: "ann", openTurnId: `${task_id}#1` });
    const agent = await teal.runtime.find(task_id);
    expect(agent.sessionId).toBe(session_id);
    expect((await agent.getMessages()).map(({ role, content }) => [role, content])).toEqual([
      ["user", "5 + 3?"],
      ["assistant", "8"],
    ]);
  });

  test("uses the session that it names", async () => {
    const teal = await tealServed({ script: "ok" });
    const session_id = "6F9619FF-8B86-D011-B42D-00C04FC964FF";
    const { json } = await teal.post("", { ...text("a"), session_id, task_id: null });
    expect(json.session_id).toBe(session_id.toLowerCase());
  });

  test("with a key is sent twice and started once", async () => {
    const teal = await tealServed({ script: "ok" });
    const headers = { "idempotency-key": "order-7" };
    const first = await teal.post("", text("a"), { headers });
    const second = await teal.post("", text("a"), { headers });
    expect(second.json).toEqual(first.json);
    expect([first, second].map((one) => one.headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    const another = await teal.post("", text("b"), { headers });
    expect([another.status, another.json]).toMatchObject([422, { detail: expect.any(String) }]);
    const others = await teal.post("", text("a"), { headers, as: "bob" });
    expect(others.json.task_id).not.toBe(first.json.task_id);
  });
});

describe("T2: a follow-on", () => {
  test("has a new request id, and its model sees the history", async () => {
    const seen: number[] = [];
    const teal = await tealServed({
      script: (request) => {
        seen.push(request.messages.length);
        return `answer ${seen.length}`;
      },
    });
    const first = await teal.post("", text("one"));
    const { session_id, task_id, request_id } = first.json;
    const second = await teal.post("", { ...text("two"), task_id, session_id });
    expect(second.json).toMatchObject({ session_id, task_id, status: "Completed", content: { output: "answer 2" } });
    expect(second.json.request_id).toBe(`${request_id.slice(0, -1)}2`);
    expect(seen[1]).toBe((seen[0] ?? 0) + 2);
    const third = await teal.post("", { ...text("three"), task_id: task_id.toUpperCase() });
    expect(third.json).toMatchObject({ session_id, task_id, content: { output: "answer 3" } });
  });

  test("of another user is answered like a request without a token, and reveals nothing", async () => {
    const teal = await tealServed({ script: "ok" });
    const { json } = await teal.post("", text("secret"));
    const { task_id, request_id } = json;
    const nobody = await teal.server.fetch(new Request(`http://127.0.0.1${address}`, { method: "POST" }));
    const wanted = [nobody.status, await nobody.text(), nobody.headers.get("www-authenticate")];
    expect(wanted).toEqual([401, '{"detail":"Authentication required"}', "Bearer"]);
    const resume = `/tealagents/v1alpha1/resume/${request_id}`;
    for (const [path, body] of [
      ["", { ...text("x"), task_id }],
      ["/sse", { ...text("x"), task_id }],
      ["", { ...text("x"), task_id, session_id: "00000000-0000-4000-8000-000000000000" }],
      [resume, { action: "approve" }],
      [`${resume}/sse`, { action: "reject" }],
    ] as const) {
      const response = await teal.ask(`${address}${path}`, { method: "POST", body, as: "bob" });
      expect([response.status, await response.text(), response.headers.get("www-authenticate")]).toEqual(wanted);
    }
    const agent = await teal.runtime.find(task_id);
    expect(agent.state.turnCount).toBe(1);
  });

  test("of an unknown task is 404, with another session 422", async () => {
    const teal = await tealServed({ script: "ok" });
    const { json } = await teal.post("", text("a"));
    const unknown = ["11111111-1111-4111-8111-111100000000", "11111111-1111-4111-8111-111111111111", json.request_id];
    for (const task_id of unknown) {
      const answer = await teal.post("", { ...text("a"), task_id });
      expect([answer.status, answer.json]).toEqual([404, { detail: "Not Found" }]);
    }
    const session_id = "22222222-2222-4222-8222-222222222222";
    const other = await teal.post("", { ...text("a"), task_id: json.task_id, session_id });
    expect([other.status, other.json]).toEqual([
      422,
      {
        detail: [
          {
            type: "value_error",
            loc: ["body", "session_id"],
            msg: "Value error, the task belongs to another session",
            input: session_id,
          },
        ],
      },
    ]);
  });

  test("while the task is busy is 409 and names the request", async () => {
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const teal = await tealServed({
      script: () => {
        started.resolve();
        return { text: "late", delayUntil: gate.promise };
      },
    });
    const running = teal.post("", text("a"));
    await started.promise;
    const [record] = await teal.runtime.list();
    const task_id = record?.agentId;
    const busy = await teal.post("", { ...text("b"), task_id });
    gate.resolve();
    const { json } = await running;
    const { request_id, session_id } = json;
    expect([busy.status, busy.json]).toEqual([
      409,
      { detail: `The task is busy with another request: ${request_id}`, session_id, task_id, request_id },
    ]);
    expect(json.content.output).toBe("late");
  });
});

const missing = (...loc: (string | number)[]) => ({ type: "missing", loc, msg: "Field required" });

describe("T3: the message of a user", () => {
  test.each([
    [{}, { ...missing("body", "items"), input: {} }],
    [undefined, { ...missing("body"), input: null }],
    [{ items: "a" }, { type: "list_type", loc: ["body", "items"], msg: "Input should be a valid list", input: "a" }],
    [
      { items: [] },
      {
        type: "too_short",
        loc: ["body", "items"],
        msg: "List should have at least 1 item after validation, not 0",
        input: [],
      },
    ],
    [
      { items: [{ content_type: "text" }] },
      { ...missing("body", "items", 0, "content"), input: { content_type: "text" } },
    ],
    [
      { items: [{ content_type: "video", content: "x" }] },
      {
        type: "enum",
        loc: ["body", "items", 0, "content_type"],
        msg: "Input should be 'image' or 'text'",
        input: "video",
      },
    ],
    [
      { items: [{ content: 7 }] },
      { type: "string_type", loc: ["body", "items", 0, "content"], msg: "Input should be a valid string", input: 7 },
    ],
    [
      { items: [7] },
      {
        type: "model_attributes_type",
        loc: ["body", "items", 0],
        msg: "Input should be a valid dictionary or object to extract fields from",
        input: 7,
      },
    ],
    [
      { ...text("a"), task_id: "7" },
      { type: "uuid_parsing", loc: ["body", "task_id"], msg: "Input should be a valid UUID", input: "7" },
    ],
    [
      { ...text("a"), session_id: "abc" },
      { type: "uuid_parsing", loc: ["body", "session_id"], msg: "Input should be a valid UUID", input: "abc" },
    ],
    [
      { ...text("a"), user_context: { a: 1 } },
      { type: "string_type", loc: ["body", "user_context", "a"], msg: "Input should be a valid string", input: 1 },
    ],
    [
      { items: [{ content_type: "image", content: "file:///etc/passwd" }] },
      {
        type: "value_error",
        loc: ["body", "items", 0, "content"],
        msg: "Value error, an image should be a data: URL in base64 or an https: URL",
        input: "file:///etc/passwd",
      },
    ],
  ])("%j is refused in FastAPI's form", async (body, detail) => {
    const teal = await tealServed({ script: "ok" });
    const { status, json } = await teal.post("", body);
    expect([status, json]).toEqual([422, { detail: [detail] }]);
    expect(await teal.runtime.list()).toEqual([]);
  });

  test("may have images, a context and unknown fields; the default type is text", async () => {
    const teal = await tealServed({ script: "ok" });
    const image = "data:image/jpeg;base64,/9j/";
    const { status, json } = await teal.post("", {
      items: [
        { content: "5 + 3?", extra: 1 },
        { content_type: "image", content: image },
      ],
      user_context: { "User Location": "Bern", Role: "chef" },
      chat_history: [],
    });
    expect(status).toBe(200);
    const agent = await teal.runtime.find(json.task_id);
    const [message] = await agent.getMessages();
    expect(message?.content).toEqual([
      { type: "text", text: "The following user context was provided:\n  User Location: Bern\n  Role: chef\n" },
      { type: "text", text: "5 + 3?" },
      { type: "image", url: image },
    ]);
  });

  test("that is invalid JSON, or not sent as JSON, is refused", async () => {
    const { server, ask } = await tealServed({ script: "ok" });
    const { headers } = new Request("http://x", { headers: { authorization: "Bearer token-of-ann-000001" } });
    headers.set("content-type", "application/json");
    const url = `http://127.0.0.1${address}`;
    const broken = await server.fetch(new Request(url, { method: "POST", headers, body: "{" }));
    expect(broken.status).toBe(422);
    expect(await broken.json()).toMatchObject({ detail: [{ type: "json_invalid", loc: ["body"], input: {} }] });
    headers.set("content-type", "text/plain");
    const plain = await server.fetch(new Request(url, { method: "POST", headers, body: "hello" }));
    expect(plain.status).toBe(415);
    const got = await ask(address);
    expect([got.status, got.headers.get("allow"), await got.json()]).toEqual([
      405,
      "POST",
      { detail: "Method Not Allowed" },
    ]);
    const other = await ask("/MathAgent/0.1/none");
    expect([other.status, await other.json()]).toEqual([404, { detail: "Not Found" }]);
  });
});
