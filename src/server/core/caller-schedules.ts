import { type Clock, createId } from "../../base/index.ts";
import { NotFoundError, PolicyRefusedError } from "../../errors/index.ts";
import { type Agent, assertApart, checkedTimes, type Runtime } from "../../runtime/index.ts";
import type { Schedule, ScheduledRun } from "../../state/index.ts";
import { assertSame, assertUnmarked, creationMark } from "./creation-mark.ts";
import { contentHash, type RequestKey, scheduleIdOfKey, scheduleIdOfName, turnKeyOf } from "./names.ts";
import { limitOf, type Page, type PageOptions, pageOf } from "./pages.ts";
import { assertNotRaised } from "./turn-budget.ts";

/** A schedule that a client asks for. */
export interface NewScheduleOptions extends Omit<Parameters<Runtime["schedule"]>[1], "agent" | "ownerId" | "actorId"> {
  /** Name of the definition. */
  readonly definition: string;
  /** A name that the client chooses; the same name is the same schedule. Default: none. */
  readonly name?: string | undefined;
  /** Idempotency key; without a name it also identifies the schedule. Default: none. */
  readonly key?: RequestKey | undefined;
}

/** Limits of one caller's schedules. */
export interface ScheduleLimits {
  /** Maximum number of schedules. */
  readonly schedules: number;
  /** Minimum distance between two times of a schedule, in milliseconds. */
  readonly scheduleDistanceMs: number;
}

interface CallerSchedulesDependencies {
  /** The runtime of the caller's tenant. */
  readonly runtime: Runtime;
  /** The source of time of the server. */
  readonly clock: Pick<Clock, "now">;
  /** The caller. */
  readonly ownerId: string;
  /** The caller's limits. */
  readonly limits: ScheduleLimits;
  /** Counts a turn until the returned function is called. Rejects with `ServerError` (429). */
  admitTurn(): Promise<() => void>;
  /** A root agent of the caller. Rejects with `NotFoundError`. */
  root(agentId: string): Promise<Agent>;
  /** The error for a schedule that is missing, or exists and belongs to another caller. */
  stranger(exists: boolean): Error;
}

const of = "the schedule";

/**
 * The schedules of one identity.
 *
 * 1. Each lookup checks the owner. The answer for a schedule of another owner is the same as for a missing one.
 * 2. A schedule of a caller runs a definition of this runtime, for this caller: as actor, as owner, and only in the caller's own agents.
 * 3. Its turns have at most the definition's limits, and its times keep the server's distance.
 * 4. A caller has at most `limits.schedules` schedules, however many requests create some at once, on however many servers.
 * 5. Creating a schedule and running it now count as starting a turn, so that neither is a way around the limits of turns.
 */
export class CallerSchedules {
  readonly #dependencies: CallerSchedulesDependencies;

  constructor(dependencies: CallerSchedulesDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * Sets a schedule; one with the same name is replaced. `isReplayed`: it existed before. Rejects with `ServerError` (`key_reused`) if a
   * different request with the key has created it, and with `PolicyRefusedError` beyond the limits.
   */
  async set(options: NewScheduleOptions): Promise<{ readonly schedule: Schedule; readonly isReplayed: boolean }> {
    const { runtime, clock, ownerId, limits } = this.#dependencies;
    const { definition, name, key, metadata = {}, ...rest } = options;
    assertUnmarked(metadata);
    const mark =
      key === undefined || name !== undefined ? {} : { [creationMark]: contentHash({ ...options, key: undefined }) };
    const id = this.#idOf(name, key);
    const before = await runtime.schedules.get(id);
    if (before !== undefined && before.ownerId !== ownerId) throw this.#dependencies.stranger(true);
    if (before !== undefined && key !== undefined && name === undefined) {
      assertSame(before.metadata, mark);
      return { schedule: before, isReplayed: true };
    }
    assertNotRaised(runtime.definitions.get(definition), rest.budget, clock.now());
    if (rest.agentId !== undefined) await this.#dependencies.root(rest.agentId);
    const times = await checkedTimes(rest, clock.now(), of);
    await assertApart(times, clock.now(), { of, minDistanceMs: limits.scheduleDistanceMs });
    if (before === undefined) await this.#assertRoom();
    const schedule = await this.#counted(
      async () =>
        await runtime.schedule(id, {
          ...rest,
          agent: definition,
          ownerId,
          actorId: ownerId,
          metadata: { ...metadata, ...mark },
        }),
    );
    if (before === undefined) await this.#assertAmongAllowed(schedule);
    return { schedule, isReplayed: before !== undefined };
  }

