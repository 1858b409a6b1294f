import { defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, it } from "vitest";
import { z } from "zod";
import { agentSchema, artifactInfoSchema } from "../../../src/server/api/agent-json.ts";
import { errorSchema, pageOf } from "../../../src/server/api/answers.ts";
import { turnSchema } from "../../../src/server/api/turn-json.ts";
import { checkedAsk } from "./checked-ask.ts";
import { clerk, served } from "./served.ts";

const wait = { headers: { prefer: "wait=30" } };

it("invalid input is refused with its path, and nothing is done", async () => {
  const { ask } = await checkedAsk(await served());
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  const turns = `POST /api/agents/${agentId}/turns`;
  const refused: readonly [string, unknown, string][] = [
    ["POST /api/agents", { definition: 5 }, "definition"],
    ["POST /api/agents", { definition: "clerk", owner: "bob" }, "owner"],
    ["POST /api/agents", { definition: "clerk", budget: { maxSteps: -1 } }, "maxSteps"],
    ["POST /api/agents", { definition: "clerk", budget: { steps: 1 } }, "steps"],
    ["POST /api/agents", { definition: "clerk", key: "" }, "key"],
    [turns, {}, "input"],
    [turns, { input: [{ type: "video" }] }, "input"],
    [turns, { input: "chat", ifBusy: "wait" }, "ifBusy"],
    [turns, { input: "chat", budget: { maxCost: "1" } }, "maxCost"],
    [turns, { input: "chat", settings: 5 }, "settings"],
    [turns, { input: "chat", settings: { temperature: -1 } }, "temperature"],
    [turns, { input: "chat", settings: { maxOutputTokens: 0.5 } }, "maxOutputTokens"],
    [turns, { input: "chat", settings: { stopSequences: "END" } }, "stopSequences"],
    [turns, { input: "chat", settings: { stopSequences: [""] } }, "stopSequences"],
    [turns, { input: "chat", settings: { reasoningEffort: "hard" } }, "reasoningEffort"],
    [turns, { input: "chat", settings: { toolChoice: "always" } }, "toolChoice"],
    [turns, { input: "chat", settings: { toolChoice: { tool: "no such tool" } } }, "no such tool"],
    [turns, { input: "chat", settings: { providerOptions: { openai: { store: true } } } }, "providerOptions"],
    ["GET /api/agents?limit=0", undefined, "limit"],
    ["GET /api/agents?limit=101", undefined, "limit"],
    ["GET /api/agents?after=%2B%2B", undefined, "after"],
    ["GET /api/agents?after=eA", undefined, "after"],
    ["GET /api/turns?status=done", undefined, "status"],
    ["GET /api/turns?after=eA", undefined, "after"],
    [`GET /api/agents/${agentId}/turns/zero`, undefined, "number"],
    [`POST /api/agents/${agentId}/pause`, { later: true }, "later"],
  ];
  for (const [place, body, word] of refused) {
    const answer = await ask(place, { body });
    expect([place, answer.status, answer.body]).toMatchObject([
      place,
      400,
      { error: { message: expect.stringContaining(word) } },
    ]);
  }
  expect((await ask("GET /api/turns")).body).toEqual({ items: [], next: null });
  expect((await ask("POST /api/agents", { body: { definition: "none" } })).body).toMatchObject({
    error: { code: "not_found" },
  });
});

