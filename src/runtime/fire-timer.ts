import { AlreadyOwnedError, LeaseLostError, NotFoundError } from "../errors/index.ts";
import type { AgentKey, Timer } from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { LiveAgents } from "./live-agents.ts";
import type { RequestDesk } from "./request-desk.ts";

export interface TimerPlace {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: { now(): number };
  readonly live: LiveAgents;
  readonly desk: RequestDesk;
  keyOf(agentId: string): AgentKey;
}

const TIMERS_AT_A_TIME = 100;

/** What a timer that is due calls for: a request expires, or a limit on time has run out. */
export async function fireTimer(place: TimerPlace, timer: Timer): Promise<void> {
  if (timer.tenant !== place.tenant) return;
  if (timer.kind === "request") return await place.desk.expire(timer.requestId);
  try {
    const activation = await place.live.activateUnlessShutDown(place.keyOf(timer.agentId));
    if (!activation) return;
    // Taking the agent up leaves out the time in which nobody worked, and so may have put the alarm off.
    const due = await place.stores.dueTimers(place.clock.now(), TIMERS_AT_A_TIME);
    if (due.some(({ agentId, id }) => agentId === timer.agentId && id === timer.id)) {
      place.live.takeTimer(activation, timer);
    }
  } catch (error) {
    // Its owner, or a runtime that knows its definition, sees to it.
    if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError || error instanceof NotFoundError) return;
    throw error;
  }
}
