import type { Moment } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, AgentRequest, Schedule, Timer, TurnRecord } from "../../state/index.ts";

export interface AgentFilter {
  /** Only agents of this tenant. */
  readonly tenant: string;
  /** Only agents of this tree. Default: of all trees. */
  readonly rootAgentId?: string | undefined;
  /** Only agents of this session. Default: of all sessions. */
  readonly sessionId?: string | undefined;
  /** Only agents of this owner. Default: of all owners. */
  readonly ownerId?: string | undefined;
  /** Whether to leave out subagents. Default false. */
  readonly rootsOnly?: boolean | undefined;
  /** `id`: by agent id. `newest`: by creation, newest first, then by id; only with `rootsOnly`. Default `id`. */
  readonly order?: "id" | "newest" | undefined;
  /** Maximum number of results. Default 100. */
  readonly limit?: number | undefined;
  /**
   * Continue after this agent id, or in the order `newest` after this position, as returned by `formatAgentCursor(record)`. The agent
   * need not exist any more. Default: from the beginning.
   */
  readonly after?: string | undefined;
}

export interface RequestFilter {
  /** Only requests of this tenant. */
  readonly tenant: string;
  /** Only requests of this tree. Default: of all trees. */
  readonly rootAgentId?: string | undefined;
  /** Only requests of this agent. Default: of all agents. */
  readonly agentId?: string | undefined;
  /** Only requests of this turn. Default: of all turns. */
  readonly turnId?: string | undefined;
  /** Only requests of agents of this owner. Default: of all owners. */
  readonly ownerId?: string | undefined;
  /** Only requests with this status. Default `open`. */
  readonly status?: AgentRequest["status"] | undefined;
  /** Maximum number of results, in the order of opening, then by id. Default 100. */
  readonly limit?: number | undefined;
  /** Continue after this request id. Throws `InvalidInputError` if no such request is stored. Default: from the beginning. */
  readonly after?: string | undefined;
}

export interface TurnFilter {
  /** Only turns of this tenant. */
  readonly tenant: string;
  /** Only turns of agents of this owner. Default: of all owners. */
  readonly ownerId?: string | undefined;
  /** Only turns of agents of this session. Default: of all sessions. */
  readonly sessionId?: string | undefined;
  /** Only turns of this agent. Default: of all agents. */
  readonly agentId?: string | undefined;
  /** Only turns with this status. Default: any. */
  readonly status?: TurnRecord["status"] | undefined;
  /** Maximum number of results, newest change first, then by id. Default 100. */
  readonly limit?: number | undefined;
  /**
   * Continue after this position, as returned by `formatTurnCursor(record)`. The turn need not exist any more. Default: from the
   * beginning.
   */
  readonly after?: string | undefined;
}

export interface ScheduleFilter {
  /** Only schedules of this tenant. */
  readonly tenant: string;
  /** Only schedules that run this agent. Default: all. */
  readonly agentId?: string | undefined;
  /** Only schedules of this owner. Default: of all owners. */
  readonly ownerId?: string | undefined;
  /** Maximum number of results, by key. Default 100. */
  readonly limit?: number | undefined;
  /** Continue after this key, which need not exist any more. Default: from the beginning. */
  readonly after?: string | undefined;
}

/** A position in the order in which schedules are due. */
export interface ScheduleCursor {
  readonly dueAt: number;
  readonly key: string;
}

export interface DeletionQuery {
  /** Only deletions of this tenant. */
  readonly tenant: string;
  /** Only deletions at this time or later, in milliseconds since the epoch. Default: all. */
  readonly since?: number | undefined;
  /** Only deletions that are not finished. Default: all. */
  readonly isPending?: boolean | undefined;
  /** Maximum number of results, oldest first, then by hash. Default 100. */
  readonly limit?: number | undefined;
}

export interface MessageQuery {
  /** Only the newest so many, oldest first. */
  readonly maxMessages?: number | undefined;
}

export interface UnattendedQuery {
  /** The calling process; the agents that it holds are not unattended. */
  readonly processId: string;
  /** How long a process without a heartbeat is considered alive, in milliseconds. */
  readonly leaseMs: number;
  /** Maximum number of results. Default 100. */
  readonly limit?: number | undefined;
  /** Continue after this agent id, the last one of the previous page. Each store has its own order. */
  readonly after?: string | undefined;
  /**
   * Called with an unattended agent and the name of its definition; if it returns false, the agent is left out. Default: all are listed.
   */
  readonly isKnown?: ((definitionName: string, key: AgentKey) => boolean) | undefined;
}

