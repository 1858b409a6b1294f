// Schedules under clocks that are wrong, agents that schedule without measure, busy agents, and two people at once.
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createRuntime,
  defineAgent,
  memoryStores,
  type Runtime,
  type RuntimeOptions,
  scheduleTurn,
  type Stores,
  textOf,
} from "../../src/index.ts";
import { StoredSchedules } from "../../src/runtime/index.ts";
import type { Schedule } from "../../src/state/index.ts";
import { createFakeClock, type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const start = Date.UTC(2026, 0, 1);

const desk = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
const hourly = { agent: "desk", input: "Look.", every: "1h" } as const;

interface Opened {
  readonly runtime: Runtime;
  readonly clock: FakeClock;
}

async function opened(stores: Stores, options: Partial<RuntimeOptions> = {}, now = start): Promise<Opened> {
  const clock = createFakeClock(now);
  const runtime = await createRuntime({ agents: [desk], stores, clock, ...options });
  onTestFinished(() => runtime.shutdown());
  return { runtime, clock };
}

/** Lets time pass in all processes alike. */
async function pass(clocks: readonly FakeClock[], ms: number, stepMs = 10 * MINUTE): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    for (const clock of clocks) clock.advance(Math.min(stepMs, left));
    await loopTurns(8);
    for (const clock of clocks) clock.advance(300);
    await loopTurns(8);
  }
}

/** Lets time pass in all processes until the work has ended. */
async function elapse(clocks: readonly FakeClock[], work: Promise<unknown>): Promise<void> {
  let isOver = false;
  const end = (): void => {
    isOver = true;
  };
  work.then(end, end);
  for (let round = 0; round < 5_000 && !isOver; round += 1) {
    for (const clock of clocks) clock.advance(50);
    await loopTurns(2);
  }
}

const keysOf = async (runtime: Runtime): Promise<string[]> =>
  (await runtime.turns({ limit: 1_000 })).map(({ key }) => key ?? "").sort();

