import { expect, test } from "vitest";
import {
  type Clock,
  createRuntime,
  defineAgent,
  formatTurnCursor,
  memoryStores,
  type Runtime,
  type Stores,
} from "../../src/index.ts";
import { timeSeriesOf } from "../../src/runtime/schedules/schedule-times.ts";
import type { Schedule, TurnRecord } from "../../src/state/index.ts";
import { createFakeClock, type FakeClock, scriptedModel } from "../../src/testing/index.ts";
import { randomCases } from "../support/full.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { ReachedStores } from "../support/reached-stores.ts";

const DAY = 86_400_000;
const MINUTE = 60_000;

/** Time zones whose clocks change by an hour and by half an hour, all policies for missed times, one agent and new agents. */
const plan = {
  berlin: { cron: "30 2 * * *", timezone: "Europe/Berlin", ifMissed: "once" },
  "new-york": { cron: "30 1,2 * * MON-SAT", timezone: "America/New_York", ifMissed: "all" },
  "lord-howe": { cron: "15 2 * * *", timezone: "Australia/Lord_Howe", ifMissed: "skip" },
  steady: { every: "7h", ifMissed: "all", agentId: "steady" },
} as const;

/** The points at which a process dies: before and after each write of a run. */
const deaths = ["createAgent", "commit", "openTurn", "putSchedule"].flatMap((method) =>
  (["before", "after"] as const).map((when) => ({ method, when })),
);

/** A generator of numbers in [0, 1) from a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Death {
  readonly method: string;
  readonly when: "before" | "after";
}

/** A process that dies at its next call of a method: its calls to the stores never return, and its timers are gone. */
class Mortal {
  death: Death | undefined;
  deaths = 0;
  runtime: Runtime | undefined;
  readonly #stores: Stores;
  readonly #clock: FakeClock;
  readonly #random: () => number;
  #die: (() => void) | undefined;

  constructor(stores: Stores, clock: FakeClock, random: () => number) {
    this.#stores = stores;
    this.#clock = clock;
    this.#random = random;
  }

  async live(): Promise<Runtime> {
    const life = new AbortController();
    const reached = new ReachedStores(this.#watched());
    this.#die = (): void => {
      reached.freeze();
      life.abort();
    };
    const desk = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
    const clock = mortalClock(this.#clock, life.signal);
    const { stores } = reached;
    this.runtime = await createRuntime({ agents: [desk], stores, clock, random: this.#random, leaseMs: 10_000 });
    return this.runtime;
  }

  die(): void {
    if (!this.runtime) return;
    this.#die?.();
    this.runtime = undefined;
    this.death = undefined;
    this.deaths += 1;
  }

  #watched(): Stores {
    const strike = (method: string, when: Death["when"]): void => {
      if (this.death?.method === method && this.death.when === when) this.die();
    };
    return new Proxy(this.#stores, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => {
          const method = String(name);
          const answer: unknown = Reflect.apply(value, target, args);
          strike(method, "before");
          if (!(answer instanceof Promise)) return answer;
          return answer.finally(() => strike(method, "after"));
        };
      },
    });
  }
}

/** The same clock without the timers of a dead process. */
function mortalClock(clock: FakeClock, life: AbortSignal): Clock {
  const whileAlive = (callback: () => void): (() => void) => {
    return () => {
      if (!life.aborted) callback();
    };
  };
  return {
    now: () => clock.now(),
    elapsed: () => clock.elapsed(),
    setTimer: (at, callback) => clock.setTimer(at, whileAlive(callback)),
    setDelay: (ms, callback) => clock.setDelay(ms, whileAlive(callback)),
    sleep: (ms) => new Promise((resolve) => void clock.setDelay(ms, whileAlive(resolve))),
  };
}

/** Lets the living processes work until nothing is due and no turn is open. */
async function settled(clock: FakeClock, stores: Stores, mortals: readonly Mortal[]): Promise<void> {
  for (let round = 0; round < 2_000; round += 1) {
    // Both may have died.
    if (round === 40) for (const mortal of mortals) if (!mortal.runtime) await mortal.live();
    await loopTurns(4);
    const due = await stores.dueSchedules("default", clock.now(), 1);
    const [open] = await stores.turns({ tenant: "default", status: "open", limit: 1 });
    const [queued] = await stores.turns({ tenant: "default", status: "queued", limit: 1 });
    if (due.length === 0 && !open && !queued) return;
    clock.advance(round < 40 ? 50 : 500);
  }
  throw new Error("the schedules did not settle");
}

