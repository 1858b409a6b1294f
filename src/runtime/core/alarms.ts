import type { AgentDefinition } from "../../agents/index.ts";
import { type Account, turnAccountId } from "../../budget/index.ts";
import type { Activation } from "../agent/activation.ts";
import { cancelIfOver } from "../agent/call-queue.ts";
import { AlreadyOwnedError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type AgentKey, rootOf, type Timer, signalOfLimit } from "../../state/index.ts";
import {
  type AccountTimer,
  isDue,
  isOfWork,
  type JobTimer,
  type Stores,
  type ForeignWrites,
  isBySteadyTime,
} from "../../stores/index.ts";
import type { LiveAgents } from "../placement/live-agents.ts";
import type { Requests } from "./requests.ts";
import type { Part } from "../api/roles.ts";
import type { Clock } from "../../base/index.ts";

/** Maximum time between two reads of the store, since another process may have set a timer and died. */
const LOOK_AGAIN_MS = 5_000;
/** Minimum time until the next read, unless one is requested. */
const NOT_BEFORE_MS = 250;
const TIMERS_AT_A_TIME = 1_000;

/** Stored times at which something is to be done, by whichever live process finds them. */
export interface AlarmSource {
  /** Named in warnings. */
  readonly what: string;
  /** Handles everything that is due, and returns the timers that this has set. `report` is called with each failure. */
  fireDue(report: (error: unknown) => void): Promise<readonly Timer[]>;
  /** The next time at which to look, in wall-clock or steady time. */
  nextAt(): Promise<number | undefined>;
}

/** The stored timers. `onDue` returns the timers that it has set. */
export function timerSource(
  stores: Pick<Stores, "dueTimers" | "nextTimerAt">,
  clock: Clock,
  onDue: (timer: Timer) => Promise<readonly Timer[]>,
): AlarmSource {
  return {
    what: "timers",
    nextAt: () => stores.nextTimerAt(),
    fireDue: async (report) => {
      const due = await stores.dueTimers(clock.now(), TIMERS_AT_A_TIME, clock.elapsed());
      // In parallel: a timer that waits for its agent's activation must not delay the others.
      const outcomes = await Promise.allSettled(due.map((timer) => onDue(timer)));
      return outcomes.flatMap((outcome) => {
        if (outcome.status === "fulfilled") return outcome.value;
        report(outcome.reason);
        return [];
      });
    },
  };
}

/**
 * Fires stored timers or schedules that are due. Any live process may do so.
 *
 * 1. It reads the store at least every 5 s of monotonic time, however the clock is set, and on every request.
 * 2. An early read is harmless, because the store decides what is due.
 */
export class Alarms {
  readonly #source: AlarmSource;
  readonly #clock: Clock;
  /** When the next read is due, by wall-clock time and by monotonic time. */
  readonly #armed = { now: alarmOff(), steady: alarmOff() };
  #isLooking = false;
  #isLookWanted = false;
  #closed = false;

  constructor(source: AlarmSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  async start(): Promise<void> {
    await this.#armNext(0);
  }

  note(timers: readonly Timer[]): void {
    for (const timer of timers) {
      if (isBySteadyTime(timer)) this.#armSteady(timer.dueAt);
      else this.#armNow(timer.dueAt);
    }
  }

  /** Looks at that time of the wall clock at the latest. */
  noteTime(at: number): void {
    this.#armNow(at);
  }

  /** Arms timers that other processes may have set. A write does not say which clock a timer uses, so both are armed. */
  heard(writes: ForeignWrites): void {
    if (writes === "any") return this.look();
    for (const { timerAt } of writes.all) {
      if (timerAt === null) continue;
      this.#armNow(timerAt);
      this.#armSteady(timerAt);
    }
  }

  /** Reads the store now, because another process may have set timers or made some due. */
  look(): void {
    if (this.#closed) return;
    this.#isLookWanted = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#lookWhileWanted()
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#isLooking = false;
      });
  }

  close(): void {
    this.#closed = true;
    this.#armed.now.cancel();
    this.#armed.steady.cancel();
  }

  #armNow(at: number): void {
    if (this.#closed || at >= this.#armed.now.at) return;
    this.#armed.now.cancel();
    this.#armed.now = { at, cancel: this.#clock.setTimer(at, () => this.#onAlarm("now")) };
  }

  #armSteady(at: number): void {
    if (this.#closed || at >= this.#armed.steady.at) return;
    this.#armed.steady.cancel();
    const left = Math.max(0, at - this.#clock.elapsed());
    this.#armed.steady = { at, cancel: this.#clock.setDelay(left, () => this.#onAlarm("steady")) };
  }

  #onAlarm(which: "now" | "steady"): void {
    this.#armed[which] = alarmOff();
    this.look();
  }

