import { InvalidArgumentError } from "commander";

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
