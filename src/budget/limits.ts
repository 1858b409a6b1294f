import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import type { Amounts } from "./amounts.ts";

const count = z.number().int().nonnegative();

/** Limits as they are stored: integers, every one optional; an absent one is unlimited, 0 allows nothing (row S7). */
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
  /** Not a limit but how they are held: prompts are reserved at their hard upper bound. */
  strict: z.boolean().optional(),
  /** Not a limit but how they end: the last call that surely fits is made without tools, for an answer. */
  finalAnswer: z.boolean().optional(),
});
export type Limits = z.infer<typeof limitsSchema>;
const limitFlags = ["strict", "finalAnswer"] as const;
type LimitFlag = (typeof limitFlags)[number];
export type LimitName = Exclude<keyof Limits, LimitFlag>;
export const limitNameSchema = z.enum([
  "maxSteps",
  "maxTokens",
  "maxActiveMs",
  "maxCostMicros",
  "deadlineAt",
  "maxToolCalls",
  "maxTreeSteps",
  "maxTreeToolCalls",
]);

/** A budget as a user writes it. Absent is unlimited; 0 allows nothing; negative, NaN, infinite and text are refused. */
export interface Budget {
  /** Model calls that open a step. */
  readonly maxSteps?: number | undefined;
  /** Input and output tokens together, subagents included. */
  readonly maxTokens?: number | undefined;
  /** Seconds in which models, tools or children work; time spent waiting for people does not count. */
  readonly maxSeconds?: number | undefined;
  /** Dollars, subagents included. */
  readonly maxCost?: number | undefined;
  /** The moment at which all work ends: a date, an ISO text, or milliseconds since the epoch. */
  readonly deadline?: Date | string | number | undefined;
  /** Tool calls of this agent. */
  readonly maxToolCalls?: number | undefined;
  /** Steps of this agent and all its subagents. */
  readonly maxTreeSteps?: number | undefined;
  /** Tool calls of this agent and all its subagents. */
  readonly maxTreeToolCalls?: number | undefined;
  /**
   * Reserves each prompt at a bound that no tokenizer exceeds (its bytes) instead of at its counted tokens, here and in all
   * subagents: fewer calls fit at a time, and no miscount can pass a limit. Default false.
   */
  readonly strict?: boolean | undefined;
  /**
   * Makes the last call that surely fits into the limits one without tools, and tells the model so: the turn ends with an
   * answer from what is there instead of in the middle of its work. Default false.
   */
  readonly finalAnswer?: boolean | undefined;
}

const budgetFields = new Set([
  "maxSteps",
  "maxTokens",
  "maxSeconds",
  "maxCost",
  "deadline",
  "maxToolCalls",
  "maxTreeSteps",
  "maxTreeToolCalls",
  "strict",
  "finalAnswer",
]);

/** Turns a user's budget into stored limits. Throws `InvalidInputError` naming the field, the value and what is right. */
export function limitsOf(budget: Budget = {}): Limits {
  for (const field of Object.keys(budget)) {
    if (budgetFields.has(field)) continue;
    throw new InvalidInputError(
      `budget.${field} is not a limit; the limits are ${[...budgetFields].join(", ")} (an absent one is unlimited)`,
    );
  }
  const limits: { -readonly [Name in LimitName]?: number } = {};
  const whole = ["maxSteps", "maxTokens", "maxToolCalls", "maxTreeSteps", "maxTreeToolCalls"] as const;
  for (const name of whole) {
    const value = budget[name];
    if (value !== undefined) limits[name] = wholeNumber(name, value);
  }
  if (budget.maxSeconds !== undefined) limits.maxActiveMs = scaled("maxSeconds", budget.maxSeconds, 1000);
  if (budget.maxCost !== undefined) limits.maxCostMicros = scaled("maxCost", budget.maxCost, 1_000_000);
  if (budget.deadline !== undefined) limits.deadlineAt = instant(budget.deadline);
  const flags: { -readonly [Flag in LimitFlag]?: boolean } = {};
  for (const name of limitFlags) {
    const value = budget[name];
    if (value === undefined) continue;
    if (typeof value !== "boolean") throw refused(name, value, "true or false");
    flags[name] = value;
  }
  return { ...limits, ...flags };
}

/** A budget without any limit. */
export function unlimited(): Limits {
  return {};
}

/** Whether no limit is set at all (row S7). */
export function isEmpty(limits: Limits): boolean {
  const { strict: _held, finalAnswer: _ended, ...amounts } = limits;
  return Object.values(amounts).every((value) => value === undefined);
}

/** Whether any limit is reached at `now` (row S7). */
export function isExhausted(limits: Limits, used: Amounts, now: number): boolean {
  return reachedLimit(limits, used, now) !== undefined;
}

/** The first limit that is reached, in the order of the stop reasons: steps, tokens, cost, time. */
export function reachedLimit(limits: Limits, used: Amounts, now: number): LimitName | undefined {
  if (reached(limits.maxSteps, used.steps)) return "maxSteps";
  if (reached(limits.maxTreeSteps, used.treeSteps)) return "maxTreeSteps";
  if (reached(limits.maxToolCalls, used.toolCalls)) return "maxToolCalls";
  if (reached(limits.maxTreeToolCalls, used.treeToolCalls)) return "maxTreeToolCalls";
  if (reached(limits.maxTokens, used.tokens)) return "maxTokens";
  if (reached(limits.maxCostMicros, used.costMicros)) return "maxCostMicros";
  if (reached(limits.maxActiveMs, used.activeMs)) return "maxActiveMs";
  if (reached(limits.deadlineAt, now)) return "deadlineAt";
  return undefined;
}

function reached(limit: number | undefined, amount: number): boolean {
  return limit !== undefined && amount >= limit;
}

function wholeNumber(name: string, value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw refused(name, value, "a whole number of at least 0");
}

function scaled(name: string, value: unknown, factor: number): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0 && value * factor <= Number.MAX_SAFE_INTEGER) {
    return Math.floor(value * factor + 1e-6);
  }
  throw refused(name, value, "a finite number of at least 0");
}

function instant(value: unknown): number {
  const at = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : value;
  if (typeof at === "number" && Number.isSafeInteger(at) && at >= 0) return at;
  throw refused("deadline", value, "a Date, an ISO date text, or whole milliseconds since the epoch");
}

function refused(name: string, value: unknown, right: string): InvalidInputError {
  const shown = typeof value === "string" ? `the text "${value}"` : String(value);
  return new InvalidInputError(
    `budget.${name} is ${shown}; it takes ${right}, or leave it out${name === "strict" || name === "finalAnswer" ? "" : " for unlimited"}`,
    {
      details: { field: name },
    },
  );
}
