import { expect, test } from "vitest";
import { checkedAsk } from "./checked-ask.ts";
import type { Message } from "troupe";
import { messageSchema, traceEntrySchema } from "troupe/state";
import {
  accountJsonSchema,
  agentSchema,
  artifactInfoSchema,
  stubReportSchema,
} from "../../../src/server/api/agent-json.ts";
import { errorSchema, pageOf } from "../../../src/server/api/answers.ts";
import { type RequestJson, turnSchema, turnSummarySchema } from "../../../src/server/api/turn-json.ts";
import { type Frame, framesOf, served } from "./served.ts";

const wait = { headers: { prefer: "wait=30" } };
const none = {} as RequestJson;

test("an agent can begin with a conversation", async () => {
  const { ask } = await checkedAsk(await served());
  const messages = [
    { role: "user", content: "Which parcel?" },
    { role: "assistant", content: "Parcel A." },
  ];
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk", messages } })).as(agentSchema);
  expect((await ask(`GET /api/agents/${agentId}/messages`)).body).toMatchObject({ items: messages });
});

test("the main flow: an agent, turns, a stream, a decision, and all reads; every answer matches the document", async () => {
  const { ask, asked } = await checkedAsk(await served());

  const definitions = await ask("GET /api/definitions");
  expect(definitions.body).toMatchObject({ items: [{ name: "clerk" }, { name: "reader" }] });

  const created = await ask("POST /api/agents", {
    body: {
      definition: "clerk",
      key: "desk 7",
      sessionId: "s",
      metadata: { floor: 2 },
      budget: { maxTokens: 100_000 },
    },
  });
  expect(created.status).toBe(201);
  expect(created.body).toMatchObject({
    definition: { name: "clerk" },
    sessionId: "s",
    status: "ready",
    metadata: { floor: 2 },
  });
  const { agentId } = created.as(agentSchema);
  expect(created.headers.get("location")).toBe(`/api/agents/${agentId}`);
  const again = await ask("POST /api/agents", { body: { definition: "clerk", key: "desk 7" } });
  expect([again.status, again.as(agentSchema).agentId]).toEqual([200, agentId]);

  const accepted = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "chat" } });
  expect([accepted.status, accepted.body]).toEqual([202, { turnId: `${agentId}#1`, agentId, number: 1 }]);
  const first = await ask(`GET /api/agents/${agentId}/turns/1`, wait);
  expect(first.headers.get("preference-applied")).toBe("wait=30");
  expect(first.body).toMatchObject({ status: "completed", result: { text: "Parcel A weighs 3 kg." } });

  const stream = await ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "delegate" },
    headers: { accept: "text/event-stream" },
  });
  expect(stream.headers.get("location")).toBe(`/api/agents/${agentId}/turns/2`);
  const frames: Frame[] = [];
  for await (const frame of framesOf(stream.response)) frames.push(frame);
  const types = frames.map(({ event }) => event);
  expect(types).toEqual(expect.arrayContaining(["turn.started", "subagent.spawned", "subagent.ended"]));
  expect(types.at(-1)).toBe("turn.completed");
  expect(frames.every(({ id, event, data }) => event === data.type && (id ?? null) === data.cursor)).toBe(true);

  const waiting = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "remove" }, ...wait });
  expect(waiting.status).toBe(200);
  expect(waiting.body).toMatchObject({ status: "waiting", waitingFor: "request", result: null });
  const [request = none] = waiting.as(turnSchema).requests;
  expect((await ask("GET /api/requests")).body).toEqual({ items: [request], next: null });
  const place = `/api/requests/${request.requestId.replace("#", ".")}`;
  expect((await ask(`GET ${place}`)).body).toEqual(request);
  const blind = await ask(`POST ${place}`, { body: { verdict: "approved" } });
  expect([blind.status, blind.as(errorSchema).error.message]).toEqual([400, expect.stringContaining("argumentsHash")]);
  const { argumentsHash } = request;
  const decided = await ask(`POST ${place}`, { body: { verdict: "approved", argumentsHash } });
  expect(decided.body).toMatchObject({ status: "decided", decision: { verdict: "approved", by: "ada" } });
  const late = await ask(`POST ${place}`, { body: { verdict: "rejected", argumentsHash } });
  expect([late.status, late.as(errorSchema).error]).toMatchObject([
    409,
    { code: "request_conflict", details: { by: "ada" } },
  ]);
  expect((await ask(`GET /api/agents/${agentId}/turns/3`, wait)).body).toMatchObject({ status: "completed" });

  const saved = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "save" }, ...wait });
  expect(saved.body).toMatchObject({ status: "completed" });
  const artifacts = await ask(`GET /api/agents/${agentId}/artifacts`);
  expect(artifacts.body).toMatchObject({ items: [{ name: "page.html", turnId: `${agentId}#4` }], next: null });
  const [artifact] = artifacts.as(pageOf(artifactInfoSchema)).items;
  const file = await ask(`GET /api/agents/${agentId}/artifacts/${artifact?.artifactId}`);
  expect(await file.response.text()).toBe("<script>alert(1)</script>");
  expect(Object.fromEntries(file.headers)).toMatchObject({
    "content-type": "text/html",
    "content-disposition": "attachment; filename*=UTF-8''page.html",
    "content-security-policy": "sandbox; default-src 'none'",
    "x-content-type-options": "nosniff",
  });

  const asking = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "ask" }, ...wait });
  const [question = none] = asking.as(turnSchema).requests;
  const answer = { body: { verdict: "answered", result: "The left one." } };
  expect((await ask(`POST /api/requests/${question.requestId.replace("#", ".")}`, answer)).status).toBe(200);
  await ask(`GET /api/agents/${agentId}/turns/5`, wait);

  const turns = await ask(`GET /api/agents/${agentId}/turns?limit=2`);
  const { items, next } = turns.as(pageOf(turnSummarySchema));
  expect(items.map(({ number }) => number)).toEqual([5, 4]);
  const rest = await ask(`GET /api/agents/${agentId}/turns?limit=100&after=${next}`);
  expect(rest.as(pageOf(turnSummarySchema))).toMatchObject({
    items: [{ number: 3 }, { number: 2 }, { number: 1 }],
    next: null,
  });
  expect((await ask("GET /api/turns?session=s")).as(pageOf(turnSummarySchema)).items).toHaveLength(5);
  expect((await ask("GET /api/turns?session=other")).body).toEqual({ items: [], next: null });
  expect((await ask(`GET /api/agents/${agentId}/turns/3/trace`)).as(pageOf(traceEntrySchema)).items).toMatchObject([
    { type: "user_input" },
    { type: "llm_call" },
    { type: "tool_execution", name: "remove", status: "success" },
    { type: "llm_call" },
  ]);
  const read: Message[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page = await ask(`GET /api/agents/${agentId}/messages?limit=3${after === "" ? "" : `&after=${after}`}`);
    const { items: some, next: more } = page.as(pageOf(messageSchema));
    read.push(...some);
    after = more;
  }
  const whole = (await ask(`GET /api/agents/${agentId}/messages?limit=100`)).as(pageOf(messageSchema)).items;
  expect(whole.length).toBeGreaterThan(6);
  expect(read).toEqual(whole);
  expect((await ask(`GET /api/agents/${agentId}/messages?after=${next}`)).status).toBe(400);
  expect((await ask(`GET /api/agents/${agentId}/messages?last=1`)).body).toEqual({
    items: whole.slice(-1),
    next: null,
  });
  expect((await ask(`GET /api/agents/${agentId}/state`)).body).toMatchObject({ agentId, executionCount: 5 });
  expect((await ask(`GET /api/agents/${agentId}/accounts`)).as(pageOf(accountJsonSchema)).items.length).toBeGreaterThan(
    5,
  );
  expect((await ask("GET /api/accounts")).body).toEqual({ items: [], next: null });
  expect((await ask(`GET /api/agents/${agentId}/stubs`)).as(stubReportSchema).stubs).toEqual([]);
  expect((await ask("GET /api/agents?session=s")).body).toMatchObject({ items: [{ agentId }], next: null });
  const tree = await ask(`GET /api/trees/${agentId}`);
  expect(tree.body).toMatchObject({ cursor: expect.any(String), agents: [{ agentId }, {}], requests: [] });
  const { data } = frames.find(({ event }) => event === "subagent.spawned") ?? {};
  expect((await ask(`GET /api/agents/${String(data?.["childId"])}`)).body).toMatchObject({ rootAgentId: agentId });

  for (const command of ["pause", "resume", "clear", "shutdown", "start", "abort"]) {
    expect([command, (await ask(`POST /api/agents/${agentId}/${command}`)).status]).toEqual([command, 200]);
  }
  expect((await ask(`GET /api/agents/${agentId}/messages`)).body).toEqual({ items: [], next: null });
  expect((await ask(`POST /api/agents/${agentId}/turns/5/abort`, { body: { reason: "late" } })).body).toMatchObject({
    status: "completed",
  });
  for (const [number, path] of [
    [6, "steer"],
    [7, "turns/5/steer"],
  ] as const) {
    const steered = await ask(`POST /api/agents/${agentId}/${path}`, { body: { input: "chat" } });
    expect(steered.body).toMatchObject({ status: "queued", number });
    await ask(`GET /api/agents/${agentId}/turns/${number}`, wait);
  }
  const hourly = await ask("POST /api/schedules", { body: { definition: "clerk", input: "chat", every: "1h" } });
  const schedule = `/api/schedules/${(hourly.body as { readonly scheduleId: string }).scheduleId}`;
  expect((await ask("GET /api/schedules")).body).toMatchObject({ items: [{ definition: "clerk" }] });
  for (const command of ["pause", "run", "resume"]) {
    expect([command, (await ask(`POST ${schedule}/${command}`)).status]).toEqual([command, 200]);
  }
  expect((await ask(`GET ${schedule}`)).body).toMatchObject({ counts: { opened: 1 }, pausedAt: null });
  expect((await ask(`DELETE ${schedule}`)).status).toBe(200);
  expect((await ask("POST /api/tickets", { body: { rootAgentId: agentId } })).status).toBe(201);
  expect((await ask("GET /api/openapi.json", { token: null })).body).toMatchObject({ openapi: "3.1.1" });
  expect((await ask("GET /api/docs", { token: null })).headers.get("content-type")).toMatch("text/html");
  const events = await ask(`GET /api/trees/${agentId}/events`);
  await events.response.body?.cancel();
  expect((await ask(`DELETE /api/agents/${agentId}`)).body).toMatchObject({ agentId, counts: { agents: 2 } });

  expect(asked.notAsked()).toEqual([]);
});
