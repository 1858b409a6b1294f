import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { sqliteStores } from "troupe/stores/sqlite";
import { agentSchema } from "../../../src/server/api/agent-json.ts";
import { turnSchema } from "../../../src/server/api/turn-json.ts";
import { bob, type Frame, framesOf, served, type Served } from "./served.ts";

const wait = { prefer: "wait=30" };

async function createAgent({ ask }: Served): Promise<string> {
  return agentSchema.parse(await (await ask("POST /api/agents", { body: { definition: "clerk" } })).json()).agentId;
}

/** Reads frames until one of that type, then cancels the stream. */
async function readUntil(response: Response, type: string): Promise<Frame[]> {
  const frames: Frame[] = [];
  for await (const frame of framesOf(response)) {
    frames.push(frame);
    if (frame.event === type) return frames;
  }
  return frames;
}

function idsOf(frames: readonly Frame[]): string[] {
  return frames.flatMap(({ id }) => id ?? []);
}

async function follow({ ask }: Served, agentId: string, lastId?: string): Promise<Response> {
  const headers: Record<string, string> = lastId === undefined ? {} : { "last-event-id": lastId };
  return await ask(`GET /api/trees/${agentId}/events`, { headers });
}

it("a stream that is cut after any event continues after it, without gaps or duplicates", async () => {
  const here = await served();
  const agentId = await createAgent(here);
  for (const input of ["delegate", "save"]) {
    await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input }, headers: wait });
  }
  const whole = idsOf(await readUntil(await follow(here, agentId), "artifact.saved"));
  expect(whole.length).toBeGreaterThan(20);
  for (const [index, id] of whole.slice(0, -1).entries()) {
    const rest = await readUntil(await follow(here, agentId, id), "artifact.saved");
    expect(idsOf(rest)).toEqual(whole.slice(index + 1));
  }
});

it("continues in another process, after a restart, with the same events as an undisturbed stream", async () => {
  const folder = mkdtempSync(join(tmpdir(), "troupe-streams-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "agents.sqlite");
  const first = await served({ stores: sqliteStores(path) });
  const agentId = await createAgent(first);
  const started = await first.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "remove" }, headers: wait });
  const [request] = turnSchema.parse(await started.json()).requests;
  const before = await readUntil(await follow(first, agentId), "request.opened");
  await first.server.close();
  await first.runtime.shutdown();

  const second = await served({ stores: sqliteStores(path) });
  const stream = await follow(second, agentId, idsOf(before).at(-1));
  const place = `/api/requests/${request?.requestId.replace("#", ".")}`;
  const { argumentsHash } = request ?? {};
  await second.runtime.recover();
  expect((await second.ask(`POST ${place}`, { body: { verdict: "approved", argumentsHash } })).status).toBe(200);
  const after = await readUntil(stream, "turn.completed");
  const undisturbed = await readUntil(await follow(second, agentId), "turn.completed");
  expect([...idsOf(before), ...idsOf(after)]).toEqual(idsOf(undisturbed));
  expect([...before, ...after].filter(({ id }) => id)).toEqual(undisturbed.filter(({ id }) => id));
});

it("the stream of a turn has the same events as in the turn's process, including subagents, and ends with the turn", async () => {
  const here = await served();
  const agentId = await createAgent(here);
  await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "chat" }, headers: wait });
  const stream = await here.ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "delegate" },
    headers: { accept: "text/event-stream" },
  });
  const frames = await readUntil(stream, "none");
  const own: (string | null)[] = [];
  for await (const { cursor } of (await here.runtime.find(agentId)).turn(`${agentId}#2`)) own.push(cursor);
  expect(idsOf(frames)).toEqual(own.filter((cursor) => cursor !== null));
  const again = await here.ask(`GET /api/agents/${agentId}/turns/2`, { headers: { accept: "text/event-stream" } });
  expect(idsOf(await readUntil(again, "none"))).toEqual(idsOf(frames));
  const texts = frames.filter(({ event, data }) => event === "text.delta" && data["agentId"] === agentId);
  expect(texts.every(({ id, data }) => id === undefined && typeof data["text"] === "string")).toBe(true);
});

