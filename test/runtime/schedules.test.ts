import { describe, expect, it, test, vi } from "vitest";
import {
  defineAgent,
  InvalidInputError,
  NotFoundError,
  type Runtime,
  scheduleTurn,
  type Stores,
  subagent,
  textOf,
} from "../../src/index.ts";
import type { Schedule } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes, memoryStage, type Stage, stageLeaseMs } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";
import { anyValues, classicValues } from "../support/wrong-values.ts";

type ScheduleOptions = Parameters<Runtime["schedule"]>[1];

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const desk = defineAgent({ name: "desk", model: scriptedModel("done") });

/** Lets time pass in steps in which due schedules are handled at their time. */
async function pass(stage: Stage, ms: number, stepMs = 30_000): Promise<void> {
  for (let left = ms; left > 0; left -= stepMs) {
    stage.clock.advance(Math.min(stepMs, left));
    await loopTurns(3);
    stage.clock.advance(300);
    await loopTurns(stage.variant.startsWith("redis") ? 30 : 12);
  }
}

async function keysOf(runtime: Runtime): Promise<string[]> {
  return (await runtime.turns({ limit: 1_000 })).map(({ key }) => key ?? "").sort();
}

/** A full hour of the first day. */
const at = (hour: string): string => `2026-01-01T${hour}:00:00.000Z`;

const everyHour: ScheduleOptions = { agent: "desk", input: "Look.", every: "1h" };

describeRuntimes(
  "schedules",
  (stage) => {
    it("opens one turn at each time, each in a new agent of the owner", async () => {
      const runtime = await stage().open({ agents: [desk] });
      const start = stage().clock.now();
      const budget = { maxSteps: 3 };
      const times = { every: "30m", startAt: start + HOUR, endAt: start + 2 * HOUR } as const;
      const who = { ownerId: "ann", actorId: "cron", sessionId: "s", metadata: { team: 1 }, budget };
      const set = await runtime.schedule("report", { agent: desk, input: "Report.", ...times, ...who });
      expect(set).toMatchObject({ key: "report", definition: "desk", agentId: null, nextAt: start + HOUR, runs: [] });
      await pass(stage(), 3 * HOUR, 5 * MINUTE);
      expect(await keysOf(runtime)).toEqual([
        "schedule:report@2026-01-01T01:00:00.000Z",
        "schedule:report@2026-01-01T01:30:00.000Z",
      ]);
      const agents = await runtime.list({ ownerId: "ann" });
      expect(agents.map(({ agentId }) => agentId)).toEqual(["report-20260101T010000Z", "report-20260101T013000Z"]);
      expect(agents[0]).toMatchObject({ sessionId: "s", metadata: { team: 1 } });
      const [first] = await (await runtime.find("report-20260101T010000Z")).getMessages();
      expect(first).toMatchObject({ role: "user", content: "Report.", origin: "cron" });
      expect((await runtime.turns())[0]).toMatchObject({ status: "completed", ownerId: "ann" });
      const ended = await runtime.schedules.get("report");
      expect(ended).toMatchObject({ nextAt: null, counts: { opened: 2, missed: 0 } });
      expect(ended?.runs[1]).toMatchObject({
        outcome: "opened",
        agentId: "report-20260101T013000Z",
        turnId: "report-20260101T013000Z#1",
      });
    });

    it("continues one conversation with agentId, and several processes open no turn twice", async () => {
      const runtime = await stage().open({ agents: [desk] });
      await stage().open({ agents: [desk] });
      await runtime.schedule("watch", { ...everyHour, agentId: "watcher" });
      await pass(stage(), 3 * HOUR + MINUTE, 10 * MINUTE);
      const turns = await runtime.turns({ agentId: "watcher" });
      expect(turns.map(({ number, status }) => [number, status])).toEqual([
        [3, "completed"],
        [2, "completed"],
        [1, "completed"],
      ]);
      expect(await (await runtime.find("watcher")).getMessages()).toHaveLength(6);
    });

    it("is continued by another process when one dies, and waits while none runs", async () => {
      const first = await stage().openProcess({ agents: [desk] });
      await first.runtime.schedule("once", { ...everyHour, every: undefined, at: stage().clock.now() + HOUR });
      await first.runtime.schedule("skip", { ...everyHour, ifMissed: "skip" });
      await first.runtime.schedule("all", { ...everyHour, ifMissed: "all" });
      first.kill();
      stage().clock.advance(3 * HOUR + 10 * MINUTE + stageLeaseMs);
      const second = await stage().open({ agents: [desk] });
      await pass(stage(), MINUTE, 5_000);
      expect(await keysOf(second)).toEqual([
        `schedule:all@${at("01")}`,
        `schedule:all@${at("02")}`,
        `schedule:all@${at("03")}`,
        `schedule:once@${at("01")}`,
      ]);
      const skipped = await second.schedules.get("skip");
      expect(skipped?.counts).toEqual({ opened: 0, busy: 0, missed: 3, failed: 0 });
      expect(skipped?.runs).toMatchObject([{ outcome: "missed", message: "the newest of 3 missed times" }]);
    });

    it("leaves the turns of unknown definitions to other processes, and warns of them", async () => {
      const other = defineAgent({ name: "other", model: scriptedModel("hi") });
      const knowing = await stage().openProcess({ agents: [desk] });
      await knowing.runtime.schedule("report", everyHour);
      knowing.kill();
      const runtime = await stage().open({ agents: [other] });
      const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
      await pass(stage(), HOUR + 2 * MINUTE, MINUTE);
      const dueAt = Date.parse("2026-01-01T01:00:00Z");
      expect((await runtime.health()).overdueSchedules).toEqual([{ key: "report", definition: "desk", dueAt }]);
      expect(warned.mock.calls.map(([message]) => String(message))).toEqual([
        expect.stringMatching(
          /^schedule "report" is due since 2026-01-01T01:00:00.000Z, .* the definition "desk"; add it/,
        ),
      ]);
      warned.mockRestore();
      const again = await stage().open({ agents: [desk] });
      await pass(stage(), MINUTE, 5_000);
      expect(await keysOf(again)).toEqual(["schedule:report@2026-01-01T01:00:00.000Z"]);
      expect((await runtime.health()).overdueSchedules).toEqual([]);
    });
  },
  ["memory", "sqlite"],
);