describe("clocks", () => {
  test("a clock that jumps a year opens the newest 100 missed times at most, and counts about 1,000", async () => {
    const { runtime, clock } = await opened(memoryStores());
    await runtime.schedule("storm", { ...hourly, every: "1m", ifMissed: "all", agentId: "one" });
    clock.jump(365 * DAY);
    await pass([clock], MINUTE, 5 * SECOND);
    const { counts, nextAt } = (await runtime.schedules.get("storm")) as Schedule;
    expect(counts.opened + counts.busy).toBeLessThanOrEqual(102);
    expect(counts.opened).toBeGreaterThan(99);
    expect(counts.missed).toBeGreaterThan(800);
    expect(counts.missed).toBeLessThanOrEqual(1_000);
    expect(nextAt).toBeGreaterThan(clock.now());
    const last = (await keysOf(runtime)).at(-1)?.split("@")[1] ?? "";
    expect(Date.parse(last)).toBeGreaterThan(start + 365 * DAY);
  });

  test("after a clock was a year ahead, pause and resume bring a schedule back, and no time has two turns", async () => {
    const { runtime, clock } = await opened(memoryStores());
    await runtime.schedule("report", hourly);
    await pass([clock], HOUR + MINUTE);
    clock.jump(365 * DAY);
    await pass([clock], MINUTE, 10 * SECOND);
    clock.jump(-365 * DAY);
    await pass([clock], 2 * HOUR);
    expect((await runtime.schedules.get("report"))?.nextAt).toBeGreaterThan(start + 364 * DAY);
    await runtime.schedules.pause("report");
    expect((await runtime.schedules.resume("report")).nextAt).toBe(start + 4 * HOUR);
    await pass([clock], HOUR);
    const keys = await keysOf(runtime);
    expect(keys.filter((key) => key.includes("2026-01-01"))).toHaveLength(2);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("of two processes whose clocks are 30 seconds apart, one opens each time", async () => {
    const stores = memoryStores();
    const slow = await opened(stores);
    const fast = await opened(stores, {}, start + 30 * SECOND);
    await slow.runtime.schedule("report", { ...hourly, every: "10m", startAt: start + 10 * MINUTE });
    await pass([slow.clock, fast.clock], 40 * MINUTE, 20 * SECOND);
    const keys = await keysOf(slow.runtime);
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(4);
    expect((await slow.runtime.schedules.get("report"))?.counts).toEqual({ opened: 4, busy: 0, missed: 0, failed: 0 });
  });
});

test("an agent that schedules as much as it can in each turn stays at its limit", async () => {
  const call = { name: "schedule_turn", arguments: { message: "Again, and more.", every: "1m" } };
  let calls = 0;
  const model = scriptedModel(() => {
    calls += 1;
    return calls % 2 === 1 ? calling(...(Array.from({ length: 8 }, () => call) as never[])) : "done";
  });
  const greedy = defineAgent({ name: "greedy", model, tools: [...scheduleTurn()] });
  const { runtime, clock } = await opened(memoryStores(), { agents: [greedy] });
  const agent = await runtime.agent("greedy", { agentId: "a" });
  await agent.start();
  await agent.executeTurn("Go.").result;
  await pass([clock], 4 * MINUTE, 30 * SECOND);
  expect(await runtime.schedules.list()).toHaveLength(10);
  const turns = await runtime.turns({ limit: 1_000 });
  // At most ten schedules, each at most once a minute, and the first turn.
  expect(turns.length).toBeGreaterThan(15);
  expect(turns.length).toBeLessThanOrEqual(10 * 5 + 1);
});

test("among 10,000 schedules a look reads those that are due", async () => {
  const stores = memoryStores();
  let read = 0;
  const counted = new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      const member: unknown = target[name];
      if (typeof member !== "function") return member;
      if (!["dueSchedules", "schedules"].includes(name)) return member.bind(target);
      return async (...given: unknown[]): Promise<unknown> => {
        const answer: unknown = await Reflect.apply(member, target, given);
        read += (answer as unknown[]).length;
        return answer;
      };
    },
  });
  const { runtime, clock } = await opened(counted);
  await runtime.schedule("due", hourly);
  const row = (await stores.schedule("default", "due")) as Schedule;
  for (let index = 0; index < 10_000; index += 1) {
    await stores.putSchedule({ ...row, key: `later-${index}`, nextAt: start + 30 * DAY + index }, null);
  }
  read = 0;
  await pass([clock], HOUR + MINUTE);
  expect((await runtime.schedules.get("due"))?.counts.opened).toBe(1);
  expect(read).toBeLessThan(10);
});

test("an owner who is deleted while a process opens a run leaves nothing behind", async () => {
  const stores = memoryStores();
  const { runtime } = await opened(stores);
  await runtime.agent("desk", { agentId: "first", ownerId: "ann" });
  await runtime.schedule("report", { ...hourly, ownerId: "ann" });
  const removeSchedules = stores.removeSchedules.bind(stores);
  const listAgents = stores.listAgents.bind(stores);
  let isLate = false;
  const racing = new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      if (name === "removeSchedules") return removeSchedules;
      if (name !== "listAgents") return typeof target[name] === "function" ? target[name].bind(target) : target[name];
      return async (filter: Parameters<Stores["listAgents"]>[0]) => {
        const page = await listAgents(filter);
        // A process has read the schedule before it was removed, and creates the agent of its run only now.
        if (!isLate) await runtime.agent("desk", { agentId: "report-20260101T010000Z", ownerId: "ann" });
        isLate = true;
        return page;
      };
    },
  });
  const other = await opened(racing);
  const { trees } = await other.runtime.deleteOwner("ann");
  expect(trees.map(({ agentId }) => agentId).toSorted()).toEqual(["first", "report-20260101T010000Z"]);
  expect([await runtime.list({ ownerId: "ann" }), await runtime.schedules.list()]).toEqual([[], []]);
});

