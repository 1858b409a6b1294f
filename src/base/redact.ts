import { InvalidInputError } from "../errors/index.ts";
import { anyRule, flagRule, listRule, recordRule, ruleOf } from "./option-rules.ts";
import { type OptionsSchema, optionsOf } from "./options.ts";
import { maxJsonDepth } from "./plain-values.ts";

/** Replaces a secret. */
export const redactedText = "[redacted]";

/** What `createRedactor()` takes. */
export interface RedactorOptions {
  /**
   * Texts to redact, each of at least 4 characters. Also found when escaped as in JSON, YAML or URLs, to any depth. Default:
   * none.
   */
  readonly secrets?: readonly string[] | undefined;
  /**
   * Patterns of secrets, in addition to the built-in ones. The whole match is redacted, or only its group `secret` if it has one.
   * They run on texts from outside: avoid patterns that can backtrack for long. Default: none.
   */
  readonly patterns?: readonly RegExp[] | undefined;
  /**
   * Environment variables. Values of at least 8 characters are secrets if the variable's name contains KEY, TOKEN, SECRET,
   * PASSWORD, PASSPHRASE or CREDENTIAL. Default `process.env`, read once; `{}` for none.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Whether built-in patterns are redacted. Default true; set false to keep texts that only look like secrets. */
  readonly shapes?: boolean | undefined;
}

/** Removes secrets from texts and values. Redacting twice has no further effect. */
export interface Redactor {
  /** The text without secrets; the same string if it contains none. */
  text(text: string): string;
  /**
   * A copy without secrets in keys and values at any depth; the value of a key such as `password` is redacted completely. Errors
   * become `{ name, message, cause? }`; values nested deeper than 200 become a note.
   */
  value(value: unknown): unknown;
  /** The message of a thrown value, without secrets. */
  message(thrown: unknown): string;
}

const shortestSecret = 4;
const shortestVariable = 8;
const secretVariable = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL/i;

/** The rule for secrets accepts any value, because its error message would contain the secret. */
const redactorOptionsSchema: OptionsSchema<RedactorOptions> = {
  rules: {
    secrets: listRule("a list of texts", anyRule),
    patterns: listRule(
      "a list of regular expressions",
      ruleOf("a regular expression", (value) => value instanceof RegExp),
    ),
    environment: recordRule(
      "an object of texts",
      ruleOf("a text", (value) => value === undefined || typeof value === "string"),
    ),
    shapes: flagRule,
  },
};

/**
 * Creates a redactor. Known secrets are found in any position; patterns (bearer tokens, `sk-` and other provider keys, JWTs,
 * passwords in URLs, `password=`, authorization headers, private keys) are found in time linear in the text.
 * @throws InvalidInputError for a secret of less than 4 characters, because it would also redact ordinary words.
 */
export function createRedactor(given?: RedactorOptions): Redactor {
  const options = optionsOf<RedactorOptions>(given, "createRedactor()", redactorOptionsSchema);
  const { secrets = [], patterns = [], environment = process.env, shapes: builtIn = true } = options;
  for (const [place, secret] of secrets.entries()) {
    if (typeof secret === "string" && secret.length >= shortestSecret) continue;
    throw new InvalidInputError(`secrets[${place}] must be a text of at least ${shortestSecret} characters`);
  }
  const search = new SecretSearch([...secrets, ...secretsOf(environment)], shortestSecret);
  const shapes = [...(builtIn ? secretPatterns : []), ...patterns].map(searching);

  function text(given: string): string {
    const readings = readingsOf(given);
    const shaped = readings.flatMap((reading) => findShapes(reading, shapes));
    const places = merged([...search.placesIn(readings), ...shaped]);
    if (places.length === 0) return given;
    let shown = "";
    let from = 0;
    for (const place of places) {
      shown += given.slice(from, place.from) + redactedText;
      from = place.to;
    }
    return shown + given.slice(from);
  }

  function value(given: unknown, depth: number): unknown {
    if (typeof given === "string") return text(given);
    if (typeof given !== "object" || given === null) return given;
    if (depth > maxJsonDepth) return "[nested too deep]";
    if (Array.isArray(given)) return given.map((item: unknown) => value(item, depth + 1));
    const fields = given instanceof Error ? fieldsOf(given) : Object.entries(given);
    return Object.fromEntries(
      fields.map(([name, field]: [string, unknown]) => {
        const isHidden = field !== null && field !== undefined && isSecretName(name);
        return [text(name), isHidden ? redactedText : value(field, depth + 1)];
      }),
    );
  }

  return {
    text,
    value: (given) => value(given, 1),
    message: (thrown) => text(thrown instanceof Error ? thrown.message : String(thrown)),
  };
}

function fieldsOf({ name, message, cause }: Error): [string, unknown][] {
  return Object.entries({ name, message, ...(cause === undefined ? {} : { cause }) });
}

function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value]) =>
    value !== undefined && value.trim().length >= shortestVariable && secretVariable.test(name) ? [value.trim()] : [],
  );
}