async function withRuntime(work: (runtime: Runtime, stage: Stage) => Promise<void>): Promise<void> {
  const stage = memoryStage();
  try {
    await work(await stage.open({ agents: [desk] }), stage);
  } finally {
    await stage.close();
  }
}

describe("a schedule", () => {
  test("the same options change nothing, other options replace it and keep its runs and its times", async () => {
    await withRuntime(async (runtime, stage) => {
      const first = await runtime.schedule("report", everyHour);
      await pass(stage, HOUR + MINUTE, 5 * MINUTE);
      const ran = await runtime.schedule("report", { ...everyHour });
      expect(ran).toMatchObject({ createdAt: first.createdAt, changedAt: first.changedAt, counts: { opened: 1 } });
      const changed = await runtime.schedule("report", { ...everyHour, input: "Look closely." });
      expect(changed).toMatchObject({ input: "Look closely.", nextAt: ran.nextAt, runs: ran.runs, counts: ran.counts });
      expect(changed.revision).not.toBe(ran.revision);
      const slower = await runtime.schedule("report", { ...everyHour, every: "2h" });
      expect(slower.nextAt).toBe(stage.clock.now() + 2 * HOUR);
    });
  });

  test("a single time that has passed is refused, unless the same schedule is stored", async () => {
    await withRuntime(async (runtime, stage) => {
      const once = { agent: "desk", input: "Go.", at: "2026-01-01T00:30:00Z" };
      await runtime.schedule("once", once);
      await pass(stage, HOUR, 5 * MINUTE);
      expect(await runtime.schedule("once", once)).toMatchObject({ nextAt: null, counts: { opened: 1 } });
      await expect(runtime.schedule("late", once)).rejects.toThrow("no time is left: at is 2026-01-01T00:30:00.000Z");
    });
  });

  test("a paused schedule runs nothing and misses nothing; runNow() runs it besides", async () => {
    await withRuntime(async (runtime, stage) => {
      await runtime.schedule("report", everyHour);
      const paused = await runtime.schedules.pause("report");
      expect(paused.pausedAt).toBe(stage.clock.now());
      expect(await runtime.schedules.pause("report")).toEqual(paused);
      await pass(stage, 3 * HOUR, 10 * MINUTE);
      expect(await keysOf(runtime)).toEqual([]);
      const run = await runtime.schedules.runNow("report");
      expect(run).toMatchObject({ at: stage.clock.now(), outcome: "opened" });
      const resumed = await runtime.schedules.resume("report");
      expect(resumed).toMatchObject({ pausedAt: null, counts: { opened: 1, missed: 0 } });
      expect(resumed.nextAt).toBe(Date.parse("2026-01-01T04:00:00Z"));
      await pass(stage, HOUR, 10 * MINUTE);
      expect((await runtime.schedules.get("report"))?.counts.opened).toBe(2);
    });
  });

  test("unschedule() removes it", async () => {
    await withRuntime(async (runtime, stage) => {
      await runtime.schedule("report", everyHour);
      expect([await runtime.unschedule("report"), await runtime.unschedule("report")]).toEqual([true, false]);
      await pass(stage, 2 * HOUR, 10 * MINUTE);
      expect([await keysOf(runtime), await runtime.schedules.get("report"), await runtime.schedules.list()]).toEqual([
        [],
        undefined,
        [],
      ]);
      for (const method of ["pause", "resume", "runNow"] as const) {
        await expect(runtime.schedules[method]("report")).rejects.toThrow(NotFoundError);
      }
    });
  });

  test("a busy agent queues the turn or leaves the time out", async () => {
    const stage = memoryStage();
    const gates = [createGate<string>(), createGate<string>()];
    let calls = 0;
    const slow = defineAgent({
      name: "slow",
      model: scriptedModel(async (_request, { signal }) => (await gates[calls++]?.pass(signal)) ?? "later"),
    });
    const runtime = await stage.open({ agents: [slow] });
    for (const ifBusy of ["queue", "skip"] as const) {
      await runtime.schedule(ifBusy, { ...everyHour, agent: "slow", agentId: ifBusy, ifBusy });
    }
    await pass(stage, 2 * HOUR + MINUTE, 10 * MINUTE);
    for (const gate of gates) gate.open("first");
    await pass(stage, MINUTE, 10_000);
    expect(await runtime.turns({ agentId: "queue" })).toHaveLength(2);
    expect(await runtime.turns({ agentId: "skip" })).toHaveLength(1);
    expect((await runtime.schedules.get("skip"))?.counts).toEqual({ opened: 1, busy: 1, missed: 0, failed: 0 });
    await stage.close();
  });

  test("a run that cannot be opened is recorded with the reason, and the next times go on", async () => {
    await withRuntime(async (runtime, stage) => {
      await runtime.schedule("report", { ...everyHour, agentId: "taken" });
      // Stored by hand: runtime.schedule() refuses an agent of another definition.
      const stores: Stores = runtime.stores;
      const before = await stores.schedule("default", "report");
      const agent = await runtime.agent("desk", { agentId: "report-20260101T010000Z" });
      await agent.start();
      const { key, revision } = before ?? { key: "", revision: "" };
      await stores.putSchedule(
        { ...(before as Schedule), key, revision: "x", metadata: {}, budget: { maxSteps: -1 } },
        revision,
      );
      await pass(stage, HOUR + MINUTE, 10 * MINUTE);
      const { runs, counts, nextAt } = (await runtime.schedules.get("report")) ?? { runs: [] };
      expect([counts?.failed, nextAt]).toEqual([1, Date.parse("2026-01-01T02:00:00Z")]);
      expect(runs).toMatchObject([{ outcome: "failed", turnId: null, message: expect.stringContaining("maxSteps") }]);
    });
  });

  test("an agent that was shut down is started again", async () => {
    await withRuntime(async (runtime, stage) => {
      const agent = await runtime.agent("desk", { agentId: "sleeper", ownerId: "ann" });
      await agent.start();
      await agent.shutdown();
      expect(await runtime.schedule("wake", { ...everyHour, agentId: "sleeper" })).toMatchObject({ ownerId: "ann" });
      await pass(stage, HOUR + MINUTE, 10 * MINUTE);
      expect(await runtime.turns({ agentId: "sleeper" })).toMatchObject([{ status: "completed" }]);
    });
  });

  test("a clock that is set forward misses times, and one that is set back repeats none", async () => {
    await withRuntime(async (runtime, stage) => {
      await runtime.schedule("skip", { ...everyHour, ifMissed: "skip" });
      await pass(stage, HOUR + MINUTE);
      stage.clock.jump(-HOUR);
      await pass(stage, 2 * HOUR);
      stage.clock.jump(3 * HOUR);
      await pass(stage, 10 * MINUTE);
      const keys = await keysOf(runtime);
      expect(keys).toEqual([...new Set(keys)]);
      expect((await runtime.schedules.get("skip"))?.counts).toMatchObject({ opened: 2, missed: 3 });
    });
  });

  test.each<[string, object, RegExp]>([
    ["no time", {}, /needs exactly one of at, every and cron; none of them is set/],
    ["two times", { every: "1h", cron: "@daily" }, /every and cron are set/],
    [
      "a cron pattern with a wrong value",
      { cron: "61 * * * *" },
      /cron is the text "61 \* \* \* \*": Invalid value for minute: 61; expected five fields/,
    ],
    ["a cron pattern with too few fields", { cron: "* * *" }, /wrong number of fields; expected five fields/],
    ["a cron pattern without dates", { cron: "0 0 30 2 *" }, /matches no date/],
    [
      "an unknown time zone",
      { cron: "@daily", timezone: "Mars/Base" },
      /timezone is the text "Mars\/Base"; expected "UTC" or a name of the IANA/,
    ],
    ["a local time without a zone", { at: "2027-01-01T09:00" }, /add Z or \+02:00, or set timezone/],
    ["a date that does not exist", { at: "2027-02-30T09:00Z" }, /expected a Date, an ISO text/],
    ["too short a distance", { every: 999 }, /expected a duration from 1 second to 10 years/],
    [
      "an end before the start",
      { every: "1h", startAt: "2027-01-02T00:00Z", endAt: "2027-01-01T00:00Z" },
      /endAt is not after startAt/,
    ],
    ["an end in the past", { cron: "@daily", endAt: "2025-01-01T00:00Z" }, /no time is left: endAt is 2025/],
    [
      "bounds of a single time",
      { at: "2027-01-01T09:00Z", endAt: "2028-01-01T09:00Z" },
      /startAt and endAt have no meaning/,
    ],
    [
      "a deadline",
      { every: "1h", budget: { deadline: "2027-01-01" } },
      /budget.deadline would be the same time for every run/,
    ],
    ["a wrong budget", { every: "1h", budget: { maxSteps: -1 } }, /budget.maxSteps/],
    [
      "a file of no agent",
      { every: "1h", input: [{ type: "file", mediaType: "a/b", artifactId: "x" }] },
      /a new agent has no artifacts/,
    ],
    ["an unknown option", { every: "1h", tz: "UTC" }, /did you mean timezone/],
    ["an unknown agent", { every: "1h", agent: "desc" }, /unknown agent definition "desc"/],
  ])("%s is refused with an explanation", async (_title, options, message) => {
    await withRuntime(async (runtime) => {
      const given = { agent: "desk", input: "x", ...options } as ScheduleOptions;
      await expect(runtime.schedule("k", given)).rejects.toThrow(message);
      expect(await runtime.schedules.list()).toEqual([]);
    });
  });

  test("wrong values of every option and key are refused, and nothing is stored", async () => {
    await withRuntime(async (runtime) => {
      const names =
        "agent input at every cron timezone startAt endAt agentId ownerId sessionId metadata actorId budget ifMissed ifBusy";
      const good = { agent: "desk", input: "x", every: "1h" };
      const wrong: string[] = [];
      for (const name of names.split(" ")) {
        for (const value of [...classicValues(), ...anyValues(3)]) {
          const given = { ...good, ...(name === "at" || name === "cron" ? { every: undefined } : {}), [name]: value };
          const error: unknown = await runtime.schedule("k", given as ScheduleOptions).then(
            () => undefined,
            (thrown: unknown) => thrown,
          );
          if (error === undefined) await runtime.unschedule("k");
          const isExpected =
            error === undefined || error instanceof InvalidInputError || error instanceof NotFoundError;
          if (!isExpected) wrong.push(name);
        }
      }
      expect(wrong).toEqual([]);
      for (const key of ["", "a b", "x".repeat(101), "ä", 7, null, {}]) {
        await expect(runtime.schedule(key as string, everyHour)).rejects.toThrow(InvalidInputError);
      }
      expect(await runtime.schedules.list()).toEqual([]);
    });
  });

  test("an agent of another definition or owner is refused", async () => {
    const other = defineAgent({ name: "other", model: scriptedModel("hi") });
    const stage = memoryStage();
    const runtime = await stage.open({ agents: [desk, other] });
    await runtime.agent("other", { agentId: "mine", ownerId: "ann" });
    await expect(runtime.schedule("k", { ...everyHour, agentId: "mine" })).rejects.toThrow('with definition "other"');
    const theirs = { ...everyHour, agent: "other", agentId: "mine", ownerId: "bob" };
    await expect(runtime.schedule("k", theirs)).rejects.toThrow('exists with owner "ann", not "bob"');
    await runtime.agent("desk", { agentId: "unsaved", autoSave: false });
    await expect(runtime.schedule("k", { ...everyHour, agentId: "unsaved" })).rejects.toThrow("autoSave: false");
    await stage.close();
  });
});

