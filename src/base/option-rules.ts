import { InvalidInputError } from "../errors/index.ts";
import type { Clock } from "./clock.ts";
import { describeValue } from "./describe-value.ts";
import { assertId } from "./ids.ts";
import type { OptionRule } from "./options.ts";

/** A rule that accepts the values for which `fits` returns true; `takes` describes them in the error message. */
export function ruleOf(takes: string, fits: (value: unknown) => boolean): OptionRule {
  return (value, where) => {
    if (fits(value)) return value;
    throw new InvalidInputError(`${where} is ${describeValue(value)}; expected ${takes}`);
  };
}

/** Accepts any value: the code that uses the option checks it, or no check is needed. */
export const anyRule: OptionRule = (value) => value;

export const flagRule: OptionRule = ruleOf("true or false", (value) => typeof value === "boolean");

export const textRule: OptionRule = ruleOf("a text", (value) => typeof value === "string");

export const nameRule: OptionRule = ruleOf(
  "a non-empty text",
  (value) => typeof value === "string" && value.trim() !== "",
);

export const functionRule: OptionRule = ruleOf("a function", (value) => typeof value === "function");

/** Also accepts signals of other realms and libraries: only the used members matter. */
export const signalRule: OptionRule = ruleOf(
  "an AbortSignal (the signal of an AbortController, not the controller)",
  (value) =>
    hasMethods(value, ["addEventListener", "removeEventListener"]) && "aborted" in value && value.aborted !== undefined,
);

const clockMethods = ["now", "elapsed", "setTimer", "setDelay", "sleep"] as const satisfies readonly (keyof Clock)[];

export const clockRule: OptionRule = portRule("a clock", clockMethods);

/** An object with these methods; `takes` describes it in the error message. */
export function portRule(takes: string, methods: readonly string[]): OptionRule {
  return ruleOf(`${takes}, with ${methods.map((name) => `${name}()`).join(", ")}`, (value) =>
    hasMethods(value, methods),
  );
}

export function hasMethods(value: unknown, methods: readonly string[]): value is object {
  if (typeof value !== "object" || value === null) return false;
  try {
    return methods.every((name) => typeof (value as Record<string, unknown>)[name] === "function");
  } catch {
    // An object whose properties cannot be read.
    return false;
  }
}

const LONGEST_NAME = 1_000;

/** The name of a port, a model or a provider; it is journalled. */
export const portNameRule: OptionRule = ruleOf(
  `a name, a text of 1 to ${LONGEST_NAME} characters`,
  (value) => typeof value === "string" && value.trim() !== "" && value.length <= LONGEST_NAME,
);

export function wholeNumberRule(least: number, most: number = Number.MAX_SAFE_INTEGER): OptionRule {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return ruleOf(
    `a whole number ${range}`,
    (value) => typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most,
  );
}

export function oneOfRule(...values: readonly string[]): OptionRule {
  const words = values.map((value) => JSON.stringify(value));
  return ruleOf(`${words.slice(0, -1).join(", ")} or ${words.at(-1)}`, (value) =>
    (values as readonly unknown[]).includes(value),
  );
}

/** An array may have a length of billions without having a member. */
const mostMembers = 100_000;

/** A copy of a list; each member is checked by its rule. */
export function listRule(takes: string, member: OptionRule): OptionRule {
  const isList = ruleOf(takes, (value) => Array.isArray(value) && value.length <= mostMembers);
  return (value, where) => {
    const list = isList(value, where) as readonly unknown[];
    return Object.freeze(Array.from(list, (one, index) => member(one, `${where}[${index}]`)));
  };
}

/** A copy of an object with arbitrary keys; each value is checked by its rule. */
export function recordRule(takes: string, member: OptionRule): OptionRule {
  const isRecord = ruleOf(
    takes,
    (value) => typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date),
  );
  return (value, where) => {
    const entries = Object.entries(isRecord(value, where) as object) as [string, unknown][];
    return Object.freeze(
      Object.fromEntries(entries.map(([name, one]) => [name, member(one, `${where}[${JSON.stringify(name)}]`)])),
    );
  };
}

/** An id that the user chooses. */
export const idRule: OptionRule = (value, where) => {
  assertId(where, value);
  return value;
};
