// Schedules over HTTP: what an owner may set, and what another one sees of it.
import { createRuntime, defineAgent, type Runtime } from "troupe";
import { apiSurface, type ServeLimits } from "troupe/server";
import { createFakeClock, type FakeClock, scriptedModel } from "troupe/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { loopTurns } from "../../support/journal-probes.ts";
import { type Asked, serve } from "../served.ts";

const MINUTE = 60_000;
const start = Date.UTC(2026, 0, 1);
const desk = defineAgent({ name: "desk", model: scriptedModel(() => "done"), budget: { maxSteps: 5 } });

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint: the fields are asserted one by one.
  readonly body: Record<string, unknown> & { readonly scheduleId: string };
}

interface Stage {
  readonly runtime: Runtime;
  readonly clock: FakeClock;
  readonly ask: (what: string, asked?: Asked) => Promise<Answer>;
  readonly pass: (ms: number) => Promise<void>;
}

async function staged(limits: ServeLimits = {}): Promise<Stage> {
  const clock = createFakeClock(start);
  const runtime = await createRuntime({ agents: [desk], clock });
  onTestFinished(() => runtime.shutdown());
  const served = serve(runtime, { surfaces: [apiSurface()], limits, clock });
  const ask: Stage["ask"] = async (what, asked = {}) => {
    const [method = "GET", path = ""] = what.split(" ");
    const response = await served.ask(path, { method, ...asked });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Answer["body"] };
  };
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= MINUTE) {
      clock.advance(Math.min(MINUTE, left));
      await loopTurns(6);
    }
  };
  return { runtime, clock, ask, pass };
}

const hourly = { definition: "desk", input: "Look.", every: "1h" };
const keyed = (key: string) => ({ headers: { "idempotency-key": key } });

test("an owner creates, lists, reads, pauses, resumes, runs and deletes a schedule", async () => {
  const { runtime, ask, pass } = await staged();
  const metadata = { title: "Hourly" };
  const made = await ask("POST /api/schedules", {
    body: { ...hourly, key: "watch", metadata, budget: { maxSteps: 2 } },
  });
  expect(made.status).toBe(201);
  const { scheduleId } = made.body;
  expect(made.headers.get("location")).toBe(`/api/schedules/${scheduleId}`);
  expect(made.body).toMatchObject({
    definition: "desk",
    nextAt: start + 60 * MINUTE,
    metadata,
    budget: { maxSteps: 2 },
  });
  expect(Object.keys(made.body)).not.toEqual(expect.arrayContaining(["tenant"]));
  expect(made.body).not.toHaveProperty("ownerId");
  await pass(61 * MINUTE);
  const { body } = await ask(`GET /api/schedules/${scheduleId}`);
  expect(body).toMatchObject({ counts: { opened: 1 }, runs: [{ at: start + 60 * MINUTE, outcome: "opened" }] });
  const [turn] = await runtime.turns();
  expect(turn).toMatchObject({ ownerId: "ann", status: "completed" });
  expect((await ask(`POST /api/schedules/${scheduleId}/pause`)).body["pausedAt"]).toBe(start + 61 * MINUTE);
  expect((await ask(`POST /api/schedules/${scheduleId}/run`)).body).toMatchObject({ outcome: "opened" });
  expect((await ask(`POST /api/schedules/${scheduleId}/resume`)).body).toMatchObject({ pausedAt: null });
  expect((await ask("GET /api/schedules")).body["items"]).toMatchObject([{ scheduleId, counts: { opened: 2 } }]);
  expect((await ask(`DELETE /api/schedules/${scheduleId}`)).body).toMatchObject({ scheduleId });
  expect((await ask(`GET /api/schedules/${scheduleId}`)).status).toBe(404);
  expect((await ask("GET /api/schedules")).body["items"]).toEqual([]);
});

