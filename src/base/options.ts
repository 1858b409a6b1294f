import { InvalidInputError, TroupeError } from "../errors/index.ts";
import { describeThrown, describeValue } from "./describe-value.ts";
import { assertKnownOptions } from "./known-options.ts";

/**
 * Looks at the value that a caller gave for one option, and gives what goes on from here: the value, or a copy of it. Throws
 * an `InvalidInputError` that begins with `where`. It is not asked about `undefined`, unless the option is needed.
 */
export type OptionRule = (value: unknown, where: string) => unknown;

/** What a function takes: a rule for each of its options. */
export interface Door<Options extends object> {
  readonly rules: { readonly [Name in keyof Options]-?: OptionRule };
  /** Options that have to be there. */
  readonly needed?: readonly (keyof Options & string)[] | undefined;
  /** What is right in the place of names that people bring from elsewhere: `{ systemPrompt: "instructions" }`. */
  readonly instead?: Readonly<Record<string, string>> | undefined;
  /**
   * What is given may be an object of the caller's own class, on which its functions are called: fields of its own are left
   * alone, unless their names are misspelt options. Default false.
   */
  readonly takesOwnFields?: boolean | undefined;
}

/**
 * The options of a public function, checked whole before anything is done with them: unknown names are refused with the
 * nearest right one, each value by its rule. What comes out is a frozen object of its own; each option is read once, so that
 * what was checked is what is used.
 * @param of Who takes them, as its caller writes it: `executeTurn()`.
 * @throws InvalidInputError
 */
export function optionsOf<Options extends object>(given: unknown, of: string, door: Door<Options>): Options {
  return readOptions<Options>(given, `${of}: `, of, door);
}

/** The rule of an option that takes options of its own. */
export function optionsRule<Options extends object>(door: Door<Options>): OptionRule {
  return (value, where) => readOptions(value, `${where}.`, where, door);
}

/** Has `work` look at what a caller gave; whatever reading it throws becomes an `InvalidInputError`. */
export function reading<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    throw new InvalidInputError(`${where} cannot be read: ${describeThrown(error)}`, { cause: error });
  }
}

function readOptions<Options extends object>(
  given: unknown,
  prefix: string,
  of: string,
  { rules, needed = [], instead, takesOwnFields = false }: Door<Options>,
): Options {
  const names = Object.keys(rules) as (keyof Options & string)[];
  reading(`${of}: what it was given`, () => {
    if (takesOwnFields && isInstance(given)) return;
    assertKnownOptions(given, { of, names, instead, takesOwnFields });
    if (isInstance(given)) throw noOptions(of, names, given);
  });
  const source = (given ?? {}) as Readonly<Record<string, unknown>>;
  const options: Partial<Record<keyof Options, unknown>> = {};
  for (const name of names) {
    const where = `${prefix}${name}`;
    reading(where, () => {
      const value = source[name];
      if (value === undefined && !needed.includes(name)) return;
      options[name] = rules[name](value, where);
    });
  }
  return Object.freeze(options) as Options;
}

/** Dates, maps, lists and promises hold no options. */
function isInstance(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // A plain object of another realm has a prototype without one, too.
  return prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null;
}

function noOptions(of: string, names: readonly string[], given: unknown): InvalidInputError {
  return new InvalidInputError(
    `${of} takes its options as an object { ${names.join(", ")} }, not ${describeValue(given)}`,
  );
}