it("a request that the agent's state does not allow is answered 409 with the reason", async () => {
  const { ask } = await checkedAsk(await served());
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  const place = `POST /api/agents/${agentId}`;
  await ask(`${place}/turns`, { body: { input: "remove" }, ...wait });
  const busy = await ask(`${place}/turns`, { body: { input: "chat" } });
  expect([busy.status, busy.body]).toMatchObject([
    409,
    { error: { code: "agent_busy", details: { openTurnId: `${agentId}#1` } } },
  ]);
  expect((await ask(`${place}/clear`)).body).toMatchObject({ error: { code: "agent_busy" } });
  expect((await ask(`${place}/turns`, { body: { input: "chat", ifBusy: "queue" } })).body).toMatchObject({ number: 2 });
  expect((await ask(`GET /api/agents/${agentId}/turns/2`)).body).toMatchObject({ status: "queued", result: null });
  expect((await ask(`${place}/turns/1/abort`, { body: { reason: "enough" } })).status).toBe(200);
  expect((await ask(`GET /api/agents/${agentId}/turns/1`, wait)).body).toMatchObject({
    status: "stopped",
    result: { stopReason: "user_requested" },
  });
  expect((await ask(`GET /api/agents/${agentId}/turns/2`, wait)).body).toMatchObject({ status: "completed" });
  await ask(`${place}/shutdown`);
  const asleep = await ask(`${place}/turns`, { body: { input: "chat" } });
  expect([asleep.status, asleep.body]).toMatchObject([409, { error: { code: "agent_not_started" } }]);
  expect((await ask(`${place}/start`)).body).toMatchObject({ status: "ready" });
  expect((await ask(`${place}/turns`, { body: { input: null }, ...wait })).body).toMatchObject({ status: "completed" });
  expect((await ask(`GET /api/agents/${agentId}/turns/9`)).status).toBe(404);
});

it("the client's own tools are answered over the same routes, if the definition allows them", async () => {
  const model = scriptedModel([{ toolCalls: [{ name: "locate", arguments: { precise: true } }] }, "Bern."]);
  const { ask } = await checkedAsk(
    await served({ agents: [defineAgent({ name: "guide", model, clientTools: true }), clerk()] }),
  );
  const parameters = { type: "object", properties: { precise: { type: "boolean" } } };
  const body = { input: "go", clientTools: [{ name: "locate", description: "Where the user is.", parameters }] };
  const guide = (await ask("POST /api/agents", { body: { definition: "guide" } })).as(agentSchema).agentId;
  const waiting = (await ask(`POST /api/agents/${guide}/turns`, { body, ...wait })).as(turnSchema);
  expect(waiting.requests).toMatchObject([{ kind: "client", name: "locate", arguments: { precise: true } }]);
  const place = `POST /api/requests/${waiting.requests[0]?.requestId.replace("#", ".")}`;
  const content = [{ type: "file", mediaType: "application/pdf", data: "JVBERgA=", name: "map.pdf" }];
  const result = { content, structuredContent: { place: "Bern" } };
  const decided = await ask(place, { body: { verdict: "answered", result } });
  // The content is an artifact of the agent, and no part of the request.
  expect(decided.body).toMatchObject({ decision: { result: { files: [{ name: "map.pdf" }] } } });
  expect(JSON.stringify(decided.body)).not.toContain("JVBER");
  expect((await ask(`GET /api/agents/${guide}/turns/1`, wait)).body).toMatchObject({ result: { text: "Bern." } });
  const { items } = (await ask(`GET /api/agents/${guide}/artifacts`)).as(pageOf(artifactInfoSchema));
  expect(items).toMatchObject([{ name: "map.pdf", encoding: "base64", size: 5 }]);
  const other = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema).agentId;
  expect((await ask(`POST /api/agents/${other}/turns`, { body })).status).toBe(403);
});

it("unknown routes and methods are answered in the format of this API", async () => {
  const { ask } = await served();
  const missing = await ask("GET /api/none");
  expect([missing.status, await missing.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
  const wrong = await ask("DELETE /api/agents");
  expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST, GET"]);
});

it("a name and a type from a tool cannot inject headers", async () => {
  const name = 'a"\r\nset-cookie: x=1\u2028/../ü.html';
  const save = defineTool({
    name: "save",
    description: "Saves.",
    parameters: z.object({}),
    execute: async (_, run) => {
      await run.saveArtifact({ name, contentType: "text/html\r\nset-cookie: y=1", content: "<b>ü</b>" });
      return "saved";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "save" }] }, "Done."]);
  const { ask } = await checkedAsk(await served({ agents: [defineAgent({ name: "clerk", model, tools: [save] })] }));
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  const turn = await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "go" }, ...wait });
  expect(turn.body).toMatchObject({ status: "completed", result: { errors: [] } });
  const [artifact] = (await ask(`GET /api/agents/${agentId}/artifacts`)).as(pageOf(artifactInfoSchema)).items;
  const file = await ask(`GET /api/agents/${agentId}/artifacts/${artifact?.artifactId}`);
  expect(await file.response.text()).toBe("<b>ü</b>");
  expect([file.headers.get("content-type"), file.headers.get("set-cookie")]).toEqual([
    "application/octet-stream",
    null,
  ]);
  expect(file.headers.get("content-disposition")).toMatch(
    /^attachment; filename\*=UTF-8''a%22%0D%0Aset-cookie%3A[\w%.-]+$/,
  );
});

