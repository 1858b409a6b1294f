import type { AgentDefinition } from "../../agents/index.ts";
import { type Account, turnAccountId } from "../../budget/index.ts";
import type { Activation } from "../agent/activation.ts";
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
import type { LiveAgents } from "../residence/live-agents.ts";
import type { Requests } from "./requests.ts";
import type { Part } from "../doors/roles.ts";
import type { Clock } from "../../base/index.ts";

/** Longest time between two looks at the store: another process may have set a timer and died. */
const LOOK_AGAIN_MS = 5_000;
/** Shortest time between two looks that nobody has asked for. */
const NOT_BEFORE_MS = 250;
const TIMERS_AT_A_TIME = 1_000;

/**
 * Fires stored timers that are due: whoever is alive does it (design, Timers).
 *
 * 1. It looks at the store again at least every 5 s by the steady time, however the clock is set, and when told to.
 * 2. A look that comes too early does no harm; the store says what is due.
 */
export class Alarms {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #onDue: (timer: Timer) => Promise<readonly Timer[]>;
  /** The next look: by the clock as it is set, and by the steady time. */
  readonly #armed = { now: alarmOff(), steady: alarmOff() };
  #isLooking = false;
  #isLookWanted = false;
  #closed = false;

  /** `onDue` gives timers that it has set. */
  constructor(stores: Stores, clock: Clock, onDue: (timer: Timer) => Promise<readonly Timer[]>) {
    this.#stores = stores;
    this.#clock = clock;
    this.#onDue = onDue;
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

  /** Others may have set timers; of those that are named it is not known which clock they are meant by. */
  heard(writes: ForeignWrites): void {
    if (writes === "any") return this.look();
    for (const { timerAt } of writes) {
      if (timerAt === null) continue;
      this.#armNow(timerAt);
      this.#armSteady(timerAt);
    }
  }

  /** Somebody else may have set timers, or made some due. */
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
        const due = await this.#stores.dueTimers(this.#clock.now(), TIMERS_AT_A_TIME, this.#clock.elapsed());
        // Each on its own: one that waits for its agent to be taken up must not keep the others waiting.
        const outcomes = await Promise.allSettled(due.map((timer) => this.#onDue(timer)));
        for (const outcome of outcomes) {
          if (outcome.status === "rejected") this.#report(outcome.reason);
          else this.note(outcome.value);
        }
      }
    } finally {
      // One that stays due is another owner's: it fires it itself.
      await this.#armNext(NOT_BEFORE_MS);
    }
  }

  /** The next time may be meant by either clock: whichever shows it first. */
  async #armNext(notBeforeMs: number): Promise<void> {
    const { now, steady } = { now: this.#clock.now(), steady: this.#clock.elapsed() };
    this.#armSteady(steady + LOOK_AGAIN_MS);
    const next = await this.#stores.nextTimerAt();
    if (next === undefined) return;
    this.#armNow(Math.max(next, now + notBeforeMs));
    this.#armSteady(Math.max(next, steady + notBeforeMs));
  }

  #report(error: unknown): void {
    if (!this.#closed) process.emitWarning(`timers could not be read: ${String(error)}`);
  }
}

interface Armed {
  readonly at: number;
  readonly cancel: () => void;
}

function alarmOff(): Armed {
  return { at: Number.POSITIVE_INFINITY, cancel: () => undefined };
}

