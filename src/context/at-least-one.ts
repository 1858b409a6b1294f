import { InvalidInputError } from "../errors/index.ts";

/** The number, if it is a whole one of at least 1. Throws `InvalidInputError` that says what `name` was. */
export function atLeastOne(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidInputError(`${name} is ${String(value)}; use a whole number of at least 1`);
}
