import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalFlagSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { type ModelUse, modelUseSchema } from "./model-use.ts";

const count = countSchema;

/** Limits as they are stored: integers, each optional; an absent one is unlimited, 0 allows nothing. */
export const limitsSchema = z.object({
  maxSteps: count.optional(),
  maxTokens: count.optional(),
  maxActiveMs: count.optional(),
  maxCostMicros: count.optional(),
  /** Absolute, milliseconds since the epoch. */
  deadlineAt: count.optional(),
  maxToolCalls: count.optional(),
  maxTreeSteps: count.optional(),
  maxTreeToolCalls: count.optional(),
  /** A flag: prompts are reserved at their hard upper bound. */
  strict: optionalFlagSchema,
  /** A flag: the last call that surely fits may call no tool, so that it gives an answer. */
  finalAnswer: optionalFlagSchema,
});
export type Limits = DeepReadonly<z.infer<typeof limitsSchema>>;

/** The fields of `Limits` that are no limits. */
export const limitFlags = ["strict", "finalAnswer"] as const;
export type LimitFlag = (typeof limitFlags)[number];
/** Name of a limit, as `Budget`, events and results write it. */
export type LimitName = Exclude<keyof Limits, LimitFlag>;
/** In the order in which they are checked: steps, tool calls, tokens, cost, time. */
export const limitNameSchema = z.enum([
  "maxSteps",
  "maxTreeSteps",
  "maxToolCalls",
  "maxTreeToolCalls",
  "maxTokens",
  "maxCostMicros",
  "maxActiveMs",
  "deadlineAt",
]);

/** The amount that each limit bounds; a deadline goes by the clock. */
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

/** Whether no limit is set. 0 is a limit; `strict` and `finalAnswer` are none. */
export function isEmpty(limits: Limits): boolean {
  return limitNameSchema.options.every((name) => limits[name] === undefined);
}

/** Whether any limit is reached at `now`, in milliseconds since the epoch. */
export function isExhausted(limits: Limits, used: Amounts, now: number): boolean {
  return reachedLimit(limits, used, now) !== undefined;
}

/** The first limit that is reached, in the order of `limitNameSchema`: steps, tool calls, tokens, cost, time. */
export function reachedLimit(limits: Limits, used: Amounts, now: number): LimitName | undefined {
  return limitNameSchema.options.find((name) => {
    const max = limits[name];
    return max !== undefined && usedOf(name, used, now) >= max;
  });
}

/** The rest of each limit in its unit; for a deadline, the milliseconds until it. An absent one is unlimited. */
export type Remaining = { readonly [Name in LimitName]?: number };

/**
 * The rest of each limit that is set, never below 0. Reservations are not subtracted: to know what a new call may
 * use, add them to `used`.
 */
export function remaining(limits: Limits, used: Amounts, now: number): Remaining {
  const left: { -readonly [Name in LimitName]?: number } = {};
  for (const name of limitNameSchema.options) {
    const max = limits[name];
    if (max !== undefined) left[name] = Math.max(0, max - usedOf(name, used, now));
  }
  return left;
}

function usedOf(name: LimitName, used: Amounts, now: number): number {
  return name === "deadlineAt" ? now : used[amountOfLimit[name]];
}

/** The tightest limits of a chain of accounts. They decide how a prompt is counted and whether a price is needed. */
export const bindingSchema = z.object({
  /** The smallest limit on tokens. Absent: none. */
  maxTokens: count.optional(),
  /** The smallest limit on cost, in micro-dollars. Absent: none. */
  maxCostMicros: count.optional(),
  strict: flagSchema,
});
export type Binding = DeepReadonly<z.infer<typeof bindingSchema>>;

export const nothingBinds: Binding = Object.freeze({ strict: false });

/** The binding of an account with these limits below accounts with that binding. */
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

/** Whether a limit on tokens or cost binds, so that a call's size must be known before it is made. */
export function bindsAmounts({ maxTokens, maxCostMicros }: Binding): boolean {
  return maxTokens !== undefined || maxCostMicros !== undefined;
}

/** The field `binding` of an agent's record; absent where nothing binds. */
export function bindingField(binding: Binding): { readonly binding?: Binding } {
  return bindsAmounts(binding) || binding.strict ? { binding } : {};
}

/** The flags that a lifetime budget sets for each turn; null for none. */
export function turnFlagsOf({ finalAnswer }: Limits): Limits | null {
  return finalAnswer === true ? { finalAnswer } : null;
}

/**
 * The amounts that an account has used, all integers: tokens, calls, micro-dollars, milliseconds.
 * `steps` and `toolCalls` count the account's own agent, the `tree…` forms its whole subtree (docs/budgets.md).
 */
export const amountsSchema = z.object({
  steps: count,
  treeSteps: count,
  toolCalls: count,
  treeToolCalls: count,
  tokens: count,
  costMicros: count,
  activeMs: count,
});
export type Amounts = DeepReadonly<z.infer<typeof amountsSchema>>;