/** The position of an agent in a list with the newest first. It never changes. */
export type AgentListCursor = Pick<AgentRecord, "createdAt" | "agentId">;

/** The position as text, to continue a list of root agents in the order `newest`. */
export function formatAgentCursor({ createdAt, agentId }: AgentListCursor): string {
  return `${createdAt}:${agentId}`;
}

/** Throws `InvalidInputError` for a text that was not returned by `formatAgentCursor`. */
export function parseAgentCursor(text: string): AgentListCursor {
  const { at, id } = placeIn(text) ?? {};
  if (at !== undefined && id !== undefined) return { createdAt: at, agentId: id };
  throw new InvalidInputError(
    `after is ${JSON.stringify(text)}; in the order "newest" it takes the position of a listed agent: formatAgentCursor(record)`,
  );
}

/** Newest first, then by id. */
export function byAge(one: AgentListCursor, other: AgentListCursor): number {
  if (one.createdAt !== other.createdAt) return other.createdAt - one.createdAt;
  if (one.agentId === other.agentId) return 0;
  return one.agentId < other.agentId ? -1 : 1;
}

/** The position of a turn in a list. It moves to the front when the turn's status changes. */
export type TurnListCursor = Pick<TurnRecord, "changedAt" | "turnId">;

/** The position as text, to continue a list of turns. */
export function formatTurnCursor({ changedAt, turnId }: TurnListCursor): string {
  return `${changedAt}:${turnId}`;
}

/** Throws `InvalidInputError` for a text that was not returned by `formatTurnCursor`. */
export function parseTurnCursor(text: string): TurnListCursor {
  const { at, id } = placeIn(text) ?? {};
  if (at !== undefined && id !== undefined) return { changedAt: at, turnId: id };
  throw new InvalidInputError(
    `after is ${JSON.stringify(text)}; expected the position of a listed turn: formatTurnCursor(record)`,
  );
}

/** The newest change first, then by id. */
export function byChange(one: TurnListCursor, other: TurnListCursor): number {
  if (one.changedAt !== other.changedAt) return other.changedAt - one.changedAt;
  if (one.turnId === other.turnId) return 0;
  return one.turnId < other.turnId ? -1 : 1;
}

export function isRequestOf(
  { rootAgentId, agentId, turnId, ownerId, status }: RequestFilter,
  request: AgentRequest,
): boolean {
  if (rootAgentId !== undefined && request.rootAgentId !== rootAgentId) return false;
  if (agentId !== undefined && request.agentId !== agentId) return false;
  if (turnId !== undefined && request.turnId !== turnId) return false;
  if (ownerId !== undefined && request.ownerId !== ownerId) return false;
  return status === undefined || request.status === status;
}

export function isTurnOf({ ownerId, sessionId, agentId, status }: TurnFilter, turn: TurnRecord): boolean {
  if (ownerId !== undefined && turn.ownerId !== ownerId) return false;
  if (sessionId !== undefined && turn.sessionId !== sessionId) return false;
  if (agentId !== undefined && turn.agentId !== agentId) return false;
  return status === undefined || turn.status === status;
}

function placeIn(text: string): { readonly at: number; readonly id: string } | undefined {
  const [, at, id] = /^(-?\d{1,16}):(.+)$/s.exec(text) ?? [];
  return at !== undefined && id !== undefined && Number.isSafeInteger(Number(at)) ? { at: Number(at), id } : undefined;
}

export function isDue(timer: Timer, { now, steady }: Moment): boolean {
  return timer.dueAt <= (isBySteadyTime(timer) ? steady : now);
}

/** Steady time applies to working time, to claims and to the timers of queued calls; wall-clock time to the times that users set. */
export function isBySteadyTime(timer: Timer): boolean {
  return timer.kind === "claim" || timer.kind === "job" || isOfWork(timer);
}

/** Whether the timer limits working time. */
export function isOfWork(timer: Timer): boolean {
  return timer.kind === "limit" && timer.limit === "maxActiveMs";
}

export function isScheduleOf({ agentId, ownerId }: ScheduleFilter, schedule: Schedule): boolean {
  if (agentId !== undefined && schedule.agentId !== agentId) return false;
  return ownerId === undefined || schedule.ownerId === ownerId;
}