/** Passes time in steps, since a process at work writes a heartbeat every few seconds. */
function pass(clock: FakeClock, ms: number): void {
  for (let left = ms; left > 0; left -= DAY / 24) clock.advance(Math.min(left, DAY / 24));
}

interface Outage {
  readonly from: number;
  readonly until: number;
}

/** The times that must have opened a turn, by the documented rules. */
function expectedTimes(all: readonly number[], outages: readonly Outage[], ifMissed: Schedule["ifMissed"]): number[] {
  const missed = outages.map(({ from, until }) => all.filter((time) => time > from && time <= until));
  const gone = new Set(missed.flat());
  const most = { skip: 0, once: 1, all: Number.POSITIVE_INFINITY }[ifMissed];
  const kept = missed.flatMap((times) => (most === 0 ? [] : times.slice(-most)));
  return [...all.filter((time) => !gone.has(time)), ...kept].sort((a, b) => a - b);
}

async function timesOf(schedule: Schedule, until: number): Promise<number[]> {
  const series = await timeSeriesOf(schedule);
  const times: number[] = [];
  for (let time = series.next(schedule.createdAt); time !== null && time <= until; time = series.next(time)) {
    times.push(time);
  }
  return times;
}

/** Whether no schedule has a time within the last two minutes. */
async function isQuiet(schedules: readonly Schedule[], now: number): Promise<boolean> {
  const next = await Promise.all(schedules.map(async (one) => (await timeSeriesOf(one)).next(now - 2 * MINUTE)));
  return next.every((time) => time === null || time > now);
}

async function allTurns(stores: Stores): Promise<TurnRecord[]> {
  const turns: TurnRecord[] = [];
  for (let after: string | undefined; ; ) {
    const page = await stores.turns({ tenant: "default", limit: 1_000, after });
    turns.push(...page);
    const last = page.at(-1);
    if (page.length < 1_000 || !last) return turns;
    after = formatTurnCursor(last);
  }
}

const days = randomCases(1_000, 4);

test(`each time of ${days} days opens one turn, in spite of kills and outages`, { timeout: 1_800_000 }, async () => {
  const random = randomFrom(Number(process.env["TROUPE_SEED"] ?? 42));
  // Two days before the clocks in New York change, so that a short run has a change too.
  const clock = createFakeClock(Date.UTC(2026, 2, 6));
  const stores = memoryStores();
  const mortals = [new Mortal(stores, clock, random), new Mortal(stores, clock, random)] as const;
  const runtime = await mortals[0].live();
  await mortals[1].live();
  for (const [key, times] of Object.entries(plan)) {
    await runtime.schedule(key, { agent: "desk", input: `run ${key}`, ...times });
  }
  const schedules = await stores.schedules({ tenant: "default" });
  const end = clock.now() + days * DAY;
  const outages: Outage[] = [];
  while (clock.now() < end) {
    const next = Math.min((await stores.nextScheduleAt("default", clock.now())) ?? end, end);
    const dice = random();
    if (dice < 0.03) {
      // The whole deployment is down. It returns two minutes or more after the last time that it missed.
      for (const mortal of mortals) mortal.die();
      const from = clock.now();
      pass(clock, Math.floor((0.2 + 3 * random()) * DAY));
      while (!(await isQuiet(schedules, clock.now()))) clock.advance(3 * MINUTE);
      outages.push({ from, until: clock.now() });
    } else {
      const mortal = mortals[dice < 0.14 ? 0 : 1];
      if (dice < 0.25) mortal.death = deaths[Math.floor(random() * deaths.length)];
      pass(clock, next - clock.now());
      clock.advance(Math.floor(random() * 500));
    }
    for (const mortal of mortals) if (!mortal.runtime) await mortal.live();
    await settled(clock, stores, mortals);
  }
  const turns = await allTurns(stores);
  expect(turns.filter(({ status }) => status !== "completed")).toEqual([]);
  for (const { key, ifMissed } of schedules) {
    const stored = await stores.schedule("default", key);
    if (!stored) throw new Error(`schedule ${key} is gone`);
    const wanted = expectedTimes(await timesOf(stored, clock.now()), outages, ifMissed);
    const opened = turns.map((turn) => turn.key ?? "").filter((text) => text.startsWith(`schedule:${key}@`));
    expect(opened.sort()).toEqual(wanted.map((time) => `schedule:${key}@${new Date(time).toISOString()}`));
    expect(stored.counts).toMatchObject({ opened: wanted.length, busy: 0, failed: 0 });
  }
  expect(mortals[0].deaths + mortals[1].deaths).toBeGreaterThan(days / 20);
  await Promise.all(mortals.map(async (mortal) => await mortal.runtime?.shutdown()));
});
