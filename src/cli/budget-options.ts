import { type Command, InvalidArgumentError, Option } from "commander";
import type { Budget, BudgetChange, LimitName } from "../budget/index.ts";
import { InvalidInputError } from "../errors/index.ts";

/** The options that limit one turn. */
export type BudgetOptions = Pick<
  Budget,
  "maxSteps" | "maxTokens" | "maxCost" | "maxSeconds" | "maxToolCalls" | "maxTreeSteps" | "maxTreeToolCalls"
> & { readonly deadline?: Date | undefined };

interface BudgetFlag {
  readonly field: keyof BudgetOptions;
  readonly limit: LimitName;
  readonly flag: string;
  readonly value: string;
  readonly help: string;
  readonly parse: (text: string) => number | Date;
  /** Formats the stored amount as the option's value. Absent for the deadline, which has already passed. */
  readonly typed?: (max: number) => string;
}

const count = { value: "<number>", parse: positiveInteger, typed: String } as const;

const budgetFlags: readonly BudgetFlag[] = [
  { ...count, field: "maxSteps", limit: "maxSteps", flag: "--max-steps", help: "model calls of the agent itself" },
  {
    ...count,
    field: "maxTokens",
    limit: "maxTokens",
    flag: "--max-tokens",
    help: "input and output tokens, including subagents",
  },
  {
    field: "maxCost",
    limit: "maxCostMicros",
    flag: "--max-cost",
    value: "<dollars>",
    help: "dollars, including subagents",
    parse: positiveNumber,
    typed: (micros) => String(micros / 1_000_000),
  },
  {
    field: "maxSeconds",
    limit: "maxActiveMs",
    flag: "--max-seconds",
    value: "<seconds>",
    help: "seconds of work; waiting for people does not count",
    parse: positiveNumber,
    typed: (milliseconds) => String(milliseconds / 1_000),
  },
  {
    field: "deadline",
    limit: "deadlineAt",
    flag: "--deadline",
    value: "<time>",
    help: "when all work ends: 2026-11-21T18:00, or 90s, 15m, 2h from now",
    parse: comingMoment,
  },
  {
    ...count,
    field: "maxToolCalls",
    limit: "maxToolCalls",
    flag: "--max-tool-calls",
    help: "tool calls of the agent itself",
  },
  {
    ...count,
    field: "maxTreeSteps",
    limit: "maxTreeSteps",
    flag: "--max-tree-steps",
    help: "model calls, including subagents",
  },
  {
    ...count,
    field: "maxTreeToolCalls",
    limit: "maxTreeToolCalls",
    flag: "--max-tree-tool-calls",
    help: "tool calls, including subagents",
  },
];

/** Adds an option for each limit of a turn. */
export function addBudgetOptions(command: Command): Command {
  for (const { flag, value, help, parse } of budgetFlags) {
    command.addOption(new Option(`${flag} ${value}`, `limit of the turn: ${help}`).argParser(parse));
  }
  return command;
}

/** Options that change limits of an agent's lifetime; `none` removes one. */
export type BudgetChangeOptions = { readonly [Name in keyof BudgetOptions]: BudgetOptions[Name] | "none" };

/** Adds an option for each limit of an agent's lifetime; each also accepts `none`. */
export function addBudgetChangeOptions(command: Command): Command {
  for (const { flag, value, help, parse } of budgetFlags) {
    const option = new Option(`${flag} ${value}`, `limit of its lifetime, or none: ${help}`);
    command.addOption(option.argParser((text) => (text === "none" ? text : parse(text))));
  }
  return command;
}

/** The given limits; `undefined` if there are none. */
export function budgetOf(options: BudgetOptions): Budget | undefined {
  const given = givenIn(options);
  return given.length === 0 ? undefined : (Object.fromEntries(given) as Budget);
}

/** Whether the options change a limit. */
export function hasBudgetChange(options: BudgetChangeOptions): boolean {
  return givenIn(options).length > 0;
}

/** Throws `InvalidInputError` if no limit is given. */
export function budgetChangeOf(options: BudgetChangeOptions): BudgetChange {
  const given = givenIn(options);
  const change = given.map(([field, value]) => [field, value === "none" ? null : value] as const);
  if (given.length > 0) return Object.fromEntries(change) as BudgetChange;
  throw new InvalidInputError("give a limit to change, for instance --max-cost 5, or --max-cost none to remove it");
}

function givenIn(options: BudgetChangeOptions): (readonly [string, unknown])[] {
  return budgetFlags.flatMap(({ field }) => (options[field] === undefined ? [] : [[field, options[field]] as const]));
}

/** The option that sets the same limit: `--max-tokens 50000`. */
export function limitWords(limit: LimitName, max: number | undefined): readonly string[] {
  const known = budgetFlags.find((one) => one.limit === limit);
  if (known === undefined) return [];
  return [known.flag, max === undefined || known.typed === undefined ? "…" : known.typed(Math.max(1, max))];
}

function positiveInteger(text: string): number {
  const value = Number(text);
  if (/^\d{1,15}$/.test(text) && value >= 1) return value;
  throw new InvalidArgumentError("Expected a whole number of at least 1, in digits.");
}

/** Throws commander's `InvalidArgumentError`. */
export function positiveNumber(text: string): number {
  const value = Number(text);
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text) && value > 0) return value;
  throw new InvalidArgumentError("Expected a number above 0, in digits: 30, or 0.25.");
}

function comingMoment(text: string): Date {
  const date = dateOf(text, Date.now());
  if (date === undefined)
    throw new InvalidArgumentError("Expected a time: 2026-11-21T18:00, or 90s, 15m, 2h from now.");
  if (date.getTime() > Date.now()) return date;
  throw new InvalidArgumentError(`That is ${date.toISOString()}, which has passed.`);
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Parses an ISO date with a time (local without a zone), or a span from now such as `15m`; `undefined` for other text.
 */
export function dateOf(text: string, now: number): Date | undefined {
  const span = /^(\d{1,6})([smh])$/.exec(text);
  if (span) return new Date(now + Number(span[1]) * (units[span[2] ?? ""] ?? 0));
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})?$/.test(text)) return undefined;
  const date = new Date(text);
  return Number.isNaN(date.getTime()) || !isDayOfMonth(text) ? undefined : date;
}

/** False for February 31, which `Date` reads as March 3. */
function isDayOfMonth(text: string): boolean {
  const [year, month, day] = text.slice(0, 10).split("-").map(Number) as [number, number, number];
  return new Date(Date.UTC(year, month - 1, day)).getUTCDate() === day;
}
