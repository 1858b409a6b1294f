// Days of schedules in a deployment whose processes die, for tests that compare what ran with what an oracle expects.
import { formatTurnCursor, type Stores } from "../../src/index.ts";
import { StoredSchedules } from "../../src/runtime/index.ts";
import type { Schedule, TurnRecord } from "../../src/state/index.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { type WallTimes, wallTimesBetween } from "./schedule-oracle.ts";

const DAY = 86_400_000;
const HOUR = 3_600_000;
const MINUTE = 60_000;

/** A process that opens the turns of schedules. Its clock moves only by `advance`. */
export interface DaysProcess {
  readonly isAlive: boolean;
  /** Passes time in steps, and works between them. Resolves also if the process dies meanwhile. */
  advance(ms: number, steps: number): Promise<void>;
  /** Passes time as on a machine that sleeps: the wall clock moves, the monotonic clock does not. */
  sleep(ms: number): Promise<void>;
  /** Dies at the next time at which it reaches a random point of the work for a schedule. */
  arm(random: () => number): Promise<void>;
  kill(): void;
}

/** Where the processes run, with a connection of the test to their stores. */
export interface DaysDeployment {
  readonly stores: Stores;
  /** `sleptMs`: by how much the wall clock is ahead of the monotonic clock, which all processes share. */
  start(now: number, sleptMs: number): Promise<DaysProcess>;
}

const isSunday = (date: Date): boolean => date.getUTCDay() === 0;
const isLastOfMonth = (date: Date): boolean => new Date(date.getTime() + DAY).getUTCDate() === 1;
const [onTheHour] = [{ minutes: [0], seconds: [0] }];

type PlannedOptions = Pick<Schedule, "ifMissed"> & { readonly agentId?: string };
interface Planned extends PlannedOptions {
  readonly cron: string;
  readonly wall: WallTimes;
}

/**
 * Zones whose clocks change by an hour and by half an hour, one without changes, and one that skips December 30, 2011; single and several
 * times of a day, times that repeat within the hour, with seconds, on the last day of a month; all policies for missed times.
 */
const patterns: Readonly<Record<string, Planned>> = {
  berlin: {
    cron: "30 2 * * *",
    wall: { timezone: "Europe/Berlin", hours: [2], minutes: [30], seconds: [0] },
    ifMissed: "once",
  },
  "berlin-sundays": {
    cron: "*/30 1-3 * * SUN",
    wall: {
      timezone: "Europe/Berlin",
      hours: [1, 2, 3],
      minutes: [0, 30],
      seconds: [0],
      isDay: isSunday,
      repeats: true,
    },
    ifMissed: "all",
    agentId: "sundays",
  },
  "new-york": {
    cron: "30 1,2 * * *",
    wall: { timezone: "America/New_York", hours: [1, 2], minutes: [30], seconds: [0] },
    ifMissed: "all",
  },
  "lord-howe": {
    cron: "15 2 * * *",
    wall: { timezone: "Australia/Lord_Howe", hours: [2], minutes: [15], seconds: [0] },
    ifMissed: "skip",
  },
  apia: { cron: "0 9 * * *", wall: { timezone: "Pacific/Apia", hours: [9], ...onTheHour }, ifMissed: "all" },
  tokyo: {
    cron: "15 30 9 L * *",
    wall: { timezone: "Asia/Tokyo", hours: [9], minutes: [30], seconds: [15], isDay: isLastOfMonth },
    ifMissed: "once",
  },
};
const everySeven: PlannedOptions = { ifMissed: "all", agentId: "steady" };

/** A schedule as it was set, with the times that the oracle gives. */
interface Expected {
  readonly key: string;
  readonly ifMissed: Schedule["ifMissed"];
  readonly timesBetween: (from: number, until: number) => readonly number[];
}

interface Outage {
  readonly from: number;
  readonly until: number;
}

/** What ran, and what should have. */
export interface PlayedDays {
  readonly deaths: number;
  readonly outages: number;
  readonly turns: readonly TurnRecord[];
  /** By schedule: the keys of the turns that it has opened and those that the oracle expects, both sorted. */
  readonly schedules: readonly {
    readonly key: string;
    readonly opened: readonly string[];
    readonly expected: readonly string[];
    readonly stored: Schedule | undefined;
  }[];
}

