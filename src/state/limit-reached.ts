import { type Forecast, limitFlags, type LimitName, limitNames, type Limits, outerPartsOf } from "../budget/index.ts";
import { agentOfTurn } from "./agent-ids.ts";
import type { AccountHolder, LimitFigures } from "./entry-parts.ts";

/**
 * Describes a reached limit to people: holder, account, used of max: `lead, this turn: 50,000 of 50,000 tokens`. An ancestor's account is
 * described as such: `its parent lead, this turn: …`.
 */
export function limitText(limit: LimitName, accountId: string, figures: LimitFigures = {}): string {
  const { renewsAt } = figures;
  const renewal = renewsAt === undefined ? "" : `; it renews at ${momentText(renewsAt)}`;
  return `${accountText(accountId, figures.holder)}: ${figuresText(shownLimit(limit, accountId), figures)}${renewal}`;
}

/**
 * Describes a limit before it is reached: `lead, this turn: 40,000 of 50,000 tokens (80 %)`, or `lead, this turn: its deadline 2026-11-21
 * 14:03:00 UTC is 12 seconds away`.
 */
export function warningText({
  limit,
  accountId,
  holder,
  used,
  max,
}: {
  readonly limit: LimitName;
  readonly accountId: string;
  readonly holder?: AccountHolder | undefined;
  readonly used: number;
  readonly max: number;
}): string {
  if (limit === "deadlineAt") {
    const away = amountText("maxActiveMs", Math.max(0, max - used));
    return `${accountText(accountId, holder)}: its deadline ${momentText(max)} is ${away} away`;
  }
  const share = Math.floor((used / Math.max(1, max)) * 100);
  const amounts = `${usedText(limit, used, max)} of ${amountText(shownLimit(limit, accountId), max)}`;
  return `${accountText(accountId, holder)}: ${amounts} (${share} %)`;
}

/** Describes a forecast: `owner ada, per day: 12,000 of 20,000 tokens; at this rate the limit is met at 2026-11-21 14:03:00 UTC`. */
export function forecastText(
  accountId: string,
  { limit, used, max, expected, renewsAt, metAt }: Forecast,
  holder?: AccountHolder,
): string {
  const amounts = `${usedText(limit, used, max)} of ${amountText(shownLimit(limit, accountId), max)}`;
  const met = metAt === null ? "not met" : `met at ${momentText(metAt)}`;
  const renewal =
    expected === null || renewsAt === null
      ? ""
      : `, ${usedText(limit, expected, max)} are expected by ${momentText(renewsAt)}`;
  const end = used >= max ? "the limit is met" : `at this rate the limit is ${met}${renewal}`;
  return `${accountText(accountId, holder)}: ${amounts}; ${end}`;
}

/** An account above the root counts the steps and tool calls of all agents, not those of one tree. */
export function shownLimit(limit: LimitName, accountId: string): LimitName {
  if (!outerPartsOf(accountId)) return limit;
  if (limit === "maxTreeSteps") return "maxSteps";
  return limit === "maxTreeToolCalls" ? "maxToolCalls" : limit;
}

function maxText(name: LimitName, max: number | undefined): string {
  if (max !== undefined) return amountText(name, max);
  return name === "deadlineAt" ? "no deadline" : `no limit of ${plainNames[name]}`;
}

/** Describes a change of an account's limits: `desk, its whole life: 50,000 tokens → 90,000 tokens, no limit of cost → $5.00`. */
export function limitsChangeText({
  accountId,
  limits,
  before,
}: {
  readonly accountId: string;
  readonly limits: Limits;
  readonly before: Limits;
}): string {
  const names = limitNames.filter((name) => limits[name] !== before[name]);
  const textOf = (name: LimitName, of: Limits): string => maxText(shownLimit(name, accountId), of[name]);
  const amounts = names.map((name) => `${textOf(name, before)} → ${textOf(name, limits)}`);
  const flags = limitFlags.filter((flag) => (limits[flag] ?? false) !== (before[flag] ?? false));
  return `${accountText(accountId)}: ${[...amounts, ...flags.map((flag) => `${flag}: ${limits[flag] ?? false}`)].join(", ")}`;
}