  /** By key, those of one agent or all. */
  async list(page: PageOptions & { readonly agentId?: string | undefined } = {}): Promise<Page<Schedule>> {
    const { runtime, ownerId } = this.#dependencies;
    const { agentId, after } = page;
    const limit = limitOf(page);
    const found = await runtime.schedules.list({ ownerId, agentId, after, limit: limit + 1 });
    return pageOf(found, limit, ({ key }) => key);
  }

  /** Rejects with `NotFoundError`. */
  async get(id: string): Promise<Schedule> {
    const { runtime, ownerId } = this.#dependencies;
    const schedule = isKey(id) ? await runtime.schedules.get(id) : undefined;
    if (schedule?.ownerId !== ownerId) throw this.#dependencies.stranger(schedule !== undefined);
    return schedule;
  }

  /** Rejects with `NotFoundError`. */
  async pause(id: string): Promise<Schedule> {
    return await this.#change(id, async (key) => await this.#dependencies.runtime.schedules.pause(key));
  }

  /** Rejects with `NotFoundError`. */
  async resume(id: string): Promise<Schedule> {
    return await this.#change(id, async (key) => await this.#dependencies.runtime.schedules.resume(key));
  }

  /** Removes a schedule and returns it as it was. Its turns continue. Rejects with `NotFoundError`. */
  async remove(id: string): Promise<Schedule> {
    const schedule = await this.get(id);
    if (await this.#dependencies.runtime.unschedule(schedule.key)) return schedule;
    throw this.#dependencies.stranger(false);
  }

  /** Opens one turn now; with a key once. Rejects with `NotFoundError`. */
  async run(id: string, given?: RequestKey): Promise<{ readonly run: ScheduledRun; readonly isReplayed: boolean }> {
    const { runtime } = this.#dependencies;
    const key = given === undefined ? createId() : turnKeyOf(given);
    const schedule = await this.get(id);
    const known = schedule.runs.find((run) => run.key === key && run.outcome === "opened");
    if (known) return { run: known, isReplayed: true };
    const run = await this.#change(
      id,
      async () => await this.#counted(async () => await runtime.schedules.runNow(schedule.key, { key })),
    );
    return { run, isReplayed: false };
  }

  #idOf(name: string | undefined, key: RequestKey | undefined): string {
    const scope = { tenant: this.#dependencies.runtime.tenant, ownerId: this.#dependencies.ownerId };
    if (name !== undefined) return scheduleIdOfName(scope, name);
    return key === undefined ? createId() : scheduleIdOfKey(scope, key);
  }

  /** Replaces not-found errors: the schedule may have been removed since it was read, and the messages contain ids. */
  async #change<Value>(id: string, change: (key: string) => Promise<Value>): Promise<Value> {
    const { key } = await this.get(id);
    try {
      return await change(key);
    } catch (error) {
      const isGone =
        error instanceof NotFoundError && (await this.#dependencies.runtime.schedules.get(key)) === undefined;
      throw isGone ? this.#dependencies.stranger(false) : error;
    }
  }

  async #counted<Value>(work: () => Promise<Value>): Promise<Value> {
    const release = await this.#dependencies.admitTurn();
    try {
      return await work();
    } finally {
      release();
    }
  }

  async #assertRoom(): Promise<void> {
    const { runtime, ownerId, limits } = this.#dependencies;
    const found = await runtime.schedules.list({ ownerId, limit: limits.schedules });
    if (found.length >= limits.schedules) throw this.#tooMany(found);
  }

  /** Removes the new schedule if others were created at the same time, and is too late among them. */
  async #assertAmongAllowed(schedule: Schedule): Promise<void> {
    const { runtime, ownerId, limits } = this.#dependencies;
    const found = await runtime.schedules.list({ ownerId, limit: limits.schedules + MOST_AT_ONCE });
    const allowed = found.toSorted(byCreation).slice(0, limits.schedules);
    if (found.length <= limits.schedules || allowed.some(({ key }) => key === schedule.key)) return;
    await runtime.unschedule(schedule.key);
    throw this.#tooMany(allowed);
  }

  #tooMany(found: readonly Schedule[]): PolicyRefusedError {
    const ended = found.filter(({ nextAt }) => nextAt === null).length;
    const which = ended === 0 ? "delete one first" : `${ended} of them have ended; delete some first`;
    return new PolicyRefusedError(`you have ${found.length} schedules, as many as this server allows; ${which}`);
  }
}

/** How many schedules of one caller may be created at the same moment. */
const MOST_AT_ONCE = 10_000;
const LONGEST_KEY = 100;

/** Whether a schedule can have this key. */
function isKey(id: string): boolean {
  return id.length <= LONGEST_KEY && /^[A-Za-z0-9._@-]+$/.test(id);
}

function byCreation(one: Schedule, other: Schedule): number {
  return one.createdAt - other.createdAt || (one.key < other.key ? -1 : 1);
}
