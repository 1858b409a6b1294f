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
import { limitNames } from "./limit-names.ts";

/*
 * What is stored of budgets. The rules beside this file take only its types, so that pages import them without zod.
 */

/** In the order in which they are checked. */
export const limitNameSchema = z.enum(limitNames);

/** Limits as they are stored: integers, each optional; an absent one is unlimited, 0 allows nothing. */
export const limitsSchema = z.object({
  maxSteps: countSchema.optional(),
  maxTokens: countSchema.optional(),
  maxActiveMs: countSchema.optional(),
  maxCostMicros: countSchema.optional(),
  /** Absolute, milliseconds since the epoch. */
  deadlineAt: countSchema.optional(),
  maxToolCalls: countSchema.optional(),
  maxTreeSteps: countSchema.optional(),
  maxTreeToolCalls: countSchema.optional(),
  /** A flag: prompts are reserved at their hard upper bound. */
  strict: optionalFlagSchema,
  /** A flag: the last call that surely fits may call no tool, so that it gives an answer. */
  finalAnswer: optionalFlagSchema,
});
export type Limits = DeepReadonly<z.infer<typeof limitsSchema>>;

/** The tightest limits of a chain of accounts. They decide how a prompt is counted and whether a price is needed. */
export const bindingSchema = z.object({
  /** The smallest limit on tokens; `undefined` if there is none. */
  maxTokens: countSchema.optional(),
  /** The smallest limit on cost, in micro-dollars; `undefined` if there is none. */
  maxCostMicros: countSchema.optional(),
  strict: flagSchema,
});
export type Binding = DeepReadonly<z.infer<typeof bindingSchema>>;

/**
 * The amounts that an account has used, all integers: tokens, calls, micro-dollars, milliseconds.
 * `steps` and `toolCalls` count the account's own agent, the `tree…` forms its whole subtree (docs/budgets.md).
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

/** Tokens and money set aside for calls in flight. */
export const reservedAmountsSchema = z.object({ tokens: countSchema, costMicros: countSchema });
export type ReservedAmounts = DeepReadonly<z.infer<typeof reservedAmountsSchema>>;

const tokenCountSchema = z.number().int().nonnegative();

/** Tokens of one settled call. `inputTokens` includes cached tokens and cache writes, `outputTokens` reasoning tokens. */
export const settledUsageSchema = z.object({
  inputTokens: tokenCountSchema,
  outputTokens: tokenCountSchema,
  cachedInputTokens: tokenCountSchema.optional(),
  cacheWriteTokens: tokenCountSchema.optional(),
  reasoningTokens: tokenCountSchema.optional(),
  /** True when the provider sent no usage and it was counted here. */
  estimated: z.boolean().optional(),
});
export type SettledUsage = DeepReadonly<z.infer<typeof settledUsageSchema>>;

/** The use of one model by an account and all below it, in tokens and micro-dollars. */
export const modelUseSchema = z.object({
  /** Calls that may have cost something: calls that the provider refused do not count. */
  calls: tokenCountSchema,
  inputTokens: tokenCountSchema,
  outputTokens: tokenCountSchema,
  cachedInputTokens: tokenCountSchema,
  /** Absent in what was stored before it was counted. */
  cacheWriteTokens: tokenCountSchema.default(0),
  reasoningTokens: tokenCountSchema,
  costMicros: tokenCountSchema,
  /** Calls whose tokens were counted here because the provider sent no usage. */
  estimatedCalls: tokenCountSchema,
  /** Calls whose outcome is unknown: all that they had reserved counts. */
  unconfirmedCalls: tokenCountSchema,
  /** Calls without a known price: they add nothing to the cost. */
  unpricedCalls: tokenCountSchema,
});
/** The use of one model, or of several together. */
export type ModelUse = DeepReadonly<z.infer<typeof modelUseSchema>>;