/** `lead, this turn`; the agent's id replaces the name if the holder is unknown. */
export function accountText(accountId: string, holder?: AccountHolder): string {
  const outer = outerPartsOf(accountId);
  if (outer) return `${outer.name === null ? "the tenant" : `owner ${outer.name}`}, ${spanOfAccount(accountId)}`;
  const name = holder?.name ?? agentOfAccount(accountId);
  const who = holder === undefined || holder.kinship === "own" ? name : `its ${holder.kinship} ${name}`;
  return `${who}, ${spanOfAccount(accountId)}`;
}

/** The period or work that an account covers, as text. */
export function spanOfAccount(accountId: string): string {
  const window = outerPartsOf(accountId)?.window;
  if (window !== undefined) return window === "total" ? "in total" : `per ${window.slice(3).toLowerCase()}`;
  if (accountId.startsWith("turn:")) return "this turn";
  return accountId.startsWith("background:") ? "its background children" : "its whole life";
}

/** The agent in an account's id: `turn:desk#1`, `agent:desk`, `background:desk#1`. */
export function agentOfAccount(accountId: string): string {
  return agentOfTurn(accountId.slice(accountId.indexOf(":") + 1));
}

const units: Readonly<Record<Exclude<LimitName, "maxCostMicros" | "maxActiveMs" | "deadlineAt">, string>> = {
  maxSteps: "steps",
  maxTreeSteps: "steps of its tree",
  maxToolCalls: "tool calls",
  maxTreeToolCalls: "tool calls of its tree",
  maxTokens: "tokens",
};

const plainNames: Readonly<Record<Exclude<LimitName, "deadlineAt">, string>> = {
  ...units,
  maxCostMicros: "cost",
  maxActiveMs: "working time",
};

function figuresText(limit: LimitName, { used, max }: LimitFigures): string {
  if (max === undefined) return limit === "deadlineAt" ? "its deadline" : `its limit of ${plainNames[limit]}`;
  if (limit === "deadlineAt") return `its deadline ${momentText(max)}`;
  if (used === undefined) return `its limit of ${amountText(limit, max)}`;
  // A call may be refused before the limit is reached, because the rest may be too little for it.
  const left = limit === "maxTokens" || limit === "maxCostMicros" ? tooLittle(limit, used, max) : "";
  return `${usedText(limit, used, max)} of ${amountText(limit, max)}${left}`;
}

function tooLittle(limit: "maxTokens" | "maxCostMicros", used: number, max: number): string {
  if (used >= max) return "";
  return limit === "maxTokens" ? ", too few left for the next call" : ", too little left for the next call";
}

/** An amount with its unit: `50,000 tokens`, `$0.50`, `1.5 seconds`, a moment. */
export function amountText(limit: LimitName, amount: number): string {
  if (limit === "maxCostMicros") return dollarsText(amount);
  if (limit === "maxActiveMs") return `${secondsText(amount, amount)} seconds`;
  return limit === "deadlineAt" ? momentText(amount) : `${countText(amount)} ${units[limit]}`;
}

/** The used amount without its unit; the text continues with the limit, which has it. */
export function usedText(limit: LimitName, used: number, max: number): string {
  if (limit === "maxCostMicros") return dollarsText(used);
  if (limit === "maxActiveMs") return secondsText(used, max);
  return limit === "deadlineAt" ? momentText(used) : countText(used);
}

/** `50,000`, independent of the machine's locale. */
function countText(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/gu, ",");
}

/** Micro-dollars with as many digits as necessary: `$0.50`, `$0.0045`, `$12.00`. */
export function dollarsText(micros: number): string {
  const digits = (micros / 1_000_000).toFixed(6).replace(/0{1,4}$/u, "");
  const [whole = "0", cents = ""] = digits.split(".");
  return `$${countText(Number(whole))}.${cents}`;
}

/** Seconds with as many digits as the limit has. */
function secondsText(milliseconds: number, max: number): string {
  const digits = max % 1_000 === 0 ? 0 : max % 100 === 0 ? 1 : 3;
  const unit = 1_000 / 10 ** digits;
  const [whole = "0", rest] = (Math.floor(milliseconds / unit) / 10 ** digits).toFixed(digits).split(".");
  return `${countText(Number(whole))}${rest === undefined ? "" : `.${rest}`}`;
}

/** `2026-11-21 14:03:00 UTC`. */
function momentText(at: number): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return String(at);
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}