export interface DaysOptions {
  readonly days: number;
  readonly seed: number;
  /** How often the time to the next schedule passes with a process that is armed to die. */
  readonly deathRate: number;
  /** How often the time to the next schedule passes in processes that are awake; otherwise they sleep. */
  readonly awakeRate: number;
  /** How much time passes between two looks at the stores while there is work, in milliseconds. */
  readonly stepMs?: number;
}

/**
 * Plays days of schedules: at each time a process may die in the middle of its work, and now and then all are gone for a while. Two days
 * before the clocks of New York change, so that a short play has a change too.
 */
export async function playDays(deployment: DaysDeployment, options: DaysOptions): Promise<PlayedDays> {
  const { stores } = deployment;
  const numbers = seededRandom(options.seed);
  const random = (): number => numbers.next();
  const start = Date.UTC(2010, 2, 12);
  const end = start + options.days * DAY;
  const play = new Play(deployment, start, options.stepMs ?? 50);
  await play.startMissing();
  const schedules = new StoredSchedules({
    stores,
    tenant: "default",
    clock: { now: () => play.now },
    assertOpen: () => undefined,
    onNext: () => undefined,
  });
  const expected = await setPlanned(schedules, start);
  const outages: Outage[] = [];
  let nextReminder = start + 2 * HOUR;
  while (play.now < end) {
    if (play.now >= nextReminder) {
      expected.push(await setReminder(schedules, play.now, random));
      nextReminder = play.now + Math.floor(5 * random() * DAY);
    }
    const dueAt = (await stores.nextScheduleAt("default", play.now)) ?? end;
    const next = Math.min(dueAt, end);
    const dice = random();
    if (dice < 0.02) {
      play.killAll();
      const from = play.now;
      await play.sleep(Math.floor((0.2 + 3 * random()) * DAY));
      // It returns two minutes or more after the last time that it missed, because until then a time is only late.
      while (!isQuiet(expected, play.now)) await play.sleep(3 * MINUTE);
      outages.push({ from, until: play.now });
    } else {
      if (dice < 0.02 + options.deathRate) await play.arm(random);
      const ms = next - play.now + Math.floor(random() * 500);
      // An awake process writes a heartbeat every few seconds, which makes up most of the cost.
      await (random() < options.awakeRate ? play.advance(ms, 1) : play.sleep(ms));
    }
    await play.startMissing();
    await play.settle(random() < options.deathRate / 2 ? random : undefined);
  }
  const turns = await allTurns(stores);
  const played = expected.map(async ({ key, ifMissed, timesBetween }) => ({
    key,
    opened: turns.flatMap((turn) => (turn.key?.startsWith(`schedule:${key}@`) === true ? turn.key : [])).sort(),
    expected: ranTimes(timesBetween(start, play.now), outages, ifMissed)
      .map((time) => `schedule:${key}@${new Date(time).toISOString()}`)
      .sort(),
    stored: await stores.schedule("default", key),
  }));
  const result = { deaths: play.deaths, outages: outages.length, turns, schedules: await Promise.all(played) };
  play.killAll();
  return result;
}

async function setPlanned(schedules: StoredSchedules, start: number): Promise<Expected[]> {
  const found: Expected[] = [];
  for (const [key, { cron, wall, ...options }] of Object.entries(patterns)) {
    await schedules.set(key, "desk", { input: `run ${key}`, cron, timezone: wall.timezone, ...options });
    found.push({ key, ifMissed: options.ifMissed, timesBetween: (from, until) => wallTimesBetween(wall, from, until) });
  }
  await schedules.set("steady", "desk", { input: "run steady", every: 7 * HOUR, ...everySeven });
  const steady = (from: number, until: number): number[] => {
    const count = Math.floor((until - start) / (7 * HOUR));
    return Array.from({ length: count }, (_, index) => start + (index + 1) * 7 * HOUR).filter((time) => time > from);
  };
  return [...found, { key: "steady", ifMissed: everySeven.ifMissed, timesBetween: steady }];
}

