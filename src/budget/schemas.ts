import { z } from "zod";
import {
  countSchema,
  type DeepReadonly,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalFlagSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import { limitNames, outerScopes, outerWindows } from "./limit-names.ts";

/*
 * The stored data of budgets. The rules beside this file import only its types, so that web pages import them without zod.
 */

/** In the order in which limits are checked. */
export const limitNameSchema = z.enum(limitNames);

/** Limits as stored: integers, each optional; absent is unlimited, 0 allows nothing. */
export const limitsSchema = z.object({
  maxSteps: countSchema.optional(),
  maxTokens: countSchema.optional(),
  maxActiveMs: countSchema.optional(),
  maxCostMicros: countSchema.optional(),
  /** Milliseconds since the epoch. */
  deadlineAt: countSchema.optional(),
  maxToolCalls: countSchema.optional(),
  maxTreeSteps: countSchema.optional(),
  maxTreeToolCalls: countSchema.optional(),
  /** A flag: the hard upper bound of prompts is reserved. */
  strict: optionalFlagSchema,
  /** A flag: the last call that surely fits may not call tools, so that it answers. */
  finalAnswer: optionalFlagSchema,
  /** A flag: where an amount leaves no room for a model call, a request asks a person to continue. */
  askAtLimit: optionalFlagSchema,
});
export type Limits = DeepReadonly<z.infer<typeof limitsSchema>>;

/** The smallest limits of a chain of accounts. They decide how a prompt is counted and whether a price is needed. */
export const bindingSchema = z.object({
  /** The smallest limit on tokens; `undefined` if there is none. */
  maxTokens: countSchema.optional(),
  /** The smallest limit on cost, in micro-dollars; `undefined` if there is none. */
  maxCostMicros: countSchema.optional(),
  strict: flagSchema,
});
export type Binding = DeepReadonly<z.infer<typeof bindingSchema>>;

/**
 * The used amounts of an account, all integers: tokens, calls, micro-dollars, milliseconds. `steps` and `toolCalls` count the account's
 * own agent, the `tree…` fields its complete subtree (docs/budgets.md).
 */
export const amountsSchema = z.object({
  steps: countSchema,
  treeSteps: countSchema,
  toolCalls: countSchema,
  treeToolCalls: countSchema,
  tokens: countSchema,
  costMicros: countSchema,
  activeMs: countSchema,
});
export type Amounts = DeepReadonly<z.infer<typeof amountsSchema>>;

/** Tokens and money reserved for calls in flight. */
export const reservedAmountsSchema = z.object({ tokens: countSchema, costMicros: countSchema });
export type ReservedAmounts = DeepReadonly<z.infer<typeof reservedAmountsSchema>>;

const tokenCountSchema = z.number().int().nonnegative();

/** Tokens of one settled call. `inputTokens` includes cached tokens and cache writes, `outputTokens` reasoning tokens. */
export const settledUsageSchema = z.object({
  inputTokens: tokenCountSchema,
  outputTokens: tokenCountSchema,
  cachedInputTokens: tokenCountSchema.optional(),
  cacheWriteTokens: tokenCountSchema.optional(),
  longCacheWriteTokens: tokenCountSchema.optional(),
  reasoningTokens: tokenCountSchema.optional(),
  /** True if the provider sent no usage, so that it was counted locally. */
  estimated: z.boolean().optional(),
});
export type SettledUsage = DeepReadonly<z.infer<typeof settledUsageSchema>>;

/** The use of one model by an account and all accounts below it, in tokens and micro-dollars. */
export const modelUseSchema = z.object({
  /** Calls that may have cost something: calls that the provider refused do not count. */
  calls: tokenCountSchema,
  inputTokens: tokenCountSchema,
  outputTokens: tokenCountSchema,
  cachedInputTokens: tokenCountSchema,
  /** Absent in data that was stored before it was counted. */
  cacheWriteTokens: tokenCountSchema.default(0),
  reasoningTokens: tokenCountSchema,
  costMicros: tokenCountSchema,
  /** Calls whose tokens were counted locally because the provider sent no usage. */
  estimatedCalls: tokenCountSchema,
  /** Calls whose outcome is unknown: their complete reservation counts. */
  unconfirmedCalls: tokenCountSchema,
  /** Calls without a known price: they do not add to the cost. */
  unpricedCalls: tokenCountSchema,
});
/** The use of one model, or of several together. */
export type ModelUse = DeepReadonly<z.infer<typeof modelUseSchema>>;

/** The data of the wait queue that is stored with the top account of a tree; the waiters are separate rows. */
const waitQueueStateSchema = z.object({
  /** Number of waiters. */
  waiting: countSchema,
  /** Changes with each change of the queue, so that a process need not read the waiters of a known revision. */
  revision: textSchema,
  /**
   * When an alarm checks for woken waiters that did not ask, by the stores' steady time, which is monotonic and the same for all
   * processes; `null` if no alarm is set.
   */
  alarmAt: integerOrNullSchema,
});

/** The data of an account above the roots of all teams of one owner or tenant, in its current window. */
const outerPartSchema = z.object({
  scope: z.enum(outerScopes),
  /** The owner's or the tenant's id. */
  name: textSchema,
  window: z.enum(outerWindows),
  /** Milliseconds since the epoch. */
  startsAt: integerSchema,
  /** When the account renews; `null` if it never does. */
  endsAt: integerOrNullSchema,
  /** The limits that the processes configure; the account's `limits` also contain `added`. */
  configured: limitsSchema,
  /** The highest revision of the configured limits. */
  revision: countSchema,
  /** Amounts that a person has added to each limit, until the account renews. */
  added: limitsSchema.optional(),
  /** When they were added last, in milliseconds since the epoch: after the end of the window they belong to the next one. */
  addedAt: integerSchema.optional(),
  /** The requests whose decisions have added to it, so that each adds once. */
  raisedBy: z.array(textSchema).optional(),
});

/**
 * One node in the tree of accounts (docs/architecture.md). A turn has an account; an agent has one if it has a budget for its lifetime,
 * as every subagent does. Money reserved below counts here too.
 *
 * Invariants
 * 1. A reservation never makes used + reserved exceed a limit. If a limit is lowered below them, the next reservation is refused.
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
  /** The limits with which the account was opened. Default: `limits`. */
  firstLimits: limitsSchema.optional(),
  /** Milliseconds since the epoch. */
  openedAt: integerSchema,
  used: amountsSchema,
  reserved: reservedAmountsSchema,
  /** The amounts in `used` whose real value is unknown: calls that were in flight when their process died. */
  unconfirmed: reservedAmountsSchema,
  /** The use of settled calls, by requested model name. */
  models: z.record(textSchema, modelUseSchema),
  /** Whether the turn or agent of the account is working. */
  isActive: flagSchema,
  activeCount: countSchema,
  activeSince: integerOrNullSchema,
  /** Limits whose warning at 80 % was given. */
  warned: z.array(limitNameSchema),
  /** The queue of calls that wait for reservations of others, on this account or below; only on a top account, once a call has waited. */
  line: waitQueueStateSchema.optional(),
  /** Only on an account above the roots. */
  outer: outerPartSchema.optional(),
});
/** An account of a budget tree: its limits, and the used, reserved and unconfirmed amounts. */
export type Account = DeepReadonly<z.infer<typeof accountSchema>>;

