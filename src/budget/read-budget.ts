import { type OptionRule, describeValue, nearestName } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LimitFlag, limitFlags, type LimitName, limitNames } from "./limit-names.ts";
import type { Limits } from "./schemas.ts";

/** A budget as written by users. Absent is unlimited; 0 allows nothing; negative, NaN, infinite and text are refused. */
export interface Budget {
  /** Model calls that open a step. Default: 10 for the turns of a definition, else none. */
  readonly maxSteps?: number | undefined;
  /** Input and output tokens together, subagents included. Default: none. */
  readonly maxTokens?: number | undefined;
  /** Seconds in which models, tools or children work; waiting for people does not count. Default: none. */
  readonly maxSeconds?: number | undefined;
  /** Dollars, subagents included. Default: none. */
  readonly maxCost?: number | undefined;
  /** The time at which all work ends: a date, an ISO text, or milliseconds since the epoch. Default: none. */
  readonly deadline?: Date | string | number | undefined;
  /** Tool calls of this agent. Default: none. */
  readonly maxToolCalls?: number | undefined;
  /** Steps of this agent and all its subagents. Default: none. */
  readonly maxTreeSteps?: number | undefined;
  /** Tool calls of this agent and all its subagents. Default: none. */
  readonly maxTreeToolCalls?: number | undefined;
  /**
   * Reserves the upper bound of each prompt (its bytes), which no tokenizer exceeds, instead of its counted tokens, for this agent and
   * all subagents: fewer calls run at a time, and no miscount can exceed a limit. Default false.
   */
  readonly strict?: boolean | undefined;
  /**
   * Forbids tools in the last call that surely fits into the limits, and informs the model: the turn ends with an answer from its
   * findings instead of in the middle of its work. Default false.
   */
  readonly finalAnswer?: boolean | undefined;
  /**
   * Where steps, tokens or cost leave no room for the next model call, asks a person to continue with more, by a request of kind `budget`,
   * and ends the turn only if the person declines. Default false.
   */
  readonly askAtLimit?: boolean | undefined;
}

/** A change of a budget: new values for some limits. `null` removes a limit; absent limits are not changed. */
export type BudgetChange = { readonly [Name in keyof Budget]?: Budget[Name] | null };

/** The stored form of a change. */
export interface LimitsChange {
  readonly set: Limits;
  readonly removed: readonly (LimitName | LimitFlag)[];
}

const wholeNumbers = ["maxSteps", "maxTokens", "maxToolCalls", "maxTreeSteps", "maxTreeToolCalls"] as const;
const budgetFields: readonly string[] = [...wholeNumbers, "maxSeconds", "maxCost", "deadline", ...limitFlags];

/**
 * Converts a user's budget to stored limits. With `now` (milliseconds since the epoch) a past deadline is refused. Throws
 * `InvalidInputError` that contains the field, the value and the expected value.
 */
export function limitsOf(budget: Budget = {}, now?: number): Limits {
  assertObject(budget);
  for (const field of Object.keys(budget)) if (!budgetFields.includes(field)) throw unknownField(field);
  const limits: { -readonly [Name in LimitName]?: number } = {};
  for (const name of wholeNumbers) {
    const value = budget[name];
    if (value !== undefined) limits[name] = wholeNumber(name, value);
  }
  const { maxSeconds, maxCost, deadline } = budget;
  if (maxSeconds !== undefined)
    limits.maxActiveMs = scaled("maxSeconds", maxSeconds, { perUnit: 1_000, unit: "seconds" });
  if (maxCost !== undefined) limits.maxCostMicros = scaled("maxCost", maxCost, { perUnit: 1_000_000, unit: "dollars" });
  if (deadline !== undefined) limits.deadlineAt = instant(deadline, now);
  const flags: { -readonly [Flag in LimitFlag]?: boolean } = {};
  for (const name of limitFlags) {
    const value = budget[name];
    if (value === undefined) continue;
    if (typeof value !== "boolean") throw refused(name, value, "true or false, or leave it out");
    flags[name] = value;
  }
  return { ...limits, ...flags };
}

/**
 * Converts a user's change of a budget to its stored form. `now`: milliseconds since the epoch; a past deadline is refused. Throws
 * `InvalidInputError` that contains the field, the value and the expected value.
 */
export function limitsChangeOf(change: BudgetChange, now: number): LimitsChange {
  assertObject(change);
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const names = given.flatMap(([name, value]) => (value === null ? [name] : []));
  for (const name of names) if (!budgetFields.includes(name)) throw unknownField(name);
  const set = limitsOf(Object.fromEntries(given.filter(([, value]) => value !== null)), now);
  if (given.length === 0) {
    throw new InvalidInputError("the budget names no limit to change; set at least one, for instance { maxCost: 5 }");
  }
  return { set, removed: names.map((name) => storedNames[name] ?? (name as LimitName | LimitFlag)) };
}

