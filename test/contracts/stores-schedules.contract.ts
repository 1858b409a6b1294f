import { expect, test } from "vitest";
import type { Schedule } from "../../src/state/index.ts";
import type { ScheduleCursor, Stores } from "../../src/stores/index.ts";
import { NOW, TENANT } from "./names.ts";

export function scheduleOf(key: string, changes: Partial<Schedule> = {}): Schedule {
  return {
    tenant: TENANT,
    key,
    definition: "desk",
    agentId: null,
    ownerId: null,
    sessionId: null,
    metadata: {},
    actorId: null,
    input: "Good morning \ud83d\ude00",
    budget: { maxCost: 0.5 },
    times: { kind: "cron", cron: "0 9 * * *", timezone: "Europe/Berlin" },
    startAt: null,
    endAt: null,
    ifMissed: "once",
    ifBusy: "queue",
    setByTurnId: null,
    createdAt: NOW,
    changedAt: NOW,
    revision: "r1",
    nextAt: NOW + 1_000,
    pausedAt: null,
    counts: { opened: 0, busy: 0, missed: 0, failed: 0 },
    runs: [],
    ...changes,
  };
}

/** Schedules of a tenant. */
export function schedulesContract(subject: () => Stores): void {
  const put = async (...schedules: readonly Schedule[]): Promise<void> => {
    for (const schedule of schedules) expect(await subject().putSchedule(schedule, null)).toBe(true);
  };
  const due = async (now: number, limit = 10, after?: ScheduleCursor): Promise<string[]> =>
    (await subject().dueSchedules(TENANT, now, limit, after)).map(({ key }) => key);
  const listed = async (filter: Omit<Parameters<Stores["schedules"]>[0], "tenant"> = {}): Promise<string[]> =>
    (await subject().schedules({ tenant: TENANT, ...filter })).map(({ key }) => key);

  test("a schedule is read as it was stored, only in its tenant", async () => {
    const run = {
      at: NOW,
      handledAt: NOW + 5,
      outcome: "failed",
      agentId: null,
      turnId: null,
      message: "why",
    } as const;
    const asked = [{ key: "click", at: NOW }];
    const more = { asked, steered: { turnId: "a#1", count: 3 }, ifBusy: "steer" } as const;
    const runs = [{ ...run, key: "earlier" }, run];
    const stored = scheduleOf("daily", { runs, setByTurnId: "a#1", metadata: { a: [1, null] }, ...more });
    await put(stored);
    expect(await subject().schedule(TENANT, "daily")).toEqual(stored);
    expect(await subject().schedule("other", "daily")).toBeUndefined();
    expect(await subject().schedule(TENANT, "weekly")).toBeUndefined();
  });

  test("a schedule is replaced only with its current revision, and of concurrent replacements one wins", async () => {
    expect(await subject().putSchedule(scheduleOf("daily"), "r0")).toBe(false);
    await put(scheduleOf("daily"));
    expect(await subject().putSchedule(scheduleOf("daily", { revision: "r2" }), null)).toBe(false);
    const names = Array.from({ length: 10 }, (_, index) => `n${index}`);
    const done = await Promise.all(
      names.map((revision) => subject().putSchedule(scheduleOf("daily", { revision }), "r1")),
    );
    expect(done.filter((one) => one)).toHaveLength(1);
    expect((await subject().schedule(TENANT, "daily"))?.revision).toBe(names[done.indexOf(true)]);
  });

  test("due schedules are returned in order and in pages, without paused and finished ones", async () => {
    await put(
      scheduleOf("c", { nextAt: NOW + 10 }),
      scheduleOf("b", { nextAt: NOW + 20 }),
      scheduleOf("a", { nextAt: NOW + 20 }),
      scheduleOf("paused", { nextAt: NOW, pausedAt: NOW }),
      scheduleOf("finished", { nextAt: null }),
    );
    expect([await due(NOW + 9), await due(NOW + 10), await due(NOW + 20)]).toEqual([[], ["c"], ["c", "a", "b"]]);
    expect(await due(NOW + 20, 2)).toEqual(["c", "a"]);
    expect(await due(NOW + 20, 2, { dueAt: NOW + 20, key: "a" })).toEqual(["b"]);
    expect(await subject().dueSchedules("other", NOW + 20, 10)).toEqual([]);
    const next = (after: number): Promise<number | undefined> => subject().nextScheduleAt(TENANT, after);
    expect([await next(NOW - 1), await next(NOW + 10), await next(NOW + 20)]).toEqual([NOW + 10, NOW + 20, undefined]);
    expect(await subject().nextScheduleAt("other", 0)).toBeUndefined();
    await subject().putSchedule(scheduleOf("c", { revision: "r2", nextAt: NOW + 30 }), "r1");
    await subject().putSchedule(scheduleOf("a", { revision: "r2", nextAt: NOW + 20, pausedAt: NOW }), "r1");
    expect([await due(NOW + 29), await due(NOW + 30)]).toEqual([["b"], ["b", "c"]]);
  });

  test("schedules are listed by key, by agent, by owner and in pages", async () => {
    await put(
      scheduleOf("c", { agentId: "bot", ownerId: "ann" }),
      scheduleOf("a", { ownerId: "ann" }),
      scheduleOf("b", { agentId: "bot" }),
      scheduleOf("d", { nextAt: null }),
    );
    expect(await listed()).toEqual(["a", "b", "c", "d"]);
    expect(await listed({ limit: 2, after: "a" })).toEqual(["b", "c"]);
    expect([await listed({ agentId: "bot" }), await listed({ ownerId: "ann" })]).toEqual([
      ["b", "c"],
      ["a", "c"],
    ]);
    expect(await listed({ agentId: "bot", ownerId: "ann" })).toEqual(["c"]);
    expect(await listed({ ownerId: "ann", limit: 1 })).toEqual(["a"]);
    expect(await listed({ ownerId: "\0" })).toEqual([]);
  });

  test("schedules are removed one by one, or all of an agent or an owner", async () => {
    await put(
      scheduleOf("a", { agentId: "bot", ownerId: "ann" }),
      scheduleOf("b", { agentId: "bot" }),
      scheduleOf("c", { ownerId: "ann" }),
      scheduleOf("d"),
    );
    expect(await subject().removeSchedule(TENANT, "d", "r0")).toBe(false);
    expect(await subject().removeSchedule(TENANT, "d", "r1")).toBe(true);
    expect(await subject().removeSchedule(TENANT, "d")).toBe(false);
    expect(await subject().putSchedule(scheduleOf("d", { revision: "r2" }), "r1")).toBe(false);
    expect(await subject().removeSchedules({ tenant: "other", agentId: "bot" })).toEqual([]);
    expect(await subject().removeSchedules({ tenant: TENANT, agentId: "bot" })).toEqual(["a", "b"]);
    expect([await listed(), await due(NOW + 1_000)]).toEqual([["c"], ["c"]]);
    expect(await subject().removeSchedules({ tenant: TENANT, ownerId: "ann" })).toEqual(["c"]);
    expect([await listed(), await subject().nextScheduleAt(TENANT, 0)]).toEqual([[], undefined]);
    await put(scheduleOf("d", { revision: "r3" }));
  });

  test("a requested run is due, also of a schedule that is paused or has ended", async () => {
    const asked = [
      { key: "b", at: NOW + 20 },
      { key: "a", at: NOW + 10 },
    ];
    await put(
      scheduleOf("paused", { pausedAt: NOW, nextAt: NOW + 1, asked }),
      scheduleOf("ended", { nextAt: null, asked: [{ key: "a", at: NOW + 15 }] }),
      scheduleOf("later", { nextAt: NOW + 5_000, asked }),
    );
    expect(await due(NOW + 9)).toEqual([]);
    expect(await subject().nextScheduleAt(TENANT, NOW)).toBe(NOW + 10);
    expect(await due(NOW + 20)).toEqual(["later", "paused", "ended"]);
  });
}
