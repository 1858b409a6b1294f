import { amountOfLimit, type LimitName, type Limits, limitNameSchema, limitsSchema } from "./limits.ts";
import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import {
  type Amounts,
  amountsSchema,
  noAmounts,
  nothingReserved,
  reservedAmountsSchema,
  type ModelUse,
  modelUseSchema,
} from "./amounts.ts";

/** The part of the wait queue that is kept with the account at the top of a tree; the waiters are rows of their own. */
const waitQueueStateSchema = z.object({
  /** How many wait. */
  waiting: z.number().int().nonnegative(),
  /** Changes with each change of the queue, so that a process need not read the waiters of a revision that it knows. */
  revision: z.string(),
  /**
   * When an alarm looks for woken waiters that did not ask, by the stores' steady time, which is monotonic and the same
   * for all processes; null: none is set.
   */
  alarmAt: z.number().int().nullable(),
});

/**
 * One node in the tree of accounts (design, Budgets). A turn has an account; an agent has one if it has a budget for its
 * lifetime, as every subagent does. Money reserved below counts here too.
 *
 * Invariants
 * 1. used + reserved never exceeds a limit through a reservation.
 * 2. At rest (no call in flight below) `reserved` is zero and `activeCount` is zero.
 * 3. `activeSince` is a number exactly while `activeCount` is above zero.
 * 4. `activeCount` is the number of accounts, of this one and those below it, whose `isActive` is true.
 * 5. Input and output tokens of all `models` are `used.tokens`, their cost is `used.costMicros`.
 */
export const accountSchema = z.object({
  id: z.string(),
  agentId: z.string(),
  turnId: z.string().nullable(),
  parentId: z.string().nullable(),
  limits: limitsSchema,
  /** Milliseconds since the epoch. */
  openedAt: z.number().int(),
  used: amountsSchema,
  reserved: reservedAmountsSchema,
  /** The part of `used` whose real amount is unknown: calls that were in flight when their process died. */
  unconfirmed: reservedAmountsSchema,
  /** The use of settled calls, by the name of the model that was asked for. */
  models: z.record(z.string(), modelUseSchema),
  /** Whether the turn or agent that holds the account works now. */
  isActive: z.boolean(),
  activeCount: z.number().int().nonnegative(),
  activeSince: z.number().int().nullable(),
  /** Limits whose warning at 80 % has been given. */
  warned: z.array(limitNameSchema),
  /** The queue of calls that wait for others' reservations, here or below; only at the top of a tree, once a call has waited. */
  line: waitQueueStateSchema.optional(),
});
export type Account = DeepReadonly<z.infer<typeof accountSchema>>;

export interface NewAccount {
  readonly id: string;
  readonly agentId: string;
  readonly turnId: string | null;
  readonly parentId: string | null;
  readonly limits: Limits;
}

const noModels: Readonly<Record<string, ModelUse>> = Object.freeze({});

/** `openedAt`: milliseconds since the epoch. */
export function openAccount({ id, agentId, turnId, parentId, limits }: NewAccount, openedAt = 0): Account {
  return {
    id,
    agentId,
    turnId,
    parentId,
    limits,
    openedAt,
    used: noAmounts,
    reserved: nothingReserved,
    unconfirmed: nothingReserved,
    models: noModels,
    isActive: false,
    activeCount: 0,
    activeSince: null,
    warned: [],
  };
}

/** The amounts used at `now`, with the working time until then. */
export function usedAt(account: Account, now: number): Amounts {
  if (account.activeSince === null) return account.used;
  return { ...account.used, activeMs: activeMsAt(account, now) };
}

/** The working time of `usedAt`. */
export function activeMsAt({ activeSince, used }: Account, now: number): number {
  return activeSince === null ? used.activeMs : used.activeMs + Math.max(0, now - activeSince);
}

/** Account of an agent's lifetime. */
export function agentAccountId(agentId: string): string {
  return `agent:${agentId}`;
}

/** Account of one turn. */
export function turnAccountId(turnId: string): string {
  return `turn:${turnId}`;
}

/** A limit that was met, in its unit: steps, tokens, micro-dollars, milliseconds, calls; for a deadline, moments. */
export interface MetLimit {
  readonly accountId: string;
  readonly limit: LimitName;
  readonly used: number;
  readonly max: number;
}

/** The use of one of the account's limits at `now`; a deadline goes by `wallNow`. */
export function metLimit(account: Account, limit: LimitName, now: number, wallNow: number = now): MetLimit {
  const used = limit === "deadlineAt" ? wallNow : usedAt(account, now)[amountOfLimit[limit]];
  return { accountId: account.id, limit, used, max: account.limits[limit] ?? 0 };
}
