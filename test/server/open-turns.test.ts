import { createRuntime, defineAgent, type Runtime } from "troupe";
import { apiSurface } from "troupe/server";
import { createFakeClock, scriptedModel } from "troupe/testing";
import { expect, it, onTestFinished } from "vitest";
import { routeAt, type Served, serve, surfaceOf } from "./served.ts";

/** A server whose agents answer once the test releases them. */
async function slow(openTurns: number): Promise<Served & { readonly runtime: Runtime; readonly answer: () => void }> {
  const told = Promise.withResolvers<void>();
  const model = scriptedModel(async () => {
    await told.promise;
    return { text: "done" };
  });
  const runtime = await createRuntime({ agents: [defineAgent({ name: "desk", model })] });
  onTestFinished(async () => {
    told.resolve();
    await runtime.shutdown();
  });
  return { ...serve(runtime, { surfaces: [apiSurface()], limits: { openTurns } }), runtime, answer: told.resolve };
}

async function newAgent({ ask }: Served, as: "ann" | "bob" = "ann"): Promise<string> {
  const made = await ask("/api/agents", { as, method: "POST", body: { definition: "desk" } });
  return ((await made.json()) as { agentId: string }).agentId;
}

const start = (agentId: string, as: "ann" | "bob" = "ann") =>
  [`/api/agents/${agentId}/turns`, { as, method: "POST", body: { input: "go", ifBusy: "queue" } }] as const;

it("queued turns count as open ones", async () => {
  const served = await slow(3);
  const agentId = await newAgent(served);
  const statuses = [];
  for (let turn = 1; turn <= 4; turn += 1) statuses.push((await served.ask(...start(agentId))).status);
  expect(statuses).toEqual([202, 202, 202, 429]);
  expect((await served.runtime.turns({ status: "queued" })).length).toBe(2);
  expect((await served.ask(...start(await newAgent(served, "bob"), "bob"))).status).toBe(202);
  served.answer();
  await expect.poll(async () => (await served.ask(...start(agentId))).status).toBe(202);
});

it("turns that start concurrently do not exceed the limit together", async () => {
  const served = await slow(5);
  const agents = await Promise.all(Array.from({ length: 20 }, () => newAgent(served)));
  const answers = await Promise.all(agents.map((agentId) => served.ask(...start(agentId))));
  const started = answers.filter(({ status }) => status === 202).length;
  expect(answers.map(({ status }) => status).filter((status) => status !== 202 && status !== 429)).toEqual([]);
  expect(started).toBeGreaterThan(0);
  expect(started).toBeLessThanOrEqual(5);
  expect(await served.runtime.turns({ status: "open" })).toHaveLength(started);
  // The refused ones do not count afterwards.
  const rest = [];
  for (const agentId of agents) rest.push((await served.ask(...start(agentId))).status);
  expect(started + rest.filter((status) => status === 202).length).toBe(5);
});

it("a request above the limit of waiting requests is answered immediately, with the current state", async () => {
  const served = await slow(10);
  const clock = createFakeClock();
  const { ask } = serve(served.runtime, { surfaces: [apiSurface()], limits: { waitsPerCaller: 1 }, clock });
  const [one, two] = [await newAgent(served), await newAgent(served)];
  const wait = { headers: { prefer: "wait=30" } };
  const [path, init] = start(one);
  const waiting = ask(path, { ...init, ...wait });
  await expect.poll(async () => (await served.runtime.turns({ status: "open" })).length).toBe(1);
  const [otherPath, otherInit] = start(two);
  const atOnce = await ask(otherPath, { ...otherInit, ...wait });
  expect([atOnce.status, await atOnce.json()]).toMatchObject([202, { status: "running" }]);
  expect((await ask(`/api/agents/${two}/turns/1`, wait)).status).toBe(200);
  served.answer();
  expect((await waiting).status).toBe(200);
  // The slot is free again.
  expect(await (await ask(`/api/agents/${two}/turns/1`, wait)).json()).toMatchObject({ status: "completed" });
});

it("a handler that may not wait does not receive the result", async () => {
  const { runtime } = await slow(1);
  const late = Promise.withResolvers<never>();
  const wait = routeAt("wait", async (call) => Response.json((await call.within(late.promise, 1_000)) ?? null));
  const { ask } = serve(runtime, { surfaces: [surfaceOf(wait)], limits: { waits: 1 } });
  const first = ask("/test/wait");
  expect(await (await ask("/test/wait")).json()).toBeNull();
  late.reject(new Error("failed"));
  expect((await first).status).toBe(500);
});
