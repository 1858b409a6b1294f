import { milliseconds } from "../run-model/event-rows.ts";

export { grouped, milliseconds } from "../run-model/event-rows.ts";

/** The part of an id that tells siblings apart: `~3da5f63e` of `root~3da5f63ee2f36ccd`. */
export function shortId(agentId: string): string {
  const child = agentId.indexOf("~");
  if (child < 0) return agentId.length > 20 ? `${agentId.slice(0, 19)}…` : agentId;
  return `~${agentId.slice(child + 1, child + 7)}`;
}

/** Tokens in thousands and millions. */
export function compact(amount: number): string {
  if (amount < 1_000) return String(amount);
  const [value, unit] = amount < 1_000_000 ? [amount / 1_000, "k"] : [amount / 1_000_000, "M"];
  return `${value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : Math.round(value)}${unit}`;
}

/** Micro-dollars as dollars. Null: a call had no price. */
export function dollars(micros: number | null): string {
  if (micros === null) return "no price";
  const amount = micros / 1_000_000;
  return `$${amount === 0 ? "0" : amount < 0.01 ? amount.toFixed(5) : amount < 1 ? amount.toFixed(4) : amount.toFixed(2)}`;
}

/** A time from the beginning of the run. */
export function sinceStart(time: number, start: number): string {
  const amount = Math.max(0, time - start) / 1_000;
  if (amount < 60) return `${amount.toFixed(3)} s`;
  const minutes = Math.floor(amount / 60);
  const seconds = (amount % 60).toFixed(1).padStart(4, "0");
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds.slice(0, 2)}`;
}

const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export function dateTime(time: number): string {
  return clock.format(time);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
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

/** An amount of a limit in its unit. */
export function amountText(limit: string, amount: number): string {
  if (limit === "maxActiveMs") return milliseconds(amount);
  return limit === "maxCostMicros" ? dollars(amount) : compact(amount);
}
