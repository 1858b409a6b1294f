import { ruleOf } from "../base/index.ts";

/** The text before the names of a plugin's tools; a name of a tool has at most 64 characters. */
export const prefixRule = ruleOf(
  "a text of up to 32 letters, digits, _ and -",
  (value) => typeof value === "string" && /^[\w-]{0,32}$/.test(value),
);
