import type { AgentDefinition } from "../../agents/index.ts";
import { type Account, turnAccountId } from "../../budget/index.ts";
import { AlreadyOwnedError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type AgentKey, rootOf, signalOfLimit, type Timer } from "../../state/index.ts";
import { type AccountTimer, isDue, isOfWork, type JobTimer, type Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { LiveAgents } from "../residence/live-agents.ts";
import type { RequestDesk } from "./request-desk.ts";
import type { Part } from "../doors/roles.ts";

export interface TimerPlace {
  readonly stores: Stores;
  readonly queues: Queues;
  readonly part: Pick<Part, "role">;
  readonly tenant: string;
  readonly clock: { now(): number; elapsed(): number };
  readonly live: LiveAgents;
  readonly desk: RequestDesk;
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
  if (timer.kind === "request") await place.desk.expire(timer.requestId);
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