test("a list has pages, and those of one agent", async () => {
  const { ask } = await staged();
  const agent = await ask("POST /api/agents", { body: { definition: "desk" } });
  const agentId = String(agent.body["agentId"]);
  for (const key of ["a", "b", "c"]) {
    const of = key === "a" ? { agentId } : {};
    await ask("POST /api/schedules", { body: { ...hourly, key, ...of } });
  }
  const first = await ask("GET /api/schedules?limit=2");
  const rest = await ask(`GET /api/schedules?limit=2&after=${String(first.body["next"])}`);
  expect(rest.body).toMatchObject({ items: [{}], next: null });
  const ids = [first, rest].flatMap(({ body }) =>
    (body["items"] as Answer["body"][]).map(({ scheduleId }) => scheduleId),
  );
  expect(new Set(ids).size).toBe(3);
  expect((await ask(`GET /api/schedules?agent=${agentId}`)).body["items"]).toMatchObject([{ agentId }]);
});

test("a name is the same schedule of its owner, and replaced; another owner's is another one", async () => {
  const { ask } = await staged();
  const one = await ask("POST /api/schedules", { body: { ...hourly, key: "watch" } });
  const again = await ask("POST /api/schedules", { body: { ...hourly, key: "watch", every: "2h" } });
  expect([again.status, again.body.scheduleId]).toEqual([200, one.body.scheduleId]);
  expect(again.body).toMatchObject({ times: { everyMs: 120 * MINUTE } });
  const other = await ask("POST /api/schedules", { as: "bob", body: { ...hourly, key: "watch" } });
  expect(other.status).toBe(201);
  expect(other.body.scheduleId).not.toBe(one.body.scheduleId);
});