it("an artifact of bytes is downloaded as bytes, and named only by its own agent", async () => {
  const bytes = Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff, 0xd8]);
  const save = defineTool({
    name: "save",
    description: "Saves.",
    parameters: z.object({}),
    execute: async (_, run) => {
      await run.saveArtifact({ name: "scan.pdf", contentType: "application/pdf", content: bytes });
      await run.saveArtifact({ name: "page.svg", contentType: "image/svg+xml", content: bytes });
      return "saved";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "save" }] }, "Done."]);
  const { ask } = await checkedAsk(await served({ agents: [defineAgent({ name: "clerk", model, tools: [save] })] }));
  const { agentId } = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  await ask(`POST /api/agents/${agentId}/turns`, { body: { input: "go" }, ...wait });
  const { items } = (await ask(`GET /api/agents/${agentId}/artifacts`)).as(pageOf(artifactInfoSchema));
  expect(items.map(({ encoding, size }) => [encoding, size])).toEqual([
    ["base64", 7],
    ["base64", 7],
  ]);
  for (const { artifactId, contentType } of items) {
    const file = await ask(`GET /api/agents/${agentId}/artifacts/${artifactId}`);
    expect(Buffer.from(await file.response.arrayBuffer())).toEqual(bytes);
    expect(Object.fromEntries(file.headers)).toMatchObject({
      "content-type": contentType,
      "content-disposition": expect.stringMatching(/^attachment;/) as unknown,
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
    });
  }
  // Other agents of the same caller cannot name them in their input.
  const other = (await ask("POST /api/agents", { body: { definition: "clerk" } })).as(agentSchema);
  const part = { type: "file", mediaType: "application/pdf", artifactId: items[0]?.artifactId };
  const stolen = await ask(`POST /api/agents/${other.agentId}/turns`, { body: { input: [part] } });
  expect([stolen.status, stolen.as(errorSchema).error.message]).toEqual([400, expect.stringContaining("no artifact")]);
});

it("a caller whom mayDecide forbids a decision is answered 403, and the request still waits", async () => {
  const { ask } = await served({ mayDecide: ({ verdict }) => verdict === "rejected" });
  const made = agentSchema.parse(await (await ask("POST /api/agents", { body: { definition: "clerk" } })).json());
  const begun = await ask(`POST /api/agents/${made.agentId}/turns`, {
    body: { input: "remove" },
    headers: { prefer: "wait=30" },
  });
  const [request] = turnSchema.parse(await begun.json()).requests;
  const place = `POST /api/requests/${request?.requestId.replace("#", ".")}`;
  const argumentsHash = request?.argumentsHash;
  const refused = await ask(place, { body: { verdict: "approved", argumentsHash } });
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: "policy_refused" } }]);
  expect((await ask(place, { body: { verdict: "rejected", argumentsHash } })).status).toBe(200);
});

it("the marker of an agent's creator cannot be set, and is not shown", async () => {
  const { ask } = await served();
  const body = { definition: "clerk", metadata: { desk: 7 } };
  const forged = { ...body, metadata: { "troupe:created-by": "x" } };
  expect((await ask("POST /api/agents", { body: forged })).status).toBe(400);
  const headers = { "idempotency-key": "one" };
  const made = await (await ask("POST /api/agents", { body, headers })).text();
  const { agentId } = agentSchema.parse(JSON.parse(made));
  const turn = await ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "chat" },
    headers: { accept: "text/event-stream" },
  });
  const places = [
    "agents",
    `agents/${agentId}`,
    `agents/${agentId}/state`,
    `trees/${agentId}`,
    `agents/${agentId}/turns/1`,
  ];
  const read = await Promise.all(places.map(async (place) => await (await ask(`GET /api/${place}`)).text()));
  const shown = [made, await turn.text(), ...read];
  expect(shown.filter((text) => text.includes("created-by"))).toEqual([]);
  expect(read[1]).toContain('"metadata":{"desk":7}');
});