interface TextSpan {
  readonly from: number;
  readonly to: number;
}

function searching(pattern: RegExp): RegExp {
  const flags = new Set(pattern.flags.replace("y", "")).add("g");
  if (pattern.source.includes("(?<secret>")) flags.add("d");
  return new RegExp(pattern.source, [...flags].join(""));
}

function findShapes({ text, originalIndex }: Reading, shapes: readonly RegExp[]): TextSpan[] {
  const places: TextSpan[] = [];
  for (const shape of shapes) {
    for (const match of text.matchAll(shape)) {
      const [from, to] = match.indices?.groups?.secret ?? [match.index, match.index + match[0].length];
      if (to > from) places.push({ from: originalIndex(from), to: originalIndex(to) });
    }
  }
  return places;
}

function merged(places: TextSpan[]): TextSpan[] {
  const sorted = places.toSorted((one, other) => one.from - other.from);
  const apart: TextSpan[] = [];
  for (const place of sorted) {
    const last = apart.at(-1);
    if (last && place.from <= last.to) apart[apart.length - 1] = { from: last.from, to: Math.max(last.to, place.to) };
    else apart.push(place);
  }
  return apart;
}

/*
 * The patterns of secrets in texts from outside. Every pattern is linear in the text: an unbounded quantifier is followed by
 * nothing that could fail, or is entered once per run of its characters (lookbehind); all others are bounded. Each keeps the text
 * that identifies the secret, and captures the rest as `secret`.
 */

/** A key before a value: `password=`, `"password": `, `\"password\":` within JSON. */
function keyed(names: string, signs: string): string {
  return `(?:${names})\\\\{0,3}["']?\\s{0,4}${signs}\\s{0,4}`;
}

const passwordNames =
  "password|passwd|passphrase|pwd|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|(?:access|auth|refresh|session)[_-]?token|(?<![a-z])id[_-]?token";
/** Everyday words: the value is a secret only after an equals sign, or if the key is quoted. */
const everydayNames = "secret|token|credentials?";
const headerNames = "(?:proxy-)?authorization|x-api-key|api-key|x-auth-token|(?:set-)?cookie";

/** A quote within the value is escaped. Quotes that are themselves escaped are plain in another decoding of the text. */
const quoted = `(?<mark>["'])(?!\\[redacted\\])(?<secret>(?:\\\\[^\\n]|(?!\\k<mark>)[^\\n\\\\])+)`;
const unquoted = `(?!\\[redacted\\])(?<secret>[^\\s"'&,;)}\\]\\\\]+)`;