export const noAmounts: Amounts = Object.freeze({
  steps: 0,
  treeSteps: 0,
  toolCalls: 0,
  treeToolCalls: 0,
  tokens: 0,
  costMicros: 0,
  activeMs: 0,
});

/** Tokens and money set aside for calls in flight. */
export const reservedAmountsSchema = z.object({ tokens: count, costMicros: count });
export type ReservedAmounts = DeepReadonly<z.infer<typeof reservedAmountsSchema>>;

export const nothingReserved: ReservedAmounts = Object.freeze({ tokens: 0, costMicros: 0 });

/** The part of the wait queue that is kept with the account at the top of a tree; the waiters are rows of their own. */
const waitQueueStateSchema = z.object({
  /** How many wait. */
  waiting: countSchema,
  /** Changes with each change of the queue, so that a process need not read the waiters of a revision that it knows. */
  revision: textSchema,
  /**
   * When an alarm looks for woken waiters that did not ask, by the stores' steady time, which is monotonic and the same
   * for all processes; null: none is set.
   */
  alarmAt: integerOrNullSchema,
});

/**
 * One node in the tree of accounts (docs/architecture.md). A turn has an account; an agent has one if it has a budget for its
 * lifetime, as every subagent does. Money reserved below counts here too.
 *
 * Invariants
 * 1. used + reserved never exceeds a limit through a reservation. A limit that is lowered below them refuses the next one.
 * 2. At rest (no call in flight below) `reserved` is zero and `activeCount` is zero.
 * 3. `activeSince` is a number exactly while `activeCount` is above zero.
 * 4. `activeCount` is the number of accounts, of this one and those below it, whose `isActive` is true.
 * 5. Input and output tokens of all `models` are `used.tokens`, their cost is `used.costMicros`.
 */
export const accountSchema = z.object({
  id: textSchema,
  agentId: textSchema,
  turnId: textOrNullSchema,
  parentId: textOrNullSchema,
  limits: limitsSchema,
  /** The limits that it was opened with. Absent: they are `limits`. */
  firstLimits: limitsSchema.optional(),
  /** Milliseconds since the epoch. */
  openedAt: integerSchema,
  used: amountsSchema,
  reserved: reservedAmountsSchema,
  /** The part of `used` whose real amount is unknown: calls that were in flight when their process died. */
  unconfirmed: reservedAmountsSchema,
  /** The use of settled calls, by the name of the model that was asked for. */
  models: z.record(textSchema, modelUseSchema),
  /** Whether the turn or agent that holds the account works now. */
  isActive: flagSchema,
  activeCount: countSchema,
  activeSince: integerOrNullSchema,
  /** Limits whose warning at 80 % has been given. */
  warned: z.array(limitNameSchema),
  /** The queue of calls that wait for others' reservations, here or below; only at the top of a tree, once a call has waited. */
  line: waitQueueStateSchema.optional(),
});
/** An account of a budget tree: its limits, and what is used, reserved and unconfirmed. */
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

/** The account under other limits from now on. Of limits that have changed, the warning is given again. */
export function withLimits(account: Account, limits: Limits): Account {
  return {
    ...account,
    limits,
    firstLimits: account.firstLimits ?? account.limits,
    warned: account.warned.filter((name) => limits[name] === account.limits[name]),
  };
}

/** Whether two sets of limits and flags allow the same. */
export function areSameLimits(one: Limits, other: Limits): boolean {
  return (
    limitNameSchema.options.every((name) => one[name] === other[name]) &&
    limitFlags.every((flag) => (one[flag] ?? false) === (other[flag] ?? false))
  );
}

/** One moment in the two times of a store. */
export interface Moment {
  /** Wall-clock time, in milliseconds since the epoch; it may jump. */
  readonly now: number;
  /**
   * The store's steady time, in milliseconds: a monotonic one that all processes share. Setting a clock does not change
   * it. It measures leases and working time.
   */
  readonly steady: number;
}

/** The amounts used at a moment of steady time, with the working time until then. */
export function usedAt(account: Account, steady: number): Amounts {
  if (account.activeSince === null) return account.used;
  return { ...account.used, activeMs: activeMsAt(account, steady) };
}

/** The working time of `usedAt`. */
export function activeMsAt({ activeSince, used }: Account, steady: number): number {
  return activeSince === null ? used.activeMs : used.activeMs + Math.max(0, steady - activeSince);
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

/** The use of one of the account's limits. */
export function metLimit(account: Account, limit: LimitName, { now, steady }: Moment): MetLimit {
  const used = limit === "deadlineAt" ? now : usedAt(account, steady)[amountOfLimit[limit]];
  return { accountId: account.id, limit, used, max: account.limits[limit] ?? 0 };
}
