import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { type Amounts, amountsSchema, noAmounts, nothingReserved, reservedAmountsSchema } from "./amounts.ts";
import { type Limits, limitNameSchema, limitsSchema } from "./limits.ts";
import { type ModelUse, modelUseSchema } from "./model-use.ts";
import { lineStateSchema } from "./waiter.ts";

/**
 * One node in the tree of accounts (design, Budgets). A turn has an account; an agent has one when it holds a budget
 * for its lifetime, as every subagent does. Money reserved below counts here too.
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
  /** The part of `used` whose real amount nobody knows: a call that was in flight when its process died. */
  unconfirmed: reservedAmountsSchema,
  /** What settled calls have used, by the name of the model that was asked for. */
  models: z.record(z.string(), modelUseSchema),
  /** Whether its own holder works now. */
  isActive: z.boolean(),
  activeCount: z.number().int().nonnegative(),
  activeSince: z.number().int().nullable(),
  /** Limits for which the warning at 80 % was given. */
  warned: z.array(limitNameSchema),
  /** Of those who wait for others' reservations, here or below; only at the top of a tree, once somebody has waited. */
  line: lineStateSchema.optional(),
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

/** What the account has used at `now`: the work that goes on counts as far as it has come. */
export function usedAt(account: Account, now: number): Amounts {
  if (account.activeSince === null) return account.used;
  return { ...account.used, activeMs: activeMsAt(account, now) };
}

/** The working time alone, of what `usedAt` tells. */
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
