import { listRule, type OptionRule, ruleOf, wholeNumberRule } from "../base/index.ts";

/** Longest delay of a timer, in milliseconds. */
const LONGEST_DELAY_MS = 2_147_483_647;

export const delayRule: OptionRule = wholeNumberRule(1, LONGEST_DELAY_MS);

const messageRule = ruleOf(
  "a text, or a pattern",
  (value) => (typeof value === "string" && value !== "") || value instanceof RegExp,
);

export const tooLongMessagesRule: OptionRule = listRule("a list of texts and patterns", messageRule);