  async #lookWhileWanted(): Promise<void> {
    try {
      while (this.#isLookWanted && !this.#closed) {
        this.#isLookWanted = false;
        this.note(await this.#source.fireDue((error) => this.#report(error)));
      }
    } finally {
      // A timer that stays due is fired by its agent's owner.
      await this.#armNext(NOT_BEFORE_MS);
    }
  }

  /** The next timer may use either clock, so both are armed. */
  async #armNext(notBeforeMs: number): Promise<void> {
    const { now, steady } = { now: this.#clock.now(), steady: this.#clock.elapsed() };
    this.#armSteady(steady + LOOK_AGAIN_MS);
    const next = await this.#source.nextAt();
    if (next === undefined) return;
    this.#armNow(Math.max(next, now + notBeforeMs));
    this.#armSteady(Math.max(next, steady + notBeforeMs));
  }

  #report(error: unknown): void {
    if (!this.#closed) process.emitWarning(`${this.#source.what} could not be read: ${String(error)}`);
  }
}

interface Armed {
  readonly at: number;
  readonly cancel: () => void;
}

function alarmOff(): Armed {
  return { at: Number.POSITIVE_INFINITY, cancel: () => undefined };
}

export interface TimerDependencies {
  readonly stores: Stores;
  readonly queues: Queues;
  readonly part: Pick<Part, "role">;
  readonly tenant: string;
  readonly clock: { now(): number; elapsed(): number };
  readonly live: LiveAgents;
  readonly requests: Requests;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  keyOf(agentId: string): AgentKey;
}

/** Timers that are fired in the agent itself. */
type AgentAlarm = Exclude<Timer, { kind: "request" | "claim" | "job" }>;
type LimitTimer = Extract<Timer, { kind: "limit" }>;
type WaitTimer = Extract<Timer, { kind: "wait" }>;

/**
 * Acts on a due timer: expires a request, enforces a time limit or warns of it, or ends a wait. Returns the timers that this has
 * set.
 */
export async function fireTimer(dependencies: TimerDependencies, timer: Timer): Promise<readonly Timer[]> {
  if (timer.tenant !== dependencies.tenant) return [];
  // A client activates no agents, and whether working time is over is known only after lost agents were activated.
  if (timer.kind === "limit" && dependencies.part.role === "client") return [];
  if (timer.kind === "claim" || isWarning(timer, dependencies)) return await hear(dependencies, timer);
  if (timer.kind === "job") return await addAgain(dependencies, timer);
  if (timer.kind === "request") await dependencies.requests.expire(timer.requestId);
  else await fireInAgent(dependencies, timer);
  return [];
}

/** Fires timers that need no owner: the stores act on them and return the agents to wake. */
async function hear(dependencies: TimerDependencies, timer: AccountTimer): Promise<readonly Timer[]> {
  const { stores, clock, live } = dependencies;
  if (timer.kind === "limit" && isOfWork(timer) && (await activateLost(dependencies, timer))) return [];
  const { posted, timers } = await stores.fireTimer(timer, clock.now(), clock.elapsed());
  live.notify(posted);
  return timers;
}

/** Adds jobs of queued calls again, since they may be lost. Adding an existing job has no effect. */
async function addAgain({ stores, queues, clock }: TimerDependencies, timer: JobTimer): Promise<readonly Timer[]> {
  const { tenant, agentId } = timer;
  const { timers, jobs = [] } = await stores.fireTimer(timer, clock.now(), clock.elapsed());
  for (const { queue, callId, attempt, isRepeatable, priority } of jobs) {
    const job = { tenant, agentId, callId, attempt, isRepeatable };
    await queues.add(queue, job, { priority });
    await cancelIfOver({ queues, stores }, queue, job);
  }
  return timers;
}

/** Whether the timer warns of a limit that has not been reached yet. */
function isWarning(timer: Timer, { clock }: TimerDependencies): timer is LimitTimer {
  if (timer.kind !== "limit" || timer.limitAt === undefined) return false;
  return timer.limitAt > (isOfWork(timer) ? clock.elapsed() : clock.now());
}

async function fireInAgent(dependencies: TimerDependencies, timer: AgentAlarm): Promise<void> {
  const key = dependencies.keyOf(timer.agentId);
  const live = dependencies.live.get(key);
  // A client runs no agents. Activating an agent whose definition is unknown would keep every process busy, since it is released
  // again immediately.
  if (!live && (dependencies.part.role === "client" || !(await isKnown(dependencies, key)))) return;
  try {
    await dependencies.live.passivation.during(key, () => fireInLive(dependencies, timer, key));
  } catch (error) {
    // The agent's owner, or a runtime that knows its definition, fires the timer.
    if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError || error instanceof NotFoundError) return;
    throw error;
  }
}

