import { InvalidInputError, TroupeError } from "../errors/index.ts";
import { describeValue } from "./describe-value.ts";
import { wordsOfThrown } from "./thrown.ts";

/**
 * Checks the value of one option and returns the value to use: the same one, or a copy. Throws an `InvalidInputError` whose
 * message begins with `where`. It is called for `undefined` only if the option is required.
 */
export type OptionRule = (value: unknown, where: string) => unknown;

/** The options of a public function. */
export interface OptionsSchema<Options extends object> {
  readonly rules: { readonly [Name in keyof Options]-?: OptionRule };
  /** Options that are required. */
  readonly needed?: readonly (keyof Options & string)[] | undefined;
  /** Maps option names that people know from other libraries to the right ones: `{ systemPrompt: "instructions" }`. */
  readonly instead?: Readonly<Record<string, string>> | undefined;
  /**
   * Accepts an instance of the caller's class, whose methods are called: fields that are not options are ignored, unless they
   * look like misspelt options. Default false.
   */
  readonly takesOwnFields?: boolean | undefined;
}

/**
 * Checks all options of a public function before anything else: each value by its rule; an unknown name is refused with the
 * nearest valid one. Returns a new frozen object; each option is read once, so that the value that was checked is the value that
 * is used.
 * @param of The function as the caller writes it: `executeTurn()`.
 * @throws InvalidInputError
 */
export function optionsOf<Options extends object>(given: unknown, of: string, schema: OptionsSchema<Options>): Options {
  return readOptions<Options>(given, `${of}: `, of, schema);
}

/** The rule of an option whose value is an options object. */
export function optionsRule<Options extends object>(schema: OptionsSchema<Options>): OptionRule {
  return (value, where) => readOptions(value, `${where}.`, where, schema);
}

/** The options that have a rule among `rules`, out of the options of a function that passes them on. */
export function optionsIn<Options extends object, Name extends keyof Options>(
  options: Options,
  rules: Readonly<Record<Name, OptionRule>>,
): Pick<Options, Name> {
  const names = (Object.keys(rules) as Name[]).filter((name) => Object.hasOwn(options, name));
  return Object.fromEntries(names.map((name) => [name, options[name]])) as Pick<Options, Name>;
}

/** Runs code that reads a caller's value; other errors than ours become an `InvalidInputError`. */
export function reading<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof TroupeError) throw error;
    throw new InvalidInputError(`${where} cannot be read: ${wordsOfThrown(error)}`, { cause: error });
  }
}

function readOptions<Options extends object>(
  given: unknown,
  prefix: string,
  of: string,
  { rules, needed = [], instead, takesOwnFields = false }: OptionsSchema<Options>,
): Options {
  const names = Object.keys(rules) as (keyof Options & string)[];
  reading(`${of}: the options`, () => {
    if (takesOwnFields && isInstance(given)) return;
    assertKnownOptions(given, { of, names, instead, takesOwnFields });
    if (isInstance(given)) throw noOptions(of, names, describeValue(given));
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

/** Dates, maps, lists and promises cannot contain options. */
function isInstance(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of a plain object has no prototype itself, also in another realm.
  return prototype !== null && prototype !== Object.prototype && Object.getPrototypeOf(prototype) !== null;
}

/**
 * Refuses values other than plain objects. Refuses unknown names with the nearest valid one, since a misspelt option would be
 * ignored silently. `undefined` means no options.
 * @throws InvalidInputError
 */
export function assertKnownOptions(
  given: unknown,
  {
    of,
    names,
    instead = {},
    takesOwnFields = false,
  }: Pick<OptionsSchema<object>, "instead" | "takesOwnFields"> & {
    readonly of: string;
    readonly names: readonly string[];
  },
): void {
  if (given === undefined) return;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    // A text may be an address that contains a password.
    throw noOptions(of, names, typeof given === "string" ? "a text" : describeValue(given));
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

function noOptions(of: string, names: readonly string[], given: string): InvalidInputError {
  return new InvalidInputError(`${of} expects its options as an object { ${names.join(", ")} }, not ${given}`);
}

/** The known name that was most likely meant: at most two letters differ, ignoring case; otherwise `undefined`. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const [best] = nearestNames(name, known);
  return best && best.distance <= Math.min(2, Math.floor(name.length / 2)) ? best.name : undefined;
}

/** The known names, closest to `name` first; equally close ones in the given order. */
export function nearestNames(name: string, known: readonly string[]): readonly { name: string; distance: number }[] {
  const meant = name.slice(0, longestName).toLowerCase();
  return known
    .map((candidate) => ({ name: candidate, distance: editDistance(meant, candidate.toLowerCase()) }))
    .toSorted((one, other) => one.distance - other.distance);
}

/** Only the beginning of longer names is compared, because the time grows with the square of the length. */
const longestName = 65;

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
