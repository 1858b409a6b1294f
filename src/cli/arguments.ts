import { InvalidArgumentError } from "commander";
import { type JsonObject, jsonObjectSchema } from "../state/index.ts";

/** A whole number within bounds, for an option's value. Throws commander's `InvalidArgumentError`. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= from && value <= to) return value;
    throw new InvalidArgumentError(`It takes a whole number from ${from} to ${to}.`);
  };
}

/** Text that is not only white space, for an option's value. Throws commander's `InvalidArgumentError`. */
export function nonEmpty(text: string): string {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It must not be empty.");
}

/** A JSON object, for an option's value. Throws commander's `InvalidArgumentError`. */
export function jsonObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw noJsonObject("this is no JSON");
  }
  const parsed = jsonObjectSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw noJsonObject("this is something else");
}

function noJsonObject(why: string): InvalidArgumentError {
  return new InvalidArgumentError(`It takes a JSON object, for instance '{"amount":5}'; ${why}.`);
}
