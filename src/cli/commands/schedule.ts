import { NotFoundError } from "../../errors/index.ts";
import { scheduleOptionsOf, StoredSchedules } from "../../runtime/index.ts";
import { DEFAULT_TENANT, type Schedule, textOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { pageSize } from "../options.ts";
import { formatNumberOf, formatTime } from "../view/format.ts";
import { type Column, columnsOf, tableLines } from "../view/table.ts";

export interface ScheduleListOptions extends StoreOptions {
  readonly json?: boolean | undefined;
  readonly agentId?: string | undefined;
  readonly owner?: string | undefined;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

export interface AddScheduleOptions extends StoreOptions {
  readonly agent: string;
  readonly at?: string | undefined;
  readonly every?: string | undefined;
  readonly cron?: string | undefined;
  readonly timezone?: string | undefined;
  readonly start?: string | undefined;
  readonly end?: string | undefined;
  readonly agentId?: string | undefined;
  readonly owner?: string | undefined;
  readonly ifMissed?: string | undefined;
  readonly ifBusy?: string | undefined;
}

export interface RunNowCommandOptions extends StoreOptions {
  /** The idempotency key of the run. */
  readonly key?: string | undefined;
}

function nothing(): void {}

/** Changes schedules in the store; the processes that run agents read them there. */
function schedulesIn(stores: Stores): StoredSchedules {
  return new StoredSchedules({
    stores,
    tenant: DEFAULT_TENANT,
    clock: { now: () => Date.now() },
    assertOpen: nothing,
    onNext: nothing,
  });
}

/** Lists a page of schedules by key. */
export async function listSchedulesCommand(context: CliContext, options: ScheduleListOptions): Promise<ExitCode> {
  const { out, note } = context;
  const place = storeLocation(context, options);
  const { agentId, owner: ownerId, after, limit = pageSize.usual } = options;
  const found = await withStore(place, "openExisting", async (stores) =>
    stores.schedules({ tenant: DEFAULT_TENANT, agentId, ownerId, after, limit: limit + 1 }),
  );
  const page = found.slice(0, limit);
  if (options.json === true) for (const schedule of page) out(JSON.stringify(schedule));
  else if (page.length === 0) out(`There are no ${after === undefined ? "" : "more "}schedules in ${place.name}.`);
  else tableLines(listColumns, page.map(rowOf), columnsOf(context)).forEach(out);
  if (found.length > limit) {
    const words = ["list", "--after", page.at(-1)?.key ?? "", ...place.words];
    note(`More: ${commandLine(context.invocation, "schedule", words)}`);
  }
  return exitCodes.success;
}

const listColumns: readonly Column[] = [
  { title: "KEY", minWidth: 12 },
  { title: "NEXT" },
  { title: "TIMES", minWidth: 12 },
  { title: "AGENT", minWidth: 8 },
  { title: "RUNS", align: "right" },
  { title: "MISSED", align: "right", leaveOut: 1 },
];

function rowOf(schedule: Schedule): string[] {
  const { key, definition, counts } = schedule;
  return [key, nextText(schedule), timesText(schedule), definition, String(counts.opened), String(counts.missed)];
}

function nextText({ nextAt, pausedAt }: Schedule): string {
  if (pausedAt !== null) return "paused";
  return nextAt === null ? "ended" : formatTime(nextAt);
}

function timesText({ times }: Schedule): string {
  switch (times.kind) {
    case "at":
      return `at ${formatTime(times.at)}`;
    case "every":
      return `every ${times.everyMs / 1_000} s`;
    case "cron":
      return `${times.cron} (${times.timezone})`;
    default:
      return times satisfies never;
  }
}

/** Shows a schedule with its last runs. */
export async function showScheduleCommand(
  context: CliContext,
  key: string,
  options: StoreOptions & { readonly json?: boolean },
): Promise<ExitCode> {
  const { out } = context;
  const place = storeLocation(context, options);
  const schedule = await withStore(place, "openExisting", async (stores) => await schedulesIn(stores).find(key));
  if (options.json === true) {
    out(JSON.stringify(schedule));
    return exitCodes.success;
  }
  const { definition, agentId, ownerId, ifMissed, ifBusy, counts, runs } = schedule;
  const lines = [
    ["key", schedule.key],
    ["agent", agentId === null ? `${definition}, a new one for each run` : `${definition}, ${agentId}`],
    ...(ownerId === null ? [] : [["owner", ownerId]]),
    ["times", timesText(schedule)],
    ["next", nextText(schedule)],
    ...(schedule.asked === undefined ? [] : [["requested", formatNumberOf(schedule.asked.length, "run")]]),
    ["if missed", ifMissed],
    ["if busy", ifBusy],
    ["runs", `${counts.opened} opened, ${counts.missed} missed, ${counts.busy} busy, ${counts.failed} failed`],
    ["input", textOf(schedule.input)],
  ];
  tableLines([{ title: "" }, { title: "", minWidth: 20 }], lines, columnsOf(context))
    .slice(1)
    .forEach(out);
  if (runs.length > 0) {
    const rows = runs.map(({ at, outcome, turnId, message = "" }) => [formatTime(at), outcome, turnId ?? "", message]);
    const columns = [{ title: "TIME" }, { title: "OUTCOME" }, { title: "TURN" }, { title: "", minWidth: 10 }];
    ["", ...tableLines(columns, rows, columnsOf(context))].forEach(out);
  }
  return exitCodes.success;
}

/** Adds a schedule, or replaces the one with that key. */
export async function addScheduleCommand(
  context: CliContext,
  key: string,
  options: AddScheduleOptions & { readonly input: string },
): Promise<ExitCode> {
  const place = storeLocation(context, options);
  const { agent, input, at, every, cron, timezone, start: startAt, end: endAt, agentId, owner: ownerId } = options;
  const { ifMissed, ifBusy } = options;
  const when = { at, every, cron, timezone, startAt, endAt };
  const settings = scheduleOptionsOf({ agent, input, ...when, agentId, ownerId, ifMissed, ifBusy });
  const schedule = await withStore(
    place,
    "open",
    async (stores) => await schedulesIn(stores).set(key, agent, settings),
  );
  context.out(`Schedule ${key}: next ${nextText(schedule)}. A process with the agent "${agent}" opens its turns.`);
  return exitCodes.success;
}

/** Requests one run of a schedule; a process that has its agent opens the turn. */
export async function runNowCommand(
  context: CliContext,
  key: string,
  options: RunNowCommandOptions,
): Promise<ExitCode> {
  const place = storeLocation(context, options);
  const { definition, runs } = await withStore(
    place,
    "openExisting",
    async (stores) => await schedulesIn(stores).ask(key, { key: options.key }),
  );
  const run = runs.find((one) => one.key !== undefined && one.key === options.key);
  if (run)
    context.out(`This run of ${key} was handled before: ${run.outcome}, ${run.turnId ?? run.message ?? "no turn"}.`);
  else
    context.out(`Requested a run of ${key}. A process with the agent "${definition}" opens its turn within seconds.`);
  return exitCodes.success;
}

/** Pauses, resumes or removes a schedule. */
export async function changeScheduleCommand(
  context: CliContext,
  key: string,
  options: StoreOptions & { readonly change: "pause" | "resume" | "cancel" },
): Promise<ExitCode> {
  const place = storeLocation(context, options);
  const done = await withStore(place, "openExisting", async (stores) => {
    const schedules = schedulesIn(stores);
    if (options.change !== "cancel") return `Schedule ${key}: next ${nextText(await schedules[options.change](key))}.`;
    if (await schedules.remove(key)) return `Cancelled: ${key}.`;
    throw new NotFoundError(`there is no schedule "${key}"`);
  });
  context.out(done);
  return exitCodes.success;
}
