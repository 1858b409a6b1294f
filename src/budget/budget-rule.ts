import type { OptionRule } from "../base/index.ts";
import { type Budget, limitsOf } from "./read-budget.ts";

/** A budget among the options of a function: a copy of it, which can be read. */
export const budgetRule: OptionRule = (value) => {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const budget = isObject ? Object.freeze({ ...value }) : (value as Budget);
  limitsOf(budget);
  return budget;
};
