import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent } from "troupe";
import { ServerError } from "troupe/server";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { tealSurface } from "../../../src/server/teal/teal-surface.ts";
import { serve } from "../served.ts";
import { address, deletion, tealServed, text, uuid } from "./teal-served.ts";

describe("T4: the status of a task", () => {
  const ids = { session_id: uuid, task_id: uuid, request_id: uuid };
  test("history, trace, owner and times are stored, and nothing is removed", async () => {
    const teal = await tealServed({ script: [deletion, "gone"] });
    const { json } = await teal.post("", text("delete"));
    await teal.post(`/tealagents/v1alpha1/resume/${json.request_id}`, { action: "approve" });
    const [record] = await teal.runtime.list({ rootsOnly: true });
    expect(record).toMatchObject({ agentId: json.task_id, sessionId: json.session_id, ownerId: "ann" });
    expect(record?.createdAt).toBeGreaterThan(0);
    const agent = await teal.runtime.find(json.task_id);
    expect((await agent.getMessages()).map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
    expect((await agent.getTrace()).length).toBeGreaterThan(0);
    expect(agent.state.lastActivity).toBeGreaterThanOrEqual(record?.createdAt ?? 0);
  });

  test("failed: 500 with the reason and the ids", async () => {
    const teal = await tealServed({ script: { error: new Error("no luck") } });
    const { status, json } = await teal.post("", text("a"));
    expect([status, json]).toEqual([500, { detail: expect.stringContaining("no luck"), ...ids }]);
  });

  test("the step limit: completed with the text so far, failed without any", async () => {
    const agent = { budget: { maxSteps: 1, finalAnswer: false } };
    const withText = await tealServed({ agent, script: { text: "So far", toolCalls: [{ name: "ask_nobody" }] } });
    expect(await withText.post("", text("a"))).toMatchObject({
      status: 200,
      json: { status: "Completed", content: { output: "So far" } },
    });
    const without = await tealServed({ agent, script: { toolCalls: [{ name: "ask_nobody" }] } });
    expect(await without.post("", text("a"))).toMatchObject({
      status: 500,
      json: { detail: expect.stringMatching(/^Task incomplete: step limit/), ...ids },
    });
  });

  test("aborted: canceled", async () => {
    const gate = Promise.withResolvers<void>();
    const teal = await tealServed({
      script: async () => {
        const [record] = await teal.runtime.list();
        const agent = await teal.runtime.find(record?.agentId ?? "");
        await agent.abort();
        return { text: "never", delayUntil: gate.promise };
      },
    });
    const { status, json } = await teal.post("", text("a"));
    expect([status, json]).toMatchObject([
      200,
      { ...ids, status: "Canceled", content: { message: "Tool excecution rejected." } },
    ]);
    gate.resolve();
  });

  test("paused by its operator: shown without calls, and not resumed by a verdict", async () => {
    const gate = Promise.withResolvers<void>();
    const pausing = Promise.withResolvers<Promise<void>>();
    const teal = await tealServed({
      script: async () => {
        const [record] = await teal.runtime.list();
        const agent = await teal.runtime.find(record?.agentId ?? "");
        pausing.resolve(agent.pause({ now: true }));
        return { text: "later", delayUntil: gate.promise };
      },
    });
    const paused = await teal.post("", text("a"));
    await pausing.promise;
    expect(paused.json).toMatchObject({
      status: "Paused",
      content: { message: "The task is paused.", tool_calls: [] },
    });
    const resumed = await teal.post(`/tealagents/v1alpha1/resume/${paused.json.request_id}`, { action: "approve" });
    expect(resumed.status).toBe(409);
    gate.resolve();
  });
});

const authenticate = () => {
  throw new ServerError("unavailable", "the key server is away");
};

describe("T6: callers", () => {
  test("without a valid token are refused alike on every route, before anything else", async () => {
    const teal = await tealServed({ script: "ok" });
    const resume = "/tealagents/v1alpha1/resume/33333333-3333-4333-8333-333300000001";
    for (const path of [
      address,
      `${address}/sse`,
      `${address}${resume}`,
      `${address}${resume}/sse`,
      resume,
      `${resume}/sse`,
    ]) {
      for (const authorization of ["", "Bearer wrong-token-0000001", "Basic YW5uOmFubg=="]) {
        const response = await teal.ask(path, { method: "POST", body: { items: 7 }, headers: { authorization } });
        expect([path, response.status, await response.json()]).toEqual([
          path,
          401,
          { detail: "Authentication required" },
        ]);
      }
    }
    expect(await teal.runtime.list()).toEqual([]);
  });

  test("are identified by a port, which may be unavailable for a while", async () => {
    const teal = await tealServed({ script: "ok", serve: { authenticate } });
    expect(await teal.post("", text("a"))).toMatchObject({ status: 503, json: { detail: "the key server is away" } });
  });
});

describe("T7: persistence", () => {
  test("a task continues in another process, on a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "teal-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, "tasks.db");
    const first = await tealServed({ script: [deletion], runtime: { stores: sqliteStores(path) } });
    const { json } = await first.post("", text("delete"));
    await first.runtime.shutdown();
    const second = await tealServed({ script: ["gone", "hello again"], runtime: { stores: sqliteStores(path) } });
    const { task_id, request_id, session_id } = json;
    const resumed = await second.post(`/tealagents/v1alpha1/resume/${request_id}`, { action: "approve" });
    expect(resumed).toMatchObject({ status: 200, json: { task_id, session_id, request_id, output: "gone" } });
    expect(second.runs).toHaveLength(1);
    const next = await second.post("", { ...text("still there?"), task_id });
    expect(next.json).toMatchObject({ status: "Completed", content: { output: "hello again" } });
  });

  test("of concurrent follow-ups one is accepted, and the others receive the running request", async () => {
    const gate = Promise.withResolvers<void>();
    const teal = await tealServed({
      script: (_, { index }) => (index === 0 ? "first" : { text: "second", delayUntil: gate.promise }),
    });
    const { json } = await teal.post("", text("a"));
    const { task_id } = json;
    const started = Array.from({ length: 10 }, () => teal.post("", { ...text("b"), task_id }));
    const losers = await new Promise<number[]>((resolve) => {
      const statuses: number[] = [];
      for (const one of started) void one.then(({ status }) => statuses.push(status) === 9 && resolve(statuses));
    });
    expect(losers).toEqual(Array.from({ length: 9 }, () => 409));
    gate.resolve();
    const all = await Promise.all(started);
    const [winner] = all.filter(({ status }) => status === 200);
    const named = all.filter(({ status }) => status === 409).map(({ json: told }) => told["request_id"]);
    expect(new Set(named)).toEqual(new Set([winner?.json.request_id]));
  });

  test("a store that does not answer is 503, a corrupt record is 500 and left unchanged", async () => {
    const teal = await tealServed({ script: "ok" });
    const { json } = await teal.post("", text("a"));
    const { stores } = teal.runtime;
    const { StoreUnavailableError, CorruptRecordError } = await import("troupe");
    const read = vi.spyOn(stores, "readAgent");
    read.mockRejectedValueOnce(new StoreUnavailableError("the disk /secret/path is gone"));
    const away = await teal.post("", { ...text("b"), task_id: json.task_id });
    expect([away.status, away.json, away.headers.get("retry-after")]).toEqual([
      503,
      { detail: "the store does not respond; try again" },
      "1",
    ]);
    read.mockRejectedValueOnce(new CorruptRecordError("record 7 does not fit"));
    const corrupt = await teal.post("", { ...text("b"), task_id: json.task_id });
    expect([corrupt.status, corrupt.json]).toEqual([500, { detail: "the server failed" }]);
    read.mockRestore();
    expect((await teal.post("", { ...text("b"), task_id: json.task_id })).status).toBe(200);
  });
});