/** The stored names of fields that are stored in another unit. */
const storedNames: Readonly<Record<string, LimitName>> = {
  maxSeconds: "maxActiveMs",
  maxCost: "maxCostMicros",
  deadline: "deadlineAt",
};

/** The change from some limits to others. */
export function changeBetween(before: Limits, set: Limits): LimitsChange {
  const names = [...limitNames, ...limitFlags];
  return { set, removed: names.filter((name) => before[name] !== undefined && set[name] === undefined) };
}

export function changedLimits(limits: Limits, { set, removed }: LimitsChange): Limits {
  const rest = Object.entries(limits).filter(([name]) => !removed.some((one) => one === name));
  return { ...Object.fromEntries(rest), ...set };
}

function assertObject(budget: unknown): void {
  if (typeof budget === "object" && budget !== null && !Array.isArray(budget)) return;
  throw new InvalidInputError(
    `budget is ${describeValue(budget)}; expected limits, for instance { maxSteps: 10, maxCost: 0.5 }`,
  );
}

function wholeNumber(name: string, value: unknown): number {
  if (isAmount(value) && Number.isSafeInteger(value)) return value;
  throw refused(name, value, "a whole number of at least 0, or leave it out for unlimited");
}

interface Scale {
  /** Number of stored units per unit. */
  readonly perUnit: number;
  readonly unit: string;
}

function scaled(name: string, value: unknown, { perUnit, unit }: Scale): number {
  const right = `a finite number of ${unit} of at least 0, or leave it out for unlimited`;
  if (!isAmount(value) || value * perUnit > Number.MAX_SAFE_INTEGER) throw refused(name, value, right);
  const parts = Math.floor(value * perUnit + 1e-6);
  if (parts > 0 || value === 0) return parts;
  throw refused(name, value, `0, which allows nothing, or at least ${unitPart(perUnit)} ${unit}`);
}

/** -0 is refused, because it is a negative number that was rounded. */
function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 && !Object.is(value, -0);
}

function unitPart(perUnit: number): string {
  return (1 / perUnit).toFixed(Math.log10(perUnit));
}

/** Numbers in this range are probably seconds since the epoch (September 2001 to November 2286), not milliseconds. */
const fewestSeconds = 1e9;
const mostSeconds = 1e10;

function instant(value: unknown, now: number | undefined): number {
  const at = value instanceof Date ? value.getTime() : typeof value === "string" ? Date.parse(value) : value;
  const right = "a Date, an ISO date text, or whole milliseconds since the epoch, or leave it out for unlimited";
  if (!isAmount(at) || !Number.isSafeInteger(at)) throw refused("deadline", value, right);
  const isPast = now !== undefined && at <= now;
  if (at >= fewestSeconds && at < mostSeconds && (now === undefined || isPast)) {
    const meant = new Date(at * 1_000).toISOString();
    throw refused(
      "deadline",
      value,
      `milliseconds, and that would be in 1970: if ${meant} is meant, multiply it by 1,000`,
    );
  }
  if (!isPast) return at;
  throw refused("deadline", value, `a time in the future: it is ${new Date(now).toISOString()} now`);
}

function unknownField(field: string): InvalidInputError {
  const meant = nearest(field);
  return new InvalidInputError(
    `budget.${field} is not a limit${meant === undefined ? "." : `: did you mean ${meant}?`} ` +
      `The limits are ${budgetFields.join(", ")} (an absent one is unlimited)`,
    { details: { field } },
  );
}

function nearest(field: string): string | undefined {
  const meant = nearestName(plainName(field), budgetFields.map(plainName));
  return budgetFields.find((name) => plainName(name) === meant);
}

/** Lower case without `_`, `-` and a leading `max`, so that `tokens`, `max_tokens` and `maxTokens` are equal. */
function plainName(field: string): string {
  return field.replace(/[_-]/g, "").toLowerCase().replace(/^max/, "");
}

function refused(name: string, value: unknown, right: string): InvalidInputError {
  return new InvalidInputError(`budget.${name} is ${describeValue(value)}; expected ${right}`, {
    details: { field: name },
  });
}

/** The rule of an option that is a budget. Returns a checked copy. */
export const budgetRule: OptionRule = (value) => {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const budget = isObject ? Object.freeze({ ...value }) : (value as Budget);
  limitsOf(budget);
  return budget;
};