export interface TimerPlace {
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

/** Timers that go to the agent itself. */
type AgentAlarm = Exclude<Timer, { kind: "request" | "claim" | "job" }>;
type LimitTimer = Extract<Timer, { kind: "limit" }>;
type WaitTimer = Extract<Timer, { kind: "wait" }>;

/**
 * Does what a timer that is due was set for: a request expires, a limit on time has run out or is near, room was kept in vain.
 * Gives timers that were set by that.
 */
export async function fireTimer(place: TimerPlace, timer: Timer): Promise<readonly Timer[]> {
  if (timer.tenant !== place.tenant) return [];
  // A client activates no agents, and whether working time is over is known only after lost agents were activated.
  if (timer.kind === "limit" && place.part.role === "client") return [];
  if (timer.kind === "claim" || isWarning(timer, place)) return await hear(place, timer);
  if (timer.kind === "job") return await addAgain(place, timer);
  if (timer.kind === "request") await place.requests.expire(timer.requestId);
  else await fireInAgent(place, timer);
  return [];
}

/** For timers that need no owner of the agent: the stores act on them, and say which agents to wake. */
async function hear(place: TimerPlace, timer: AccountTimer): Promise<readonly Timer[]> {
  const { stores, clock, live } = place;
  if (timer.kind === "limit" && isOfWork(timer) && (await activateLost(place, timer))) return [];
  const { posted, timers } = await stores.fireTimer(timer, clock.now(), clock.elapsed());
  live.notify(posted);
  return timers;
}

/** A queued call has not ended, and its job may be lost. Adding a job that is there already changes nothing. */
async function addAgain({ stores, queues, clock }: TimerPlace, timer: JobTimer): Promise<readonly Timer[]> {
  const { tenant, agentId } = timer;
  const { timers, jobs = [] } = await stores.fireTimer(timer, clock.now(), clock.elapsed());
  for (const { queue, callId, attempt, isRepeatable, priority } of jobs) {
    await queues.add(queue, { tenant, agentId, callId, attempt, isRepeatable }, { priority });
  }
  return timers;
}

/** The limit itself is still to come. */
function isWarning(timer: Timer, { clock }: TimerPlace): timer is LimitTimer {
  if (timer.kind !== "limit" || timer.limitAt === undefined) return false;
  return timer.limitAt > (isOfWork(timer) ? clock.elapsed() : clock.now());
}

async function fireInAgent(place: TimerPlace, timer: AgentAlarm): Promise<void> {
  const key = place.keyOf(timer.agentId);
  const live = place.live.get(key);
  // A client runs no agents; to activate what is not known here, and give it back, would keep every process busy.
  if (!live && (place.part.role === "client" || !(await isKnown(place, key)))) return;
  try {
    await place.live.passivation.during(key, () => fireInLive(place, timer, key));
  } catch (error) {
    // Its owner, or a runtime that knows its definition, does this.
    if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError || error instanceof NotFoundError) return;
    throw error;
  }
}

async function fireInLive(place: TimerPlace, timer: AgentAlarm, key: AgentKey): Promise<void> {
  const live = place.live.get(key);
  const activation = live ?? (await place.live.activateUnlessShutDown(key));
  if (!activation) return;
  if (timer.kind === "limit" && isOfWork(timer) && (await activateLost(place, timer))) return;
  // Activating agents leaves out the time in which none of them worked, and so may have put the timer off.
  if (!live && !(await isStillDue(place, timer))) return;
  place.live.notify(await takeTimer(place.stores, activation, timer));
}

/**
 * Before working time is said to be over: agents that count as working below, in other processes, may be dead since long.
 * Activating them leaves out the time since then. True when the timer is not due any more.
 */
async function activateLost(place: TimerPlace, timer: LimitTimer): Promise<boolean> {
  const accounts = await place.stores.accounts(place.tenant, rootOf(timer.agentId));
  const parents = new Map(accounts.map(({ id, parentId }) => [id, parentId]));
  const isBelow = (id: string | null): boolean => {
    for (let at = id; at !== null; at = parents.get(at) ?? null) if (at === timer.accountId) return true;
    return false;
  };
  const elsewhere = accounts.filter(
    ({ id, agentId, isActive }) => isActive && isBelow(id) && !place.live.get(place.keyOf(agentId)),
  );
  if (elsewhere.length === 0) return false;
  const rescue = async ({ agentId }: Account): Promise<void> => {
    if (await isKnown(place, place.keyOf(agentId))) await place.live.rescue(agentId);
  };
  await Promise.all(elsewhere.map(rescue));
  return !(await isStillDue(place, timer));
}

async function isKnown({ stores, definitions }: TimerPlace, key: AgentKey): Promise<boolean> {
  const record = await stores.readAgent(key);
  return record !== undefined && definitions.has(record.definition.name);
}

/** Whether it is stored and due as it was: that of a limit may have become that of its warning again. */
async function isStillDue(place: TimerPlace, timer: Timer): Promise<boolean> {
  const { stores, clock } = place;
  const asSet = await stores.timer(timer, timer.id);
  if (!asSet || !isDue(asSet, { now: clock.now(), steady: clock.elapsed() })) return false;
  return isWarning(asSet, place) === isWarning(timer, place);
}

/** Takes a timer that is due into its agent. Gives the agents that were posted to. */
async function takeTimer(stores: Stores, activation: Activation, timer: AgentAlarm): Promise<readonly string[]> {
  if (timer.kind === "limit") return await takeLimit(stores, activation, timer);
  takeWait(activation, timer);
  return [];
}

/**
 * A limit on time has run out: the open turn hears of it where it spends under the account, and so does whatever goes on in
 * the background there.
 */
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

/** A call has waited long enough for children in the background. */
function takeWait(activation: Activation, { turnId, callId, id }: WaitTimer): void {
  const call = activation.openTurnId === turnId ? activation.call(turnId, callId) : undefined;
  if (call?.wait && call.outcome === null) activation.append({ type: "call.expired", turnId, step: call.step, callId });
  activation.writer.clearTimer(id);
}
