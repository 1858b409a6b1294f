// Formats amounts, costs and ids, for pages and terminals.

export { grouped, milliseconds } from "./event-rows.ts";

/** The suffix of an id that distinguishes siblings: `~3da5f63e` of `root~3da5f63ee2f36ccd`. */
export function shortId(agentId: string): string {
  const child = agentId.indexOf("~");
  if (child < 0) return agentId.length > 20 ? `${agentId.slice(0, 19)}…` : agentId;
  return `~${agentId.slice(child + 1, child + 7)}`;
}

/** Tokens in thousands and millions. */
export function compact(amount: number): string {
  if (amount < 1_000) return String(amount);
  const [value, unit] = amount < 999_500 ? [amount / 1_000, "k"] : [amount / 1_000_000, "M"];
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Micro-dollars as dollars. */
export function dollars(micros: number): string {
  const amount = micros / 1_000_000;
  if (amount === 0) return "$0";
  const digits = amount < 0.0001 ? 6 : amount < 0.01 ? 5 : amount < 1 ? 4 : 2;
  return `$${amount.toFixed(digits)}`;
}

/** The total cost of calls that have a price. */
export interface Cost {
  /** Cost of the calls that have a price; `null` if none has one. */
  readonly costMicros: number | null;
  readonly calls: number;
  readonly unpricedCalls: number;
}

/** Formats a cost: `$0` without calls, `no price` if no call has a price, `≥ $0.04` if some have none. */
export function costText({ costMicros, calls, unpricedCalls }: Cost): string {
  if (calls > 0 && unpricedCalls >= calls) return "no price";
  return unpricedCalls > 0 ? `≥ ${dollars(costMicros ?? 0)}` : dollars(costMicros ?? 0);
}

/** Why a cost is not a plain figure; `undefined` if it is one. */
export function costTitle({ calls, unpricedCalls }: Cost): string | undefined {
  if (unpricedCalls === 0) return undefined;
  return `${unpricedCalls.toLocaleString("en")} of ${plural(calls, "call")} had no price and count as nothing`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A share in percent: `45 %`, `< 1 %`; `0 %` if the whole is 0. */
export function percent(part: number, whole: number): string {
  const share = whole === 0 ? 0 : (part / whole) * 100;
  return share > 0 && share < 1 ? "< 1 %" : `${Math.round(share)} %`;
}

/** A time since the start of the run. */
export function sinceStart(time: number, start: number): string {
  const amount = Math.max(0, time - start) / 1_000;
  if (amount < 60) return `${amount.toFixed(3)} s`;
  const minutes = Math.floor(amount / 60);
  const seconds = (amount % 60).toFixed(1).padStart(4, "0");
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds.slice(0, 2)}`;
}

const limitWords: Readonly<Record<string, string>> = {
  maxSteps: "steps",
  maxTreeSteps: "steps in the tree",
  maxToolCalls: "tool calls",
  maxTreeToolCalls: "tool calls in the tree",
  maxTokens: "tokens",
  maxCostMicros: "cost",
  maxActiveMs: "working time",
  deadlineAt: "deadline",
};

export function limitWord(limit: string): string {
  return limitWords[limit] ?? limit;
}