test("an idempotency key creates one schedule and runs it once, and is refused with another body", async () => {
  const { runtime, ask } = await staged();
  const [one, two] = await Promise.all([
    ask("POST /api/schedules", { body: hourly, ...keyed("k1") }),
    ask("POST /api/schedules", { body: hourly, ...keyed("k1") }),
  ]);
  expect(two.body.scheduleId).toBe(one.body.scheduleId);
  const replayed = await ask("POST /api/schedules", { body: hourly, ...keyed("k1") });
  expect([replayed.status, replayed.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
  expect((await ask("POST /api/schedules", { body: { ...hourly, every: "2h" }, ...keyed("k1") })).status).toBe(422);
  const run = `POST /api/schedules/${one.body.scheduleId}/run`;
  const runs = await Promise.all([ask(run, keyed("go")), ask(run, keyed("go")), ask(run, keyed("other"))]);
  const turns = runs.map(({ body }) => body["turnId"]);
  expect(turns[1]).toBe(turns[0]);
  expect(turns[2]).not.toBe(turns[0]);
  const last = await ask(run, keyed("go"));
  expect([last.body["turnId"], last.headers.get("idempotency-replayed")]).toEqual([turns[0], "true"]);
  expect(await runtime.turns()).toHaveLength(2);
  expect((await runtime.schedules.get(one.body.scheduleId))?.counts.opened).toBe(2);
});

describe("an owner may not", () => {
  test.each<[string, object, number, RegExp]>([
    ["run a definition that is not served", { definition: "secret" }, 404, /unknown agent definition/],
    ["raise the limits of the definition", { budget: { maxSteps: 6 } }, 403, /budget.maxSteps exceeds/],
    ["set one deadline for all turns", { budget: { deadline: "2027-01-01" } }, 400, /deadline/],
    ["run more often than every minute", { every: "59s" }, 400, /less than 60 seconds apart/],
    ["run each second by a pattern", { every: undefined, cron: "* * * * * *" }, 400, /less than 60 seconds apart/],
    ["run twice in a minute once a day", { every: undefined, cron: "0,1 0 0 * * *" }, 400, /less than 60 seconds/],
    ["set no time", { every: undefined }, 400, /exactly one of at, every and cron/],
    ["set a time that has passed", { every: undefined, at: "2025-01-01T00:00Z" }, 400, /no time is left/],
    ["use an agent that does not exist", { agentId: "unknown" }, 404, /there is no such agent/],
    ["act as another user", { actorId: "bob" }, 400, /actorId/],
    ["set another owner", { ownerId: "bob" }, 400, /ownerId/],
    ["mark metadata like the server", { metadata: { "troupe:created-by": "x" } }, 400, /reserved/],
    ["steer new agents", { ifBusy: "steer" }, 400, /each run has a new agent/],
    ["store a long input", { input: "x".repeat(200_001) }, 413, /./],
  ])("%s", async (_title, change, status, message) => {
    const { runtime, ask } = await staged();
    const { status: got, body } = await ask("POST /api/schedules", { body: { ...hourly, ...change } });
    expect([got, (body["error"] as { message: string }).message]).toEqual([status, expect.stringMatching(message)]);
    expect(await runtime.schedules.list()).toEqual([]);
  });

  test("use an agent of another owner, or a subagent", async () => {
    const { runtime, ask } = await staged();
    const agent = await ask("POST /api/agents", { as: "bob", body: { definition: "desk" } });
    const body = { ...hourly, agentId: agent.body["agentId"] };
    const refused = await ask("POST /api/schedules", { body });
    expect([refused.status, refused.body["error"]]).toMatchObject([404, { message: "there is no such agent" }]);
    expect(await runtime.schedules.list()).toEqual([]);
  });

  test("have more schedules than allowed, whether requests come one by one or at once", async () => {
    const { runtime, ask, pass } = await staged({ schedules: 3 });
    const all = await Promise.all(Array.from({ length: 8 }, () => ask("POST /api/schedules", { body: hourly })));
    const made = all.filter(({ status }) => status === 201);
    expect(made.length).toBeLessThanOrEqual(3);
    while ((await runtime.schedules.list()).length < 3) {
      expect((await ask("POST /api/schedules", { body: { ...hourly, endAt: start + 61 * MINUTE } })).status).toBe(201);
    }
    expect((await ask("POST /api/schedules", { body: hourly })).status).toBe(403);
    expect((await ask("POST /api/schedules", { as: "bob", body: hourly })).status).toBe(201);
    await pass(62 * MINUTE);
    const [stored] = await runtime.schedules.list({ ownerId: "ann" });
    expect((await ask(`DELETE /api/schedules/${stored?.key}`)).status).toBe(200);
    expect((await ask("POST /api/schedules", { body: hourly })).status).toBe(201);
  });

  test("start more turns through schedules than by themselves", async () => {
    const { ask, clock } = await staged({ turnsPerMinute: 3 });
    const body = { ...hourly, every: undefined, at: clock.now() + 1_000 };
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) statuses.push((await ask("POST /api/schedules", { body })).status);
    expect(statuses).toEqual([201, 201, 201, 429]);
    const { body: listed } = await ask("GET /api/schedules");
    const [one] = listed["items"] as Answer["body"][];
    expect((await ask(`POST /api/schedules/${one?.scheduleId}/run`)).status).toBe(429);
  });

  test("see or change a schedule of another owner, which is answered like a missing one", async () => {
    const { runtime, ask } = await staged();
    const { body } = await ask("POST /api/schedules", { body: hourly });
    await runtime.schedule("by-code", { agent: desk, input: "x", every: "1h" });
    const before = await runtime.schedules.list();
    for (const id of [body.scheduleId, "by-code"]) {
      for (const what of ["GET %", "DELETE %", "POST %/pause", "POST %/resume", "POST %/run"]) {
        const at = (name: string) => what.replace("%", `/api/schedules/${name}`);
        const [theirs, missing] = [await ask(at(id), { as: "bob" }), await ask(at("missing"), { as: "bob" })];
        expect([theirs.status, theirs.body]).toEqual([missing.status, missing.body]);
        expect(theirs.status).toBe(404);
      }
    }
    expect((await ask("GET /api/schedules", { as: "bob" })).body["items"]).toEqual([]);
    expect(await runtime.schedules.list()).toEqual(before);
  });
});

test("an id that no schedule can have is not found", async () => {
  const { ask } = await staged();
  for (const id of ["%20", "a%2Fb", "x".repeat(200), "%23", "..%2F..", "%F0%9F%98%80"]) {
    expect((await ask(`GET /api/schedules/${id}`)).status).toBe(404);
  }
});

test("deleting the agent removes its schedules", async () => {
  const { ask } = await staged();
  const agent = await ask("POST /api/agents", { body: { definition: "desk" } });
  const { body } = await ask("POST /api/schedules", { body: { ...hourly, agentId: agent.body["agentId"] } });
  expect((await ask(`DELETE /api/agents/${String(agent.body["agentId"])}`)).status).toBe(200);
  expect((await ask(`GET /api/schedules/${body.scheduleId}`)).status).toBe(404);
});
