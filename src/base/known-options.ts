import { InvalidInputError } from "../errors/index.ts";
import { describeValue } from "./describe-value.ts";
import { nearestName } from "./nearest-name.ts";

export interface KnownOptions {
  /** Who takes them, as its caller writes it: `createAgent()`. */
  readonly of: string;
  readonly names: readonly string[];
  /** What is right in the place of names that people bring from elsewhere: `{ systemPrompt: "instructions" }`. */
  readonly instead?: Readonly<Record<string, string>> | undefined;
  /** Other names are the caller's own, unless they are close to an option's. Default false. */
  readonly takesOwnFields?: boolean | undefined;
}

/**
 * Refuses options that are no plain object, and names that are none of its options, with the nearest right one: an option
 * that is misspelt would else be ignored without a word. `undefined` is taken for no options.
 * @throws InvalidInputError
 */
export function assertKnownOptions(
  given: unknown,
  { of, names, instead = {}, takesOwnFields = false }: KnownOptions,
): void {
  if (given === undefined) return;
  // A text in their place may be an address with a password: it is not shown.
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidInputError(
      `${of} takes its options as an object { ${names.join(", ")} }, not ${typeof given === "string" ? "a text" : describeValue(given)}`,
    );
  }
  for (const name of Object.keys(given)) {
    if (names.includes(name)) continue;
    const meant = Object.hasOwn(instead, name) ? instead[name] : nearestName(name, names);
    if (takesOwnFields && meant === undefined) continue;
    throw new InvalidInputError(
      `${of} has no option "${name.slice(0, 64)}"${meant === undefined ? "." : `: did you mean ${meant}?`} Its options are ${names.join(", ")}`,
      { details: { option: name.slice(0, 64) } },
    );
  }
}