/** A single time within three days. */
async function setReminder(schedules: StoredSchedules, now: number, random: () => number): Promise<Expected> {
  const at = now + MINUTE + Math.floor(random() * 3 * DAY);
  const key = `reminder-${now}`;
  const ifMissed = (["skip", "once", "all"] as const)[Math.floor(random() * 3)] ?? "once";
  await schedules.set(key, "desk", { input: "remind", at, ifMissed, agentId: "reminded" });
  return { key, ifMissed, timesBetween: (from, until) => (at > from && at <= until ? [at] : []) };
}

/** Whether no schedule has a time within the last two minutes, or the next ten seconds. */
function isQuiet(expected: readonly Expected[], now: number): boolean {
  return !expected.some(({ timesBetween }) => timesBetween(now - 2 * MINUTE, now + 10_000).length > 0);
}

/** The times that must have opened a turn, by the documented rules for missed times. */
function ranTimes(all: readonly number[], outages: readonly Outage[], ifMissed: Schedule["ifMissed"]): number[] {
  const missed = outages.map(({ from, until }) => all.filter((time) => time > from && time <= until));
  const gone = new Set(missed.flat());
  const most = { skip: 0, once: 1, all: Number.POSITIVE_INFINITY }[ifMissed];
  const kept = missed.flatMap((times) => (most === 0 ? [] : times.slice(-most)));
  return [...all.filter((time) => !gone.has(time)), ...kept];
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

/** Two processes, of which each is replaced when it has died. */
class Play {
  now: number;
  deaths = 0;
  readonly #deployment: DaysDeployment;
  readonly #stepMs: number;
  #sleptMs = 0;
  readonly #processes: (DaysProcess | undefined)[] = [undefined, undefined];

  constructor(deployment: DaysDeployment, now: number, stepMs: number) {
    this.#deployment = deployment;
    this.now = now;
    this.#stepMs = stepMs;
  }

  async startMissing(): Promise<void> {
    for (const [index, process] of this.#processes.entries()) {
      if (process?.isAlive === true) continue;
      if (process) this.deaths += 1;
      this.#processes[index] = await this.#deployment.start(this.now, this.#sleptMs);
    }
  }

  killAll(): void {
    for (const process of this.#alive) process.kill();
  }

  async arm(random: () => number): Promise<void> {
    await this.#processes[random() < 0.5 ? 0 : 1]?.arm(random);
  }

  async advance(ms: number, steps: number): Promise<void> {
    this.now += ms * steps;
    await Promise.all(this.#alive.map(async (process) => await process.advance(ms, steps)));
  }

  async sleep(ms: number): Promise<void> {
    this.now += ms;
    this.#sleptMs += ms;
    await Promise.all(this.#alive.map(async (process) => await process.sleep(ms)));
  }

  /** Lets the living processes work until nothing is due and no turn is open. `random`: one is killed at any point meanwhile. */
  async settle(random?: () => number): Promise<void> {
    let killAt = random ? Math.floor(random() * 4) : -1;
    for (let round = 0; round < 1_000; round += 1) {
      if (round === 8) await this.startMissing();
      const working = this.advance(round < 8 ? this.#stepMs : 500, 5);
      if (round === killAt && random) {
        this.#processes[random() < 0.5 ? 0 : 1]?.kill();
        killAt = -1;
      }
      await working;
      if (await this.#isSettled()) return;
    }
    throw new Error(`the schedules did not settle at ${new Date(this.now).toISOString()}`);
  }

  async #isSettled(): Promise<boolean> {
    const { stores } = this.#deployment;
    const query = { tenant: "default", limit: 1 } as const;
    if ((await stores.dueSchedules("default", this.now, 1)).length > 0) return false;
    if ((await stores.turns({ ...query, status: "open" })).length > 0) return false;
    return (await stores.turns({ ...query, status: "queued" })).length === 0;
  }

  get #alive(): readonly DaysProcess[] {
    return this.#processes.flatMap((process) => (process?.isAlive === true ? process : []));
  }
}
