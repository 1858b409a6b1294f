import { InvalidInputError } from "../../errors/index.ts";

/** A plugin's option that is a whole number; throws `InvalidInputError` that names it. */
export function wholeNumber(name: string, value: number, minimum: number): number {
  if (Number.isSafeInteger(value) && value >= minimum) return value;
  throw new InvalidInputError(`${name} is ${String(value)}; use a whole number of at least ${minimum}`);
}