/** In dollars per million tokens. A smaller price is nearly always a price per token by mistake, and would be rounded to zero. */
const finestPrice = 0.0001;
/** One dollar per token. */
const highestPrice = 1_000_000;

const rate = z
  .number()
  .nonnegative()
  .max(highestPrice)
  .refine((value) => value === 0 || value >= finestPrice, { message: "a price per token? Multiply it by a million" });

const rates = {
  inputPerMillion: rate,
  /** Price of input that the provider read from its cache. Default: `inputPerMillion`. */
  cachedInputPerMillion: rate.optional(),
  /** Price of input that the provider wrote to its cache, if it is billed separately. Default: `inputPerMillion`. */
  cacheWritePerMillion: rate.optional(),
  /**
   * Price of input that the provider wrote to its cache for its longer lifetime: an hour for Anthropic, 12 hours for OpenAI. Default:
   * `cacheWritePerMillion`.
   */
  longCacheWritePerMillion: rate.optional(),
  /** Price of output, including reasoning tokens. */
  outputPerMillion: rate,
};

/** The prices of a call whose prompt has more tokens than `aboveInputTokens`; they apply to all of its tokens. */
export const priceTierSchema = z.strictObject({ aboveInputTokens: z.number().int().nonnegative(), ...rates });
export type PriceTier = DeepReadonly<z.infer<typeof priceTierSchema>>;

/** Dollars per million tokens, which equals micro-dollars per token. */
export const priceSchema = z.strictObject({
  ...rates,
  /** Dollars for each call, in addition to the price of its tokens. Default 0. */
  perCall: z.number().nonnegative().max(highestPrice).optional(),
  /** Prices of longer prompts, in any order. Default: none. */
  tiers: z.array(priceTierSchema).optional(),
});
/** Dollars per million tokens of one model. */
export type Price = DeepReadonly<z.infer<typeof priceSchema>>;