describe("runs on request", () => {
  test("the same key is one run, and calls without a key are one each, in any process", async () => {
    const stores = memoryStores();
    const one = await opened(stores);
    const two = await opened(stores);
    await one.runtime.schedule("report", hourly);
    const asked = Promise.all([
      one.runtime.schedules.runNow("report", { key: "click" }),
      two.runtime.schedules.runNow("report", { key: "click" }),
      one.runtime.schedules.runNow("report"),
      two.runtime.schedules.runNow("report"),
    ]);
    await elapse([one.clock, two.clock], asked);
    const runs = await asked;
    expect(runs[1].turnId).toBe(runs[0].turnId);
    expect(new Set(runs.map(({ turnId }) => turnId)).size).toBe(3);
    expect(await one.runtime.schedules.runNow("report", { key: "click" })).toMatchObject({ turnId: runs[0].turnId });
    expect((await one.runtime.schedules.get("report"))?.counts.opened).toBe(3);
    expect(await one.runtime.turns()).toHaveLength(3);
  });

  test("a run at the very moment of a scheduled time does not take its place", async () => {
    const { runtime, clock } = await opened(memoryStores());
    await runtime.schedule("report", hourly);
    clock.advance(HOUR);
    await runtime.schedules.runNow("report");
    await pass([clock], MINUTE, 5 * SECOND);
    expect(await runtime.turns()).toHaveLength(2);
  });

  test("a run requested in the store is opened once by a process with the definition, also of a paused schedule", async () => {
    const stores = memoryStores();
    const schedules = new StoredSchedules({
      stores,
      tenant: "default",
      clock: { now: () => start },
      assertOpen: () => undefined,
      onNext: () => undefined,
    });
    await schedules.set("report", "desk", { input: "Look.", every: HOUR });
    await schedules.pause("report");
    await Promise.all([schedules.ask("report", { key: "a" }), schedules.ask("report", { key: "a" })]);
    await schedules.ask("report", { key: "b" });
    expect((await schedules.find("report")).asked).toHaveLength(2);
    const processes = [await opened(stores), await opened(stores)];
    await pass(
      processes.map(({ clock }) => clock),
      MINUTE,
      5 * SECOND,
    );
    const { asked, counts, pausedAt } = await schedules.find("report");
    expect([asked, counts.opened, pausedAt]).toEqual([undefined, 2, start]);
    await schedules.ask("report", { key: "a" });
    expect(await stores.turns({ tenant: "default" })).toHaveLength(2);
    for (let index = 0; index < 100; index += 1) await schedules.ask("report", { key: `wait-${index}` });
    await expect(schedules.ask("report", { key: "more" })).rejects.toThrow("100 requested runs");
  });

  test.each([{ key: "" }, { key: "ä" }, { key: "x".repeat(256) }, { key: 7 }, { idempotencyKey: "a" }, 7])(
    "%o is refused",
    async (options) => {
      const { runtime } = await opened(memoryStores());
      await runtime.schedule("report", hourly);
      await expect(runtime.schedules.runNow("report", options as never)).rejects.toThrow(/key|options|runNow/);
      expect(await runtime.turns()).toEqual([]);
    },
  );
});