/** Built-in patterns of secrets; for texts, not for structured values. */
export const secretPatterns: readonly RegExp[] = [
  // Bearer tokens: with a digit, or too long to be a word that follows "bearer" in a sentence.
  /\b(?:bearer|basic)\s{1,8}(?=[^\d\s]{0,64}\d|\S{20})(?<secret>[\w.~+/=-]{6,})/i,
  // Keys with a provider's prefix.
  /(?<![\w-])sk-(?=[a-z_-]{0,64}\d|[\w-]{20})[\w-]{8,}/i,
  /(?<![\w-])(?:[sr]k_(?:live|test)_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza)[\w-]{10,}/,
  // JSON web tokens.
  /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/,
  // User and password in a URL.
  /:\/\/(?<secret>[^\s/@:"'<>]{0,256}:[^\s/"'<>]{1,512})@/,
  // A header value may have several words; the rest of the line is redacted.
  new RegExp(
    `${keyed(headerNames, "[:=]")}\\\\{0,3}["']?(?![\\s"'\\\\]{0,8}\\[redacted\\])(?<secret>[^"'\\r\\n]+)`,
    "i",
  ),
  new RegExp(keyed(passwordNames, "[:=]") + quoted, "i"),
  new RegExp(keyed(passwordNames, "[:=]") + unquoted, "i"),
  new RegExp(`(?<![a-z])${keyed(everydayNames, "=")}${unquoted}`, "i"),
  new RegExp(`(?<key>["'])(?:${everydayNames})\\\\{0,3}\\k<key>\\s{0,4}:\\s{0,4}${quoted}`, "i"),
  // Private keys, up to their end line or to the end of a truncated text.
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?<secret>[^-]+)/,
];

const secretName =
  /(?:password|passwd|passphrase|^pwd|secret|token|apikey|accesskey|secretkey|privatekey|credentials?|authorization|cookie)$/;

/** Whether the value of this key is a secret: `password`, `dbPassword`, `API_KEY`, `x-api-key`. */
export function isSecretName(name: string): boolean {
  return name.length <= 200 && secretName.test(name.toLowerCase().replaceAll(/[^a-z]/g, ""));
}

/** The position of a secret in a text, in any escaping. */
export interface SecretSpan {
  readonly from: number;
  readonly to: number;
  /** Index of the secret. */
  readonly secret: number;
}

/** A text after some layers of unescaping. */
export interface Reading {
  readonly text: string;
  /** The index in the original text. */
  readonly originalIndex: (index: number) => number;
}

/**
 * Maximum number of decodings of one text. A layer of JSON halves the backslashes at a position, and a layer of a URL removes a
 * `25`, so honest texts need few; the bound exists because escapes can be constructed that lose one character at a time.
 */
const mostReadings = 24;

/**
 * The text and all texts that unescaping yields, those with few layers first. JSON is embedded in JSON, YAML and URLs, to any
 * depth, and each layer writes a secret differently.
 */
export function readingsOf(text: string): Reading[] {
  const readings: Reading[] = [{ text, originalIndex: (index) => index }];
  if (!text.includes("\\") && !text.includes("%")) return readings;
  const known = new Set([text]);
  for (const reading of readings) {
    for (const next of [withoutBackslashes(reading), withoutPercents(reading)]) {
      if (next === undefined || known.has(next.text)) continue;
      if (readings.length >= mostReadings) return readings;
      known.add(next.text);
      readings.push(next);
    }
  }
  return readings;
}

const backslashEscape = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(["'\\/bfnrt0aevNLP_ ]))/g;

/** The letters after a backslash in JSON and YAML. */
const characters: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  "0": "\0",
  a: "\x07",
  e: "\x1b",
  v: "\v",
  N: "\x85",
  _: "\xa0",
  L: "\u2028",
  P: "\u2029",
};

/** Removes one layer of JSON or YAML escaping. */
function withoutBackslashes(reading: Reading): Reading | undefined {
  if (!reading.text.includes("\\")) return undefined;
  return withoutEscapes(reading, backslashEscape, ([, unit, byte, point, letter = ""]) => {
    const code = Number.parseInt(unit ?? byte ?? point ?? "", 16);
    if (Number.isNaN(code)) return characters[letter] ?? letter;
    if (code > 0x10_ff_ff) return undefined;
    // A surrogate pair is written as two escapes.
    return code > 0xff_ff ? String.fromCodePoint(code) : String.fromCharCode(code);
  });
}

/** Each escape is one character of UTF-8. */
const percentEscape =
  /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-7](?:%[89ab][\da-f]){3}/gi;

/** Removes one layer of URL encoding. The `+` of a form stays, since it may be a literal plus sign. */
function withoutPercents(reading: Reading): Reading | undefined {
  if (!reading.text.includes("%")) return undefined;
  return withoutEscapes(reading, percentEscape, ([escaped]) => {
    try {
      return decodeURIComponent(escaped);
    } catch {
      return undefined;
    }
  });
}

/** Replaces each escape by its character; it stays if `characterOf` returns `undefined`. */
function withoutEscapes(
  { text, originalIndex }: Reading,
  escapes: RegExp,
  characterOf: (match: RegExpExecArray) => string | undefined,
): Reading | undefined {
  let plain = "";
  let from = 0;
  // From each of these indexes to the next, the original and the decoded text are the same.
  const plainStarts = [0];
  const givenStarts = [0];
  for (const match of text.matchAll(escapes)) {
    const character = characterOf(match);
    if (character === undefined) continue;
    plain += text.slice(from, match.index) + character;
    from = match.index + match[0].length;
    plainStarts.push(plain.length);
    givenStarts.push(from);
  }
  if (from === 0) return undefined;
  const placeIn = (index: number): number => {
    const run = lastAtMost(plainStarts, index);
    return (givenStarts[run] ?? 0) + index - (plainStarts[run] ?? 0);
  };
  return { text: plain + text.slice(from), originalIndex: (index) => originalIndex(placeIn(index)) };
}

function lastAtMost(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Finds known secrets in all decodings of a text. */
export class SecretSearch {
  readonly #needles: readonly { readonly text: string; readonly secret: number }[];

  /** @param shortest Shorter secrets are not searched for, because they occur in any text by chance. */
  constructor(secrets: readonly string[], shortest: number) {
    this.#needles = secrets.flatMap((secret, index) =>
      formsOf(secret)
        .filter((text) => text.length >= shortest)
        .map((text) => ({ text, secret: index })),
    );
  }

  /** All positions, in no order; a position may occur more than once. */
  placesIn(readings: readonly Reading[]): SecretSpan[] {
    return readings.flatMap((reading) => this.#needles.flatMap(({ text, secret }) => findAll(reading, text, secret)));
  }
}

/** URLs contain no lone surrogates, and forms write a space as `+`. */
function formsOf(secret: string): string[] {
  const wellFormed = secret.toWellFormed();
  return [...new Set([secret, wellFormed, wellFormed.replaceAll(" ", "+")])];
}

function findAll({ text, originalIndex }: Reading, needle: string, secret: number): SecretSpan[] {
  const places: SecretSpan[] = [];
  let open: { from: number; to: number } | undefined;
  const close = (): void => {
    if (open) places.push({ from: originalIndex(open.from), to: originalIndex(open.to), secret });
  };
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) {
    const to = at + needle.length;
    if (open && at < open.to) open.to = to;
    else {
      close();
      open = { from: at, to };
    }
  }
  close();
  return places;
}