/** The part of the wait queue that is kept with the account at the top of a tree; the waiters are rows of their own. */
const waitQueueStateSchema = z.object({
  /** How many wait. */
  waiting: countSchema,
  /** Changes with each change of the queue, so that a process need not read the waiters of a revision that it knows. */
  revision: textSchema,
  /**
   * When an alarm looks for woken waiters that did not ask, by the stores' steady time, which is monotonic and the same
   * for all processes; `null` if no alarm is set.
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
  /** The limits that the account was opened with. Default: `limits`. */
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

/**
 * In dollars per million tokens. A smaller price is nearly always a price per token by mistake, and would round to
 * nothing.
 */
const finestPrice = 0.0001;
/** A dollar a token. */
const highestPrice = 1_000_000;

const rate = z
  .number()
  .nonnegative()
  .max(highestPrice)
  .refine((value) => value === 0 || value >= finestPrice, { message: "a price per token? Multiply it by a million" });

const rates = {
  inputPerMillion: rate,
  /** Input that the provider found in its cache. Default: `inputPerMillion`. */
  cachedInputPerMillion: rate.optional(),
  /** Input that the provider wrote to its cache, where it charges that separately. Default: `inputPerMillion`. */
  cacheWritePerMillion: rate.optional(),
  /** Reasoning tokens are output tokens. */
  outputPerMillion: rate,
};

/** The prices of a call whose prompt has more tokens than `aboveInputTokens`; they hold for all of its tokens. */
export const priceTierSchema = z.strictObject({ aboveInputTokens: z.number().int().nonnegative(), ...rates });
export type PriceTier = DeepReadonly<z.infer<typeof priceTierSchema>>;

/** Dollars per million tokens, which is the same number as micro-dollars per token. */
export const priceSchema = z.strictObject({
  ...rates,
  /** Dollars for each call, in addition to the price of its tokens. Default 0. */
  perCall: z.number().nonnegative().max(highestPrice).optional(),
  /** Prices of longer prompts, in any order. Default: none. */
  tiers: z.array(priceTierSchema).optional(),
});
/** Dollars per million tokens of one model. */
export type Price = DeepReadonly<z.infer<typeof priceSchema>>;

/** The size of a model call before it is made, as it is asked of the accounts. */
export const reservationAskSchema = z.object({
  /** Identifies the call in its agent's tree; the same when it asks again after a wait. */
  key: textSchema,
  accountId: textSchema,
  agentId: textSchema,
  /** The counted prompt. */
  promptTokens: countSchema,
  /** Upper bound of the prompt with any tokenizer; reserved if an account of the chain is `strict`. */
  promptBound: countSchema,
  /** The most the call may generate. */
  outputTokens: positiveSchema,
  /** With less output the call is not worth making: min(outputTokens, 256). */
  minimumOutputTokens: positiveSchema,
  price: priceSchema.nullable(),
  /** Whether this attempt opens a step; retries and metered side calls do not. */
  opensStep: flagSchema,
  /** The model's name, under which the accounts count its use. */
  model: textSchema,
  /** Whether to report if it is the last call. Default `false`. */
  finalAnswer: optionalFlagSchema,
});
export type ReservationAsk = DeepReadonly<z.infer<typeof reservationAskSchema>>;

export const reservationSchema = z.object({
  accountId: textSchema,
  tokens: countSchema,
  costMicros: countSchema,
  /** The bound that the call must keep to: as asked, or less near a limit. */
  outputTokens: positiveSchema,
  /** Whether the bound comes from a limit on tokens or cost, so that the provider must be told. Default `false`. */
  isBound: optionalFlagSchema,
  model: textSchema,
  /**
   * Whether this may be the last call: if it uses all it may, some account of the chain has no room left for the same prompt
   * with the least output, or no step. Only given if asked for. Default `false`.
   */
  isLast: optionalFlagSchema,
  /** Whether the call's price is unknown. Default `false`. */
  isUnpriced: optionalFlagSchema,
});
export type Reservation = DeepReadonly<z.infer<typeof reservationSchema>>;

/** The end of one reservation: the amounts that were really used take its place. */
export const settlementSchema = z.object({
  reservation: reservationSchema,
  tokens: countSchema,
  costMicros: countSchema,
  /** The model that is billed, where it is another one than the reserved. */
  model: textSchema.optional(),
  /** The parts of `tokens`, as the provider reported or as counted here; `null` if unknown, or if there are none. */
  usage: settledUsageSchema.nullable(),
  /** True when the real amount is unknown, so that the whole reservation counts as used. */
  unconfirmed: flagSchema,
});
export type Settlement = DeepReadonly<z.infer<typeof settlementSchema>>;

/** A call that waits for others' reservations: one row of the queue of its tree's top account. */
export const waiterSchema = z.object({
  /** Its last ask. */
  ask: reservationAskSchema,
  /** Grows along the queue, which is in the order of first asks. */
  place: positiveSchema,
  /** The call with the least output: it is refused where a limit leaves less. */
  least: reservedAmountsSchema,
  /** The reservation that it would get if nothing else were reserved, as of the last look at its accounts. */
  need: reservedAmountsSchema,
  /** Accounts that had no room for it, at any of its asks. */
  blockedOn: z.array(textSchema),
  /** How many later calls were granted room that it waits for. */
  passed: countSchema,
  /** When, by the steady time, it was woken because there is room; null once it has asked again. */
  wokenAt: integerOrNullSchema,
});
export type Waiter = DeepReadonly<z.infer<typeof waiterSchema>>;
