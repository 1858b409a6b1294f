import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import type { Amounts } from "./amounts.ts";

const count = z.number().int().nonnegative();

/** Limits as they are stored: integers, each optional; an absent one is unlimited, 0 allows nothing (row S7). */
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
  strict: z.boolean().optional(),
  /** A flag: the last call that surely fits may call no tool, so that it gives an answer. */
  finalAnswer: z.boolean().optional(),
});
export type Limits = DeepReadonly<z.infer<typeof limitsSchema>>;

/** The fields of `Limits` that are no limits. */
export const limitFlags = ["strict", "finalAnswer"] as const;
export type LimitFlag = (typeof limitFlags)[number];
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

export function unlimited(): Limits {
  return {};
}

/** Whether no limit is set (row S7). 0 is a limit; `strict` and `finalAnswer` are none. */
export function isEmpty(limits: Limits): boolean {
  return limitNameSchema.options.every((name) => limits[name] === undefined);
}

/** Whether any limit is reached at `now`, in milliseconds since the epoch (row S7). */
export function isExhausted(limits: Limits, used: Amounts, now: number): boolean {
  return reachedLimit(limits, used, now) !== undefined;
}

/** The first limit that is reached, in the order of the stop reasons: steps, tokens, cost, time. */
export function reachedLimit(limits: Limits, used: Amounts, now: number): LimitName | undefined {
  return limitNameSchema.options.find((name) => {
    const max = limits[name];
    return max !== undefined && usedOf(name, used, now) >= max;
  });
}

/** The rest of each limit in its unit; for a deadline, the milliseconds until it. An absent one is unlimited. */
export type Remaining = { readonly [Name in LimitName]?: number };

/**
 * The rest of each limit that is set, never below 0 (row S7). Reservations are not subtracted: to know what a new call may
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
  strict: z.boolean(),
});
export type Binding = DeepReadonly<z.infer<typeof bindingSchema>>;

export const nothingBinds: Binding = Object.freeze({ strict: false });

/** The binding of an account with these limits below accounts with that binding. */
export function bindingOf(limits: Limits, above: Binding = nothingBinds): Binding {
  const maxTokens = smaller(limits.maxTokens, above.maxTokens);
  const maxCostMicros = smaller(limits.maxCostMicros, above.maxCostMicros);
  return {
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCostMicros === undefined ? {} : { maxCostMicros }),
    strict: above.strict || limits.strict === true,
  };
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