/** The size of a model call before it is made, for which a reservation is requested. */
export const reservationAskSchema = z.object({
  /** Identifies the call in its agent's tree; unchanged when it asks again after a wait. */
  key: textSchema,
  accountId: textSchema,
  agentId: textSchema,
  /** The counted tokens of the prompt. */
  promptTokens: countSchema,
  /** Upper bound of the prompt with any tokenizer; reserved if an account of the chain is `strict`. */
  promptBound: countSchema,
  /** The maximum number of tokens that the call may generate. */
  outputTokens: positiveSchema,
  /** The minimum output that makes the call worthwhile: min(outputTokens, 256). */
  minimumOutputTokens: positiveSchema,
  price: priceSchema.nullable(),
  /** Whether the call may write cache entries of the longer lifetime, so that their price is reserved. Default `false`. */
  writesLongCache: optionalFlagSchema,
  /** Whether this attempt opens a step; retries and metered side calls do not. */
  opensStep: flagSchema,
  /** The model name under which the accounts count the use. */
  model: textSchema,
  /** Whether to report if it is the last call. Default `false`. */
  finalAnswer: optionalFlagSchema,
});
export type ReservationAsk = DeepReadonly<z.infer<typeof reservationAskSchema>>;

export const reservationSchema = z.object({
  accountId: textSchema,
  tokens: countSchema,
  costMicros: countSchema,
  /** The output limit of the call: as requested, or less near a limit. */
  outputTokens: positiveSchema,
  /** Whether the output limit comes from a limit on tokens or cost, so that it must be sent to the provider. Default `false`. */
  isBound: optionalFlagSchema,
  model: textSchema,
  /**
   * Whether this may be the last call: if it uses its complete reservation, some account of the chain leaves too little for the same
   * prompt with the minimum output, or no step. Only set if requested. Default `false`.
   */
  isLast: optionalFlagSchema,
  /** Whether the call's price is unknown. Default `false`. */
  isUnpriced: optionalFlagSchema,
  /** The id of the reservation on the accounts above the root. Default: none. */
  hold: textSchema.optional(),
});
export type Reservation = DeepReadonly<z.infer<typeof reservationSchema>>;

/** The end of one reservation: the amounts that were really used replace it. */
export const settlementSchema = z.object({
  reservation: reservationSchema,
  tokens: countSchema,
  costMicros: countSchema,
  /** The billed model, if it differs from the reserved one. */
  model: textSchema.optional(),
  /** The breakdown of `tokens`, as reported by the provider or counted locally; `null` if unknown or zero. */
  usage: settledUsageSchema.nullable(),
  /** True if the real amount is unknown, so that the complete reservation counts as used. */
  unconfirmed: flagSchema,
});
export type Settlement = DeepReadonly<z.infer<typeof settlementSchema>>;

/** A call that waits for reservations of others: one row of the queue of its tree's top account. */
export const waiterSchema = z.object({
  /** Its last ask. */
  ask: reservationAskSchema,
  /** Grows along the queue, which is in the order of first asks. */
  place: positiveSchema,
  /** The reservation with the minimum output: the call is refused if a limit allows less. */
  least: reservedAmountsSchema,
  /** The reservation that it would get if nothing else were reserved, as of the last check of its accounts. */
  need: reservedAmountsSchema,
  /** Accounts on which it did not fit, at any of its asks. */
  blockedOn: z.array(textSchema),
  /** Number of later calls that were granted amounts for which it waits. */
  passed: countSchema,
  /** Steady time at which it was woken because it may fit; `null` once it has asked again. */
  wokenAt: integerOrNullSchema,
});
export type Waiter = DeepReadonly<z.infer<typeof waiterSchema>>;

/** A reservation on the accounts above a root: of a model call, or of one tool call. */
export const holdSchema = z.object({
  id: textSchema,
  /** The agent whose intent it is for, with the lease's epoch and the seq of the intent. */
  agentId: textSchema,
  epoch: positiveSchema,
  seq: positiveSchema,
  processId: textOrNullSchema,
  /** Milliseconds since the epoch. */
  at: integerSchema,
  /** From the owner's to the tenant's. */
  accountIds: z.array(textSchema),
  /** `openedAt` of each of these accounts when it was charged: the window that has the step or tool call. Absent in holds of former versions. */
  openedAt: z.array(integerSchema).optional(),
  /** `null` for a tool call. */
  reservation: reservationSchema.nullable(),
  /** Whether the call opens a step. */
  opensStep: flagSchema,
  /** Whether the agent's tree is only in the memory of its process. Default `false`. */
  isApart: optionalFlagSchema,
});
export type Hold = DeepReadonly<z.infer<typeof holdSchema>>;
