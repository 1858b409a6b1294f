import { limitFlags, type LimitName, limitNames } from "./limit-names.ts";
import type { Account, Amounts, Binding, Limits, ModelUse, ReservedAmounts } from "./schemas.ts";

/** The amount that each limit bounds; a deadline is compared with the clock. */
export const amountOfLimit: Readonly<Record<Exclude<LimitName, "deadlineAt">, keyof Amounts>> = {
  maxSteps: "steps",
  maxTreeSteps: "treeSteps",
  maxToolCalls: "toolCalls",
  maxTreeToolCalls: "treeToolCalls",
  maxTokens: "tokens",
  maxCostMicros: "costMicros",
  maxActiveMs: "activeMs",
};

/** No limits at all. */
export function unlimited(): Limits {
  return {};
}

/** Whether no limit is set. 0 is a limit; `strict` and `finalAnswer` are not. */
export function isEmpty(limits: Limits): boolean {
  return limitNames.every((name) => limits[name] === undefined);
}

/** Whether any limit is reached at `now`, in milliseconds since the epoch. */
export function isExhausted(limits: Limits, used: Amounts, now: number): boolean {
  return reachedLimit(limits, used, now) !== undefined;
}

/** The first reached limit, in the order of `limitNames`: steps, tool calls, tokens, cost, time. */
export function reachedLimit(limits: Limits, used: Amounts, now: number): LimitName | undefined {
  return limitNames.find((name) => {
    const max = limits[name];
    return max !== undefined && usedOf(name, used, now) >= max;
  });
}

/** An amount as people write it: dollars for the cost. */
export function userAmount(limit: LimitName, amount: number): number {
  return limit === "maxCostMicros" ? amount / 1_000_000 : amount;
}

/** The inverse of `userAmount`, a whole number. */
export function storedAmount(limit: LimitName, amount: number): number {
  return Math.round(limit === "maxCostMicros" ? amount * 1_000_000 : amount);
}

/** The remaining amount of each limit in its unit; for a deadline, the milliseconds until it. Absent if unlimited. */
export type Remaining = { readonly [Name in LimitName]?: number };

/**
 * The remaining amount of each limit that is set, never below 0. Reservations are not subtracted: to get the amounts for a new call, add
 * them to `used`.
 */
export function remaining(limits: Limits, used: Amounts, now: number): Remaining {
  const left: { -readonly [Name in LimitName]?: number } = {};
  for (const name of limitNames) {
    const max = limits[name];
    if (max !== undefined) left[name] = Math.max(0, max - usedOf(name, used, now));
  }
  return left;
}

function usedOf(name: LimitName, used: Amounts, now: number): number {
  return name === "deadlineAt" ? now : used[amountOfLimit[name]];
}

export const nothingBinds: Binding = Object.freeze({ strict: false });

/** The binding limits of an account with these limits, below accounts with the binding `above`. */
export function bindingOf(limits: Limits, above: Binding = nothingBinds): Binding {
  const maxTokens = smaller(limits.maxTokens, above.maxTokens);
  const maxCostMicros = smaller(limits.maxCostMicros, above.maxCostMicros);
  const binding: { -readonly [Name in keyof Binding]: Binding[Name] } = {
    strict: above.strict || limits.strict === true,
  };
  if (maxTokens !== undefined) binding.maxTokens = maxTokens;
  if (maxCostMicros !== undefined) binding.maxCostMicros = maxCostMicros;
  return binding;
}

function smaller(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}

/** Whether a limit on tokens or cost applies, so that a call's size must be known before the call. */
export function bindsAmounts({ maxTokens, maxCostMicros }: Binding): boolean {
  return maxTokens !== undefined || maxCostMicros !== undefined;
}

/** The field `binding` of an agent's record; absent if no limit applies. */
export function bindingField(binding: Binding): { readonly binding?: Binding } {
  return bindsAmounts(binding) || binding.strict ? { binding } : {};
}

/** The flags that a lifetime budget sets for each turn; `null` if there are none. */
export function turnFlagsOf({ finalAnswer }: Limits): Limits | null {
  return finalAnswer === true ? { finalAnswer } : null;
}

export const noAmounts: Amounts = Object.freeze({
  steps: 0,
  treeSteps: 0,
  toolCalls: 0,
  treeToolCalls: 0,
  tokens: 0,
  costMicros: 0,
  activeMs: 0,
});

export const nothingReserved: ReservedAmounts = Object.freeze({ tokens: 0, costMicros: 0 });

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

/** The account with other limits from now on. Warnings of changed limits are given again. */
export function withLimits(account: Account, limits: Limits): Account {
  return {
    ...account,
    limits,
    firstLimits: account.firstLimits ?? account.limits,
    warned: account.warned.filter((name) => limits[name] === account.limits[name]),
  };
}

/** Whether two sets of limits and flags are equal. */
export function areSameLimits(one: Limits, other: Limits): boolean {
  return (
    limitNames.every((name) => one[name] === other[name]) &&
    limitFlags.every((flag) => (one[flag] ?? false) === (other[flag] ?? false))
  );
}

/** One moment in both times of a store. */
export interface Moment {
  /** Wall-clock time, in milliseconds since the epoch; it may jump. */
  readonly now: number;
  /**
   * The store's steady time, in milliseconds: a monotonic time that all processes share. Setting a clock does not change it. It measures
   * leases and working time.
   */
  readonly steady: number;
}

/** The used amounts at a moment of steady time, including the working time until then. */
export function usedAt(account: Account, steady: number): Amounts {
  if (account.activeSince === null) return account.used;
  return { ...account.used, activeMs: activeMsAt(account, steady) };
}

/** The working time in `usedAt`. */
export function activeMsAt({ activeSince, used }: Account, steady: number): number {
  return activeSince === null ? used.activeMs : used.activeMs + Math.max(0, steady - activeSince);
}

/** Id of the account of an agent's lifetime. */
export function agentAccountId(agentId: string): string {
  return `agent:${agentId}`;
}

/** Id of the account of one turn. */
export function turnAccountId(turnId: string): string {
  return `turn:${turnId}`;
}

/** A reached limit, in its unit: steps, tokens, micro-dollars, milliseconds, calls; for a deadline, times. */
export interface MetLimit {
  readonly accountId: string;
  readonly limit: LimitName;
  readonly used: number;
  readonly max: number;
}

/** The used amount of one of the account's limits. */
export function metLimit(account: Account, limit: LimitName, { now, steady }: Moment): MetLimit {
  const used = limit === "deadlineAt" ? now : usedAt(account, steady)[amountOfLimit[limit]];
  return { accountId: account.id, limit, used, max: account.limits[limit] ?? 0 };
}