test("T8: a request that takes too long is answered 504 with its ids, and continues", async () => {
  const gate = Promise.withResolvers<void>();
  const teal = await tealServed({ script: { text: "late", delayUntil: gate.promise }, serve: { waitMs: 20 } });
  const { status, json } = await teal.post("", text("a"));
  expect([status, json]).toEqual([
    504,
    { detail: expect.any(String), session_id: uuid, task_id: uuid, request_id: uuid },
  ]);
  gate.resolve();
  const agent = await teal.runtime.find(json.task_id);
  expect(await agent.turn(`${json.task_id}#1`).result).toMatchObject({ status: "completed", text: "late" });
});

describe("T9: the metadata routes of an agent", () => {
  test("health, liveness, document and page are public", async () => {
    const teal = await tealServed({ script: "ok" });
    const get = async (path: string): Promise<Response> =>
      await teal.server.fetch(new Request(`http://127.0.0.1${address}${path}`));
    const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const health = await (await get("/health")).json();
    expect(health).toEqual({
      status: "healthy",
      timestamp,
      version: "0.1",
      uptime: expect.any(Number),
      dependencies: null,
    });
    expect(await (await get("/health/live")).json()).toEqual({ alive: true, timestamp });
    const document = (await (await get("/openapi.json")).json()) as { info: object; paths: object };
    expect(document.info).toMatchObject({ title: "MathAgent", version: "0.1" });
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([address, `${address}/sse`, `${address}/tealagents/v1alpha1/resume/{request_id}`]),
    );
    const page = await get("/docs");
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(await page.text()).toContain("MathAgent");
  });

  test("several agents have separate URLs, and tasks of one are unknown at another", async () => {
    const one = defineAgent({ name: "one", model: scriptedModel("1") });
    const two = defineAgent({ name: "two", model: scriptedModel("2") });
    const runtime = await createRuntime({ agents: [one, two] });
    onTestFinished(() => runtime.shutdown());
    const surface = tealSurface({
      agents: [
        { version: "1.0", definition: one },
        { version: "2.0", definition: two },
      ],
    });
    const { ask } = serve(runtime, { surfaces: [surface] });
    const first = (await (await ask("/one/1.0", { method: "POST", body: text("a") })).json()) as {
      task_id: string;
      request_id: string;
    };
    expect(first).toMatchObject({ content: { output: "1", source: "one:1.0" } });
    const strange = await ask("/two/2.0", { method: "POST", body: { ...text("a"), task_id: first.task_id } });
    expect(strange.status).toBe(404);
    const resume = `tealagents/v1alpha1/resume/${first.request_id}?action=approve`;
    expect((await ask(`/two/2.0/${resume}`, { method: "POST" })).status).toBe(404);
    expect((await ask(`/one/1.0/${resume}`, { method: "POST" })).status).toBe(409);
  });

  test("two agents at one URL, and a version that cannot be in a URL, are refused", () => {
    const definition = defineAgent({ name: "one", model: scriptedModel("1") });
    const served = { version: "1.0", definition };
    expect(() => tealSurface({ agents: [served, served] })).toThrow("two agents are at /one/1.0");
    expect(() => tealSurface({ agents: [{ version: "1/0", definition }] })).toThrow('agents[0].version is "1/0"');
    expect(() => tealSurface({ agents: [definition as never] })).toThrow("expected an agent { version, definition }");
  });
});