async function fireInLive(dependencies: TimerDependencies, timer: AgentAlarm, key: AgentKey): Promise<void> {
  const live = dependencies.live.get(key);
  const activation = live ?? (await dependencies.live.activateUnlessShutDown(key));
  if (!activation) return;
  if (timer.kind === "limit" && isOfWork(timer) && (await activateLost(dependencies, timer))) return;
  // Activation subtracts the time in which none of the agents worked, and may have postponed the timer.
  if (!live && !(await isStillDue(dependencies, timer))) return;
  dependencies.live.notify(await takeTimer(dependencies.stores, activation, timer));
}

/**
 * Activates the agents below the account that other processes report as working, because those processes may have died long ago.
 * Activation subtracts the time since then. Returns true if the timer is not due any more.
 */
async function activateLost(dependencies: TimerDependencies, timer: LimitTimer): Promise<boolean> {
  const accounts = await dependencies.stores.accounts(dependencies.tenant, rootOf(timer.agentId));
  const parents = new Map(accounts.map(({ id, parentId }) => [id, parentId]));
  const isBelow = (id: string | null): boolean => {
    for (let at = id; at !== null; at = parents.get(at) ?? null) if (at === timer.accountId) return true;
    return false;
  };
  const elsewhere = accounts.filter(
    ({ id, agentId, isActive }) => isActive && isBelow(id) && !dependencies.live.get(dependencies.keyOf(agentId)),
  );
  if (elsewhere.length === 0) return false;
  const activate = async ({ agentId }: Account): Promise<void> => {
    if (await isKnown(dependencies, dependencies.keyOf(agentId))) await dependencies.live.tryActivate(agentId);
  };
  await Promise.all(elsewhere.map(activate));
  return !(await isStillDue(dependencies, timer));
}

async function isKnown({ stores, definitions }: TimerDependencies, key: AgentKey): Promise<boolean> {
  const record = await stores.readAgent(key);
  return record !== undefined && definitions.has(record.definition.name);
}

/** Whether the timer is still stored and due in the same role: a limit's timer may have become a warning again. */
async function isStillDue(dependencies: TimerDependencies, timer: Timer): Promise<boolean> {
  const { stores, clock } = dependencies;
  const asSet = await stores.timer(timer, timer.id);
  if (!asSet || !isDue(asSet, { now: clock.now(), steady: clock.elapsed() })) return false;
  return isWarning(asSet, dependencies) === isWarning(timer, dependencies);
}

/** Fires a due timer in its agent. Returns the agents that have new inbox items. */
async function takeTimer(stores: Stores, activation: Activation, timer: AgentAlarm): Promise<readonly string[]> {
  if (activation.writer.isClearing(timer.id)) return [];
  if (timer.kind === "limit") return await takeLimit(stores, activation, timer);
  takeWait(activation, timer);
  return [];
}

/** Ends the open turn and background work under the account whose time limit has run out. */
async function takeLimit(stores: Stores, activation: Activation, timer: LimitTimer): Promise<readonly string[]> {
  const { key, identity, clock, definition } = activation;
  const { accountId, limit, id } = timer;
  const holder = { name: definition.name, kinship: "own" } as const;
  const accounts = await stores.accounts(key.tenant, identity.rootAgentId);
  const max = accounts.find((account) => account.id === accountId)?.limits[limit];
  const used = limit === "deadlineAt" ? clock.now() : max;
  const signal = signalOfLimit(limit, accountId, { holder, used, max });
  const command = { turnId: null, accountId, by: key.agentId, reason: signal.message, stopReason: signal.reason };
  const outcome = await stores.abort(key, command, clock.now());
  const parents = new Map(accounts.map((account) => [account.id, account.parentId]));
  const turnId = activation.openTurnId;
  for (let at = turnId === null ? null : turnAccountId(turnId); at !== null; at = parents.get(at) ?? null) {
    if (at !== accountId || turnId === null) continue;
    activation.append({ type: "timer.due", turnId, timerId: id, signal });
  }
  activation.writer.clearTimer(id);
  return outcome.type === "notFound" ? [] : outcome.posted;
}

/** Ends a call whose wait for background children has timed out. */
function takeWait(activation: Activation, { turnId, callId, id }: WaitTimer): void {
  const call = activation.openTurnId === turnId ? activation.call(turnId, callId) : undefined;
  if (call?.wait && call.outcome === null) activation.append({ type: "call.expired", turnId, step: call.step, callId });
  activation.writer.clearTimer(id);
}