describe("a schedule whose agent is in a turn", () => {
  test("steers the turn, which sees the input once, or supersedes it", async () => {
    const gate = createGate<string>();
    const seen: string[][] = [];
    const slow = defineAgent({
      name: "slow",
      model: scriptedModel(async ({ messages }, { signal }) => {
        seen.push(messages.flatMap(({ role, content }) => (role === "user" ? textOf(content) : [])));
        return seen.length <= 2 ? ((await gate.pass(signal)) ?? "first") : "second";
      }),
    });
    const stores = memoryStores();
    const { runtime, clock } = await opened(stores, { agents: [slow] });
    for (const ifBusy of ["steer", "supersede"] as const) {
      const agent = await runtime.agent("slow", { agentId: ifBusy });
      await agent.start();
      await agent.executeTurn("Work.").id;
      await runtime.schedule(ifBusy, { ...hourly, agent: "slow", agentId: ifBusy, ifBusy, input: "News." });
    }
    await pass([clock], HOUR + MINUTE);
    gate.open("answer");
    await pass([clock], MINUTE, 5 * SECOND);
    const steered = await runtime.turns({ agentId: "steer" });
    expect(steered).toMatchObject([{ turnId: "steer#1", status: "completed", key: null }]);
    expect(seen.at(-1)).toEqual(["Work.", "News."]);
    expect((await runtime.schedules.get("steer"))?.runs).toMatchObject([{ outcome: "opened", turnId: "steer#1" }]);
    const superseded = await runtime.turns({ agentId: "supersede" });
    expect(superseded.map(({ turnId, status }) => `${turnId} ${status}`).sort()).toEqual([
      "supersede#1 stopped",
      "supersede#2 completed",
    ]);
  });

  test.each(["queue", "steer"] as const)(
    "%s leaves times out while 100 wait, however long the turn takes",
    async (ifBusy) => {
      const gate = createGate<string>();
      const slow = defineAgent({
        name: "slow",
        model: scriptedModel(async (_request, { signal }) => (await gate.pass(signal)) ?? "done"),
      });
      const stores = memoryStores();
      const { runtime, clock } = await opened(stores, { agents: [slow] });
      const agent = await runtime.agent("slow", { agentId: "one" });
      await agent.start();
      await agent.executeTurn("Work.").id;
      await runtime.schedule("often", {
        ...hourly,
        agent: "slow",
        every: "1s",
        agentId: "one",
        ifBusy,
        ifMissed: "all",
      });
      clock.jump(70 * SECOND);
      await loopTurns(300);
      clock.jump(50 * SECOND);
      await loopTurns(300);
      const { counts } = (await runtime.schedules.get("often")) as Schedule;
      expect(counts).toMatchObject({ opened: 100, busy: 20, missed: 0 });
      gate.open("answer");
    },
  );

  test("with a new agent for each run, steer and supersede are refused", async () => {
    const { runtime } = await opened(memoryStores());
    for (const ifBusy of ["steer", "supersede"] as const) {
      await expect(runtime.schedule("k", { ...hourly, ifBusy })).rejects.toThrow("each run has a new agent");
    }
    await expect(runtime.schedule("k", { ...hourly, ifBusy: "refuse" as "skip" })).rejects.toThrow(
      '"queue", "skip", "steer" or "supersede"',
    );
    expect(await runtime.schedules.list()).toEqual([]);
  });
});

describe("retention", () => {
  test("removes schedules that ended long ago, and none that goes on, waits or was set again", async () => {
    const { runtime, clock } = await opened(memoryStores(), { retention: { endedAfterMs: HOUR, everyMs: MINUTE } });
    await runtime.schedule("once", { agent: "desk", input: "x", at: start + 10 * MINUTE });
    await runtime.schedule("goes-on", { agent: "desk", input: "x", every: "50m" });
    await runtime.schedule("paused", { agent: "desk", input: "x", at: start + 10 * MINUTE });
    await runtime.schedules.pause("paused");
    await runtime.schedule("bounded", { agent: "desk", input: "x", every: "20m", endAt: start + 50 * MINUTE });
    await pass([clock], 60 * MINUTE, 5 * MINUTE);
    expect(await runtime.schedules.list()).toHaveLength(4);
    await pass([clock], 20 * MINUTE, 5 * MINUTE);
    const left = async () => (await runtime.schedules.list()).map(({ key }) => key);
    expect(await left()).toEqual(["bounded", "goes-on", "paused"]);
    await pass([clock], 30 * MINUTE, 5 * MINUTE);
    expect(await left()).toEqual(["goes-on", "paused"]);
  });
});
