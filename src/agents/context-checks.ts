import { describeValue } from "../base/index.ts";
import type { CompactionStrategy, HistoryCompiler } from "../context/index.ts";
import { InvalidInputError } from "../errors/index.ts";

const LONGEST_NAME = 1_000;

/** Names are journalled. Throws `InvalidInputError` that says what `field` is. */
export function checkName(field: string, name: unknown): void {
  if (typeof name === "string" && name !== "" && name.length <= LONGEST_NAME) return;
  throw new InvalidInputError(
    `${field} is ${describeValue(name)}; it must be a name, a text of 1 to ${LONGEST_NAME} characters`,
  );
}

/** Throws `InvalidInputError` for what is no history compiler. */
export function checkedHistory(agent: string, history: HistoryCompiler): HistoryCompiler {
  const given: unknown = history;
  if (typeof given !== "object" || given === null || typeof history.compile !== "function") {
    throw new InvalidInputError(
      `agent "${agent}": history is ${describeValue(given)}; it must be a compiler, for instance fullHistory()`,
    );
  }
  checkName(`agent "${agent}": history.name`, history.name);
  for (const field of ["contextWindowSize", "expandBy"] as const) {
    const size = history[field];
    if (size === undefined || (Number.isSafeInteger(size) && size >= 1)) continue;
    throw new InvalidInputError(
      `agent "${agent}": history.${field} is ${describeValue(size)}; it must be a whole number of at least 1`,
    );
  }
  return history;
}

/** Throws `InvalidInputError` for what is no compaction strategy. */
export function checkedStrategy(agent: string, strategy: CompactionStrategy): CompactionStrategy {
  const given: unknown = strategy;
  if (typeof given !== "object" || given === null || typeof strategy.compact !== "function") {
    throw new InvalidInputError(
      `agent "${agent}": autoCompact.strategy is ${describeValue(given)}; it must be a strategy, for instance summarize()`,
    );
  }
  checkName(`agent "${agent}": autoCompact.strategy.name`, strategy.name);
  return strategy;
}
