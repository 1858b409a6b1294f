import { isDate } from "node:util/types";
import { isDefinition } from "../../agents/index.ts";
import {
  describeValue,
  idRule,
  nameRule,
  oneOfRule,
  type OptionRule,
  optionsOf,
  type OptionsSchema,
  ruleOf,
  textRule,
  wholeNumberRule,
} from "../../base/index.ts";
import { budgetRule } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { JsonObject, Schedule, ScheduleTimes } from "../../state/index.ts";
import { metadataRule } from "../api/agent-options.ts";
import type {
  RunNowOptions,
  ScheduleListOptions,
  ScheduleOptions,
  ScheduleTimesOptions,
} from "../api/schedule-types.ts";
import { inputOf, keyRule } from "../api/turn-options.ts";
import { durationRule } from "./duration.ts";
import { assertCron, assertTimezone, instantOf } from "./schedule-times.ts";

/** The ids of new agents consist of the key and 17 characters for the time. */
const LONGEST_KEY = 100;

const agentRule = ruleOf(
  "a definition of this runtime, or its name",
  (value) => isDefinition(value) || (typeof value === "string" && value !== ""),
);

const scheduledBudgetRule: OptionRule = (value, where) => {
  const budget = budgetRule(value, where) as JsonObject;
  if (budget["deadline"] === undefined) return budget;
  throw new InvalidInputError(`${where}.deadline would be the same time for every run; use maxSeconds, or endAt`);
};

/** The input of a later turn. */
export const inputRule: OptionRule = (value, where) => {
  if (value !== null && value !== undefined) return inputOf(value);
  throw new InvalidInputError(`${where} is missing; expected the text of each turn, or a list of content parts`);
};

/** A time in a form that nothing can change any more; its text is parsed later, with the time zone. */
const timeRule: OptionRule = (value, where) => {
  if (typeof value === "string" || typeof value === "number") return value;
  if (isDate(value)) return value.getTime();
  throw new InvalidInputError(
    `${where} is ${describeValue(value)}; expected a Date, an ISO text such as "2027-03-01T09:00:00Z", or whole milliseconds since the epoch`,
  );
};

/** Rules of the options for the times of a schedule. */
export const timesRules = {
  at: timeRule,
  every: durationRule,
  cron: textRule,
  timezone: textRule,
  startAt: timeRule,
  endAt: timeRule,
} as const;

export const ifMissedRule = oneOfRule("skip", "once", "all");
export const ifBusyRule = oneOfRule("queue", "skip", "steer", "supersede");

const scheduleOptionsSchema: OptionsSchema<ScheduleOptions> = {
  rules: {
    ...timesRules,
    agent: agentRule,
    input: inputRule,
    agentId: idRule,
    ownerId: textRule,
    sessionId: textRule,
    metadata: metadataRule,
    actorId: nameRule,
    budget: scheduledBudgetRule,
    ifMissed: ifMissedRule,
    ifBusy: ifBusyRule,
  },
  needed: ["agent", "input"],
  instead: {
    definition: "agent",
    prompt: "input",
    message: "input",
    pattern: "cron",
    timeZone: "timezone",
    tz: "timezone",
    interval: "every",
    intervalMs: "every",
    date: "at",
    auth: "actorId",
    limits: "budget",
    catchUp: "ifMissed",
    start: "startAt",
    end: "endAt",
  },
};

const listOptionsSchema: OptionsSchema<ScheduleListOptions> = {
  rules: { agentId: textRule, ownerId: textRule, limit: wholeNumberRule(1), after: textRule },
};

/** Throws `InvalidInputError`. */
export function scheduleOptionsOf(options: unknown): ScheduleOptions {
  return optionsOf<ScheduleOptions>(options, "runtime.schedule()", scheduleOptionsSchema);
}

export function scheduleListOptionsOf(options: unknown): ScheduleListOptions {
  return optionsOf<ScheduleListOptions>(options, "runtime.schedules.list()", listOptionsSchema);
}

/** The idempotency key of a run. Throws `InvalidInputError`. */
export function runKeyOf(options: unknown, of: string): string | undefined {
  return optionsOf<RunNowOptions>(options, of, { rules: { key: keyRule }, instead: { idempotencyKey: "key" } }).key;
}

/** Throws `InvalidInputError` for anything but an id of at most 100 characters. */
export function scheduleKeyOf(key: unknown, of: string): string {
  const checked = idRule(key, `${of}: key`) as string;
  if (checked.length <= LONGEST_KEY) return checked;
  throw new InvalidInputError(`${of}: key has ${checked.length} characters; expected at most ${LONGEST_KEY}`);
}

/** The times of a schedule as a client of a server wrote them. Throws `InvalidInputError`. */
export async function checkedTimes(
  { at, every, cron, timezone, startAt, endAt }: ScheduleTimesOptions,
  now: number,
  of: string,
): Promise<Pick<Schedule, "times" | "startAt" | "endAt">> {
  const given = { at, every, cron, timezone, startAt, endAt };
  return await timesOf(optionsOf<ScheduleTimesOptions>(given, of, { rules: timesRules }), now, of);
}

/** The checked times of a schedule. `of`: the function as the caller writes it. Throws `InvalidInputError`. */
export async function timesOf(
  options: ScheduleTimesOptions,
  now: number,
  of: string,
): Promise<Pick<Schedule, "times" | "startAt" | "endAt">> {
  const { at, every, cron, timezone, startAt, endAt } = options;
  const given = Object.entries({ at, every, cron }).flatMap(([name, value]) => (value === undefined ? [] : name));
  if (given.length !== 1) {
    const found = given.length === 0 ? "none of them is set" : `${given.join(" and ")} are set`;
    throw new InvalidInputError(`${of} needs exactly one of at, every and cron; ${found}`);
  }
  if (timezone !== undefined) assertTimezone(timezone, `${of}: timezone`);
  if (cron !== undefined) await assertCron(cron, timezone ?? "UTC", `${of}: cron`);
  const bound = async (name: "startAt" | "endAt", value: unknown): Promise<number | null> =>
    value === undefined ? null : await instantOf(value, timezone, `${of}: ${name}`);
  const bounds = { startAt: await bound("startAt", startAt), endAt: await bound("endAt", endAt) };
  if (at !== undefined && (startAt !== undefined || endAt !== undefined)) {
    throw new InvalidInputError(`${of}: at is a single time, so startAt and endAt have no meaning; remove them`);
  }
  if (bounds.startAt !== null && bounds.endAt !== null && bounds.endAt <= bounds.startAt) {
    throw new InvalidInputError(`${of}: endAt is not after startAt; no time would be left`);
  }
  const times = async (): Promise<ScheduleTimes> => {
    if (at !== undefined) return { kind: "at", at: await instantOf(at, timezone, `${of}: at`) };
    if (cron !== undefined) return { kind: "cron", cron, timezone: timezone ?? "UTC" };
    return { kind: "every", everyMs: Number(every), from: bounds.startAt ?? now };
  };
  return { times: await times(), ...bounds };
}
