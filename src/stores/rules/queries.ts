import { InvalidInputError } from "../../errors/index.ts";
import type { AgentRecord, AgentRequest, Timer } from "../../state/index.ts";

export interface AgentFilter {
  readonly tenant: string;
  readonly rootAgentId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly rootsOnly?: boolean | undefined;
  /**
   * `id`, the default: by their ids. `newest`: the one made last comes first, those of one moment by their ids; only with
   * `rootsOnly`.
   */
  readonly order?: "id" | "newest" | undefined;
  /** At most this many, 100 by default. */
  readonly limit?: number | undefined;
  /**
   * Continue after this agent id; in the order `newest` after this place, which `placeOfAgent(record)` gives, whether or not
   * its agent is still there.
   */
  readonly after?: string | undefined;
}

export interface RequestFilter {
  readonly tenant: string;
  readonly rootAgentId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly turnId?: string | undefined;
  readonly status?: AgentRequest["status"] | undefined;
  /** At most this many, 100 by default; in the order of their opening, those of one moment by their ids. */
  readonly limit?: number | undefined;
  /** Continue after this request id. Throws `InvalidInputError` where no such request is stored. */
  readonly after?: string | undefined;
}

export interface MessageQuery {
  /** Only the newest so many; in order, oldest first. */
  readonly maxMessages?: number | undefined;
}

export interface UnattendedQuery {
  /** Who asks: what it holds itself is attended. */
  readonly processId: string;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. */
  readonly leaseMs: number;
  /** At most this many, 100 by default. */
  readonly limit?: number | undefined;
  /** Continue after this agent id, the last one that was given. The order is the stores' own. */
  readonly after?: string | undefined;
}

/** Where an agent stands among those that are listed newest first. It never moves. */
export type AgentPlace = Pick<AgentRecord, "createdAt" | "agentId">;

/** The place as a text, to continue a list of root agents in the order `newest` after it. */
export function placeOfAgent({ createdAt, agentId }: AgentPlace): string {
  return `${createdAt}:${agentId}`;
}

/** Throws `InvalidInputError` for a text that `placeOfAgent` does not give. */
export function agentAtPlace(text: string): AgentPlace {
  const [, createdAt, agentId] = /^(-?\d{1,16}):(.+)$/s.exec(text) ?? [];
  if (createdAt !== undefined && agentId !== undefined && Number.isSafeInteger(Number(createdAt)))
    return { createdAt: Number(createdAt), agentId };
  throw new InvalidInputError(
    `after is ${JSON.stringify(text)}; in the order "newest" it takes the place of a listed agent`,
  );
}

/** Newest first, those of one moment by their ids. */
export function byAge(one: AgentPlace, other: AgentPlace): number {
  if (one.createdAt !== other.createdAt) return other.createdAt - one.createdAt;
  if (one.agentId === other.agentId) return 0;
  return one.agentId < other.agentId ? -1 : 1;
}

/** One moment by the two times of a store. */
export interface Moment {
  /** As people's clocks show it, in milliseconds since the epoch; it may jump. */
  readonly now: number;
  /**
   * The store's own time, in milliseconds: it goes on steadily, whoever sets a clock, and is the same for all processes of
   * one boot. Leases and working time are measured by it.
   */
  readonly steady: number;
}

/** Whether an alarm is due. */
export function isDue(timer: Timer, { now, steady }: Moment): boolean {
  return timer.dueAt <= (isBySteadyTime(timer) ? steady : now);
}

/** Working time, how long room is kept and when a queued call is looked at are told by the steady time, what people named by theirs. */
export function isBySteadyTime(timer: Timer): boolean {
  return timer.kind === "claim" || timer.kind === "job" || isOfWork(timer);
}

/** Whether it counts working time. */
export function isOfWork(timer: Timer): boolean {
  return timer.kind === "limit" && timer.limit === "maxActiveMs";
}