/** An agent that makes these calls in its first turn, one per step, and answers `done` in later turns. */
function scheduler(calls: readonly { readonly name: string; readonly arguments: object }[], options = {}) {
  let next = 0;
  const model = scriptedModel(() => {
    const call = calls[next];
    next += 1;
    return call ? calling(call as never) : "done";
  });
  return defineAgent({ name: "desk", model, tools: [...scheduleTurn(options)] });
}

async function resultsOf(calls: readonly { readonly name: string; readonly arguments: object }[], options = {}) {
  const stage = memoryStage();
  const runtime = await stage.open({ agents: [scheduler(calls, options)] });
  const agent = await runtime.agent("desk", { agentId: "a", ownerId: "ann" });
  await agent.start();
  await agent.executeTurn("Remind me.", { auth: { actorId: "ann" } }).result;
  const texts = (await agent.getMessages()).flatMap(({ role, content }) => (role === "tool" ? textOf(content) : []));
  return { stage, runtime, agent, texts };
}

describe("scheduleTurn()", () => {
  test("an agent gets its message later, in its own conversation, once", async () => {
    const call = { name: "schedule_turn", arguments: { message: "Check the build.", in: "20m" } };
    const { stage, runtime, agent, texts } = await resultsOf([call, { name: "list_scheduled_turns", arguments: {} }]);
    const [schedule] = await runtime.schedules.list();
    expect(schedule).toMatchObject({ agentId: "a", ownerId: "ann", actorId: "ann", setByTurnId: "a#1" });
    expect(JSON.parse(texts[0] ?? "")).toEqual({
      id: schedule?.key,
      next: "2026-01-01T00:20:00.000Z",
      repeats: false,
      message: "You scheduled this message for yourself:\n\nCheck the build.",
    });
    expect(JSON.parse(texts[1] ?? "")).toHaveLength(1);
    await pass(stage, HOUR, 5 * MINUTE);
    const inputs = (await agent.getMessages()).filter(({ role }) => role === "user");
    expect(inputs.map(({ content }) => content)).toEqual([
      "Remind me.",
      "You scheduled this message for yourself:\n\nCheck the build.",
    ]);
    await stage.close();
  });

  test("it cancels its own turns, and no others", async () => {
    const stage = memoryStage();
    const made: string[] = [];
    const model = scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
      if (results.length === 0)
        return calling({ name: "schedule_turn", arguments: { message: "x", every: "1h" } } as never);
      if (results.length === 1) made.push(JSON.parse(results[0] ?? "").id);
      if (results.length > 2) return "done";
      const id = results.length === 1 ? "by-code" : made[0];
      return calling({ name: "cancel_scheduled_turn", arguments: { id } } as never);
    });
    const runtime = await stage.open({ agents: [defineAgent({ name: "desk", model, tools: [...scheduleTurn()] })] });
    await runtime.schedule("by-code", { ...everyHour, agentId: "a" });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("Go.").result;
    const results = (await agent.getMessages()).flatMap(({ role, content }) =>
      role === "tool" ? textOf(content) : [],
    );
    expect(results.slice(1)).toEqual(['There is no scheduled turn "by-code".', "Cancelled."]);
    expect((await runtime.schedules.list()).map(({ key }) => key)).toEqual(["by-code"]);
    await stage.close();
  });

  test.each([
    [
      "too many",
      [
        { message: "a", in: "1h" },
        { message: "b", in: "1h" },
      ],
      /1 turns are scheduled already, and at most 1/,
    ],
    ["too soon", [{ message: "a", in: "5s" }], /less than 60 seconds from now/],
    ["too often", [{ message: "a", every: "10s" }], /less than 60 seconds apart/],
    ["too often by cron", [{ message: "a", cron: "*/10 * * * * *" }], /less than 60 seconds apart/],
    ["no time", [{ message: "a" }], /needs exactly one of/],
    ["two times", [{ message: "a", in: "1h", at: "2027-01-01T00:00Z" }], /either at or in/],
    ["a wrong zone", [{ message: "a", cron: "@daily", timezone: "x" }], /expected "UTC" or a name/],
  ])("%s: the model gets the reason", async (_title, calls, message) => {
    const asked = calls.map((given) => ({ name: "schedule_turn", arguments: given }));
    const { stage, runtime, texts } = await resultsOf(asked, { maxOpen: 1 });
    expect(texts.at(-1)).toMatch(message);
    expect(await runtime.schedules.list()).toHaveLength(calls.length - 1);
    await stage.close();
  });

  test("parallel calls keep to the limit, too", async () => {
    const stage = memoryStage();
    const call = { name: "schedule_turn", arguments: { message: "x", in: "1h" } };
    const model = scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === "tool") ? "done" : calling(call as never, call as never, call as never),
    );
    const runtime = await stage.open({
      agents: [defineAgent({ name: "desk", model, tools: [...scheduleTurn({ maxOpen: 2 })] })],
    });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("Go.").result;
    expect(await runtime.schedules.list()).toHaveLength(2);
    await stage.close();
  });

  test("a subagent cannot schedule, and a schedule can need an approval", async () => {
    const stage = memoryStage();
    const call = { name: "schedule_turn", arguments: { message: "x", in: "1h" } };
    const child = scheduler([call]);
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? "ok"
          : calling({ name: "desk", arguments: { input: "go" } } as never),
      ),
      tools: [subagent(child)],
    });
    const careful = defineAgent({
      name: "careful",
      model: scriptedModel(({ messages }) =>
        messages.some(({ role }) => role === "tool") ? "ok" : calling(call as never),
      ),
      tools: [...scheduleTurn({ needsApproval: true })],
    });
    const runtime = await stage.open({ agents: [lead, careful] });
    for (const name of ["lead", "careful"]) await (await runtime.agent(name, { agentId: name })).start();
    await (await runtime.find("lead")).executeTurn("go").result;
    expect(await runtime.schedules.list()).toEqual([]);
    const waiting = await (await runtime.find("careful")).executeTurn("go").settled;
    expect(waiting).toMatchObject({ status: "waiting" });
    const [request] = await runtime.requests();
    expect(request?.prompt).toContain('Schedule a turn of the agent ({"in":"1h"}): x');
    await runtime.decide(request?.requestId ?? "", { verdict: "approved" });
    await (await runtime.find("careful")).turn("careful#1").result;
    expect(await runtime.schedules.list()).toHaveLength(1);
    await stage.close();
  });

  test.each([{ maxOpen: 0 }, { minDistanceMs: -1 }, { needsApproval: "yes" }, { max: 3 }, 7])(
    "%o is refused",
    (options) => {
      expect(() => scheduleTurn(options as never)).toThrow(InvalidInputError);
    },
  );
});