it("text arrives as it is written, without an id", async () => {
  const here = await served();
  const agentId = await createAgent(here);
  const stream = await here.ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "chat" },
    headers: { accept: "text/event-stream" },
  });
  const frames = await readUntil(stream, "none");
  const pieces = frames.filter(({ event }) => event === "text.delta");
  expect(pieces.map(({ data }) => data["text"])).toEqual(["Parcel A ", "weighs ", "3 kg."]);
  expect(pieces.every(({ id }) => id === undefined)).toBe(true);
});

it("from=now skips the past, ?after= continues like Last-Event-ID, and other cursors are refused", async () => {
  const here = await served();
  const agentId = await createAgent(here);
  await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "chat" }, headers: wait });
  const whole = await readUntil(await follow(here, agentId), "turn.completed");
  const [first = ""] = idsOf(whole);
  const later = await here.ask(`GET /api/trees/${agentId}/events?after=${first}`);
  expect(idsOf(await readUntil(later, "turn.completed"))).toEqual(idsOf(whole).slice(1));
  const now = await here.ask(`GET /api/trees/${agentId}/events?from=now`);
  await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "chat" }, headers: wait });
  const fresh = await readUntil(now, "turn.completed");
  expect(fresh.every(({ data }) => data["turnId"] === `${agentId}#2` || data["turnId"] === null)).toBe(true);
  for (const place of [`/api/trees/${agentId}/events?after=x`, `/api/trees/${agentId}/events?from=then`]) {
    expect((await here.ask(`GET ${place}`)).status).toBe(400);
  }
  expect((await follow(here, agentId, "1; DROP")).status).toBe(400);
});

it("a tree and its cursor match the events after that cursor", async () => {
  const here = await served();
  const agentId = await createAgent(here);
  await here.ask(`POST /api/agents/${agentId}/turns`, { body: { input: "remove" }, headers: wait });
  const tree = (await (await here.ask(`GET /api/trees/${agentId}`)).json()) as { cursor: string; requests: object[] };
  expect(tree.requests).toHaveLength(1);
  const past = await readUntil(await follow(here, agentId), "turn.waiting");
  const later = await follow(here, agentId, tree.cursor);
  await here.ask(`POST /api/agents/${agentId}/abort`);
  const after = await readUntil(later, "turn.stopped");
  expect([...idsOf(past), ...idsOf(after)]).toEqual(
    idsOf(await readUntil(await follow(here, agentId), "turn.stopped")),
  );
});

it("a client that leaves ends its stream, and the turn continues", async () => {
  const here = await served({}, { metrics: "open" });
  const agentId = await createAgent(here);
  const leaving = new AbortController();
  const stream = await here.ask(`POST /api/agents/${agentId}/turns`, {
    body: { input: "remove" },
    headers: { accept: "text/event-stream" },
    signal: leaving.signal,
  });
  await readUntil(stream, "turn.waiting");
  leaving.abort();
  await stream.body?.cancel().catch(() => undefined);
  expect(await (await here.ask("GET /metrics")).text()).toMatch(/streams[^\n]* 0\n/);
  const turn = await here.ask(`GET /api/agents/${agentId}/turns/1`);
  expect(turnSchema.parse(await turn.json()).status).toBe("waiting");
});

it("a ticket opens one stream of its tree, once, within 30 seconds", async () => {
  const here = await served();
  const [agentId, other] = [await createAgent(here), await createAgent(here)];
  const issue = async (): Promise<string> => {
    const response = await here.ask("POST /api/tickets", { body: { rootAgentId: agentId } });
    return ((await response.json()) as { url: string }).url;
  };
  const open = async (url: string): Promise<number> => {
    const response = await here.ask(`GET ${url}`, { token: null });
    await response.body?.cancel();
    return response.status;
  };
  const url = await issue();
  expect([await open(url), await open(url)]).toEqual([200, 401]);
  expect(await open((await issue()).replace(agentId, other))).toBe(401);
  expect(await open(`/api/trees/${agentId}/events?ticket=none`)).toBe(401);
  const byBob = await here.ask("POST /api/tickets", { token: bob, body: { rootAgentId: agentId } });
  expect(byBob.status).toBe(404);
  const elsewhere = await issue();
  const ticket = elsewhere.slice(elsewhere.indexOf("?"));
  expect(await open(`/api/agents/${agentId}${ticket}`)).toBe(401);
});
