import type { AgentDefinition } from "../agents/index.ts";
import type { Account } from "../budget/index.ts";
import { AlreadyOwnedError, LeaseLostError, NotFoundError } from "../errors/index.ts";
import type { AgentKey, Timer } from "../state/index.ts";
import { isDue, isOfWork, type Stores } from "../stores/index.ts";
import type { Activation } from "./activation.ts";
import type { LiveAgents } from "./live-agents.ts";
import type { RequestDesk } from "./request-desk.ts";

export interface TimerPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: { now(): number; elapsed(): number };
  readonly live: LiveAgents;
  readonly desk: RequestDesk;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  keyOf(agentId: string): AgentKey;
}

type LimitTimer = Extract<Timer, { kind: "limit" }>;

/** What a timer that is due calls for: a request expires, or a limit on time has run out. */
export async function fireTimer(place: TimerPlace, timer: Timer): Promise<void> {
  if (timer.tenant !== place.tenant) return;
  if (timer.kind === "request") return await place.desk.expire(timer.requestId);
  try {
    const key = place.keyOf(timer.agentId);
    const live = place.live.get(key);
    // Taking up what is not known here, and giving it back, would keep every process busy.
    if (!live && !(await isKnown(place, key))) return;
    const activation = live ?? (await place.live.activateUnlessShutDown(key));
    if (!activation) return;
    if (timer.kind === "limit" && isOfWork(timer) && (await takeUpLost(place, activation, timer))) return;
    // Taking agents up leaves out the time in which nobody worked, and so may have put the alarm off.
    if (!live && !(await isStillDue(place, timer))) return;
    await place.live.takeTimer(activation, timer);
  } catch (error) {
    // Its owner, or a runtime that knows its definition, sees to it.
    if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError || error instanceof NotFoundError) return;
    throw error;
  }
}

/**
 * Before working time is said to be over: those who count as working below, in other processes, may be dead since long.
 * Who takes one of them up has the time since then left out. True when the timer is not due any more.
 */
async function takeUpLost(place: TimerPlace, { identity }: Activation, timer: LimitTimer): Promise<boolean> {
  const accounts = await place.stores.accounts(place.tenant, identity.rootAgentId);
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

async function isStillDue({ stores, clock }: TimerPlace, timer: Timer): Promise<boolean> {
  const asSet = await stores.timer(timer, timer.id);
  return asSet !== undefined && isDue(asSet, { now: clock.now(), steady: clock.elapsed() });
}
