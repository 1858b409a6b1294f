import { InvalidInputError } from "../errors/index.ts";
import { maxJsonDepth } from "./safe-json.ts";
import { isSecretName, secretPatterns } from "./secret-patterns.ts";
import { type Reading, readingsOf, SecretSearch } from "./secret-search.ts";

/** What stands in place of a secret. */
export const redactedText = "[redacted]";

export interface RedactorOptions {
  /** Texts that must not be shown, each of at least 4 characters. Also found escaped as in JSON or YAML, to any depth, and as part of a URL. */
  readonly secrets?: readonly string[] | undefined;
  /**
   * Shapes of secrets, besides the built-in ones. The whole match is redacted, or its group `secret` if it has one.
   * They run over texts that others wrote: give patterns that cannot backtrack for long.
   */
  readonly patterns?: readonly RegExp[] | undefined;
  /**
   * Its values of at least 8 characters are secrets where the variable's name says so: KEY, TOKEN, SECRET, PASSWORD,
   * PASSPHRASE, CREDENTIAL. Default `process.env`, read once; `{}` for none.
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Whether the built-in shapes are looked for. Default true; false where a text that only looks like a secret must stay. */
  readonly shapes?: boolean | undefined;
}

/** Takes secrets out of what is about to be shown. Redacting twice changes nothing more. */
export interface Redactor {
  /** The text without secrets; the same string when it has none. */
  text(text: string): string;
  /**
   * A copy without secrets, in keys and values, however deep; what stands under a name such as `password` is redacted
   * whole. Errors become `{ name, message, cause? }`; what is nested deeper than 200 becomes a note.
   */
  value(value: unknown): unknown;
  /** The message of what was thrown, without secrets. */
  message(thrown: unknown): string;
}

const shortestSecret = 4;
const shortestVariable = 8;
const secretVariable = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL/i;

/**
 * Makes a redactor. Known secrets are found wherever they stand; shapes (bearer tokens, `sk-` and other provider keys,
 * JWTs, passwords in URLs, `password=`, authorization headers, private keys) are found in time linear in the text.
 * @throws InvalidInputError for a secret of less than 4 characters: ordinary words would vanish with it.
 */
export function createRedactor(options: RedactorOptions = {}): Redactor {
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

interface Place {
  readonly from: number;
  readonly to: number;
}

function searching(pattern: RegExp): RegExp {
  const flags = new Set(pattern.flags.replace("y", "")).add("g");
  if (pattern.source.includes("(?<secret>")) flags.add("d");
  return new RegExp(pattern.source, [...flags].join(""));
}

function findShapes({ text, placeOf }: Reading, shapes: readonly RegExp[]): Place[] {
  const places: Place[] = [];
  for (const shape of shapes) {
    for (const match of text.matchAll(shape)) {
      const [from, to] = match.indices?.groups?.secret ?? [match.index, match.index + match[0].length];
      if (to > from) places.push({ from: placeOf(from), to: placeOf(to) });
    }
  }
  return places;
}

function merged(places: Place[]): Place[] {
  const sorted = places.toSorted((one, other) => one.from - other.from);
  const apart: Place[] = [];
  for (const place of sorted) {
    const last = apart.at(-1);
    if (last && place.from <= last.to) apart[apart.length - 1] = { from: last.from, to: Math.max(last.to, place.to) };
    else apart.push(place);
  }
  return apart;
}
