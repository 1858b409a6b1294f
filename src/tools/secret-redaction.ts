import {
  maxJsonDepth,
  readableThrown,
  readingsOf,
  type SecretPlace,
  SecretSearch,
  wordsOfThrown,
} from "../base/index.ts";
import type { Redact } from "./tool.ts";

/** Shorter values stand in any text by chance: to take them out would tell more than it hides. */
const minRedactedLength = 4;

/** The `redact` of a tool without secrets. */
export const nothingToRedact: Redact = (text) => text;

/**
 * Replaces each of the values by `[secret:<name>]`, also where they are escaped as in JSON, YAML or URLs, to any depth.
 * One pass over each reading of the text: a marker is never searched again. Values of fewer than 4 characters are left alone.
 */
export function redactorOf(secrets: Readonly<Record<string, string>>): Redact {
  const known = Object.entries(secrets).flatMap(([name, value]) =>
    [...new Set([value, value.trim()])]
      .filter((text) => text.length >= minRedactedLength)
      .map((text) => ({ text, marker: `[secret:${name}]` })),
  );
  if (known.length === 0) return nothingToRedact;
  const search = new SecretSearch(
    known.map(({ text }) => text),
    minRedactedLength,
  );
  return (text) => marked(text, search.placesIn(readingsOf(text)), (secret) => known[secret]?.marker ?? "");
}

/** Of two that begin at one place the longer one is taken, or its rest would be shown. */
function marked(text: string, places: readonly SecretPlace[], markerOf: (secret: number) => string): string {
  if (places.length === 0) return text;
  let shown = "";
  let done = 0;
  for (const { from, to, secret } of places.toSorted((one, other) => one.from - other.from || other.to - one.to)) {
    if (to <= done) continue;
    // What overlaps the one before is marked from where that one ends.
    shown += text.slice(done, Math.max(done, from)) + markerOf(secret);
    done = to;
  }
  return shown + text.slice(done);
}

/** The same for all strings and keys within a value. */
export function redactDeep<Value>(value: Value, redact: Redact): Value {
  return redact === nothingToRedact ? value : (redactAt(value, redact, 0) as Value);
}

function redactAt(value: unknown, redact: Redact, depth: number): unknown {
  if (typeof value === "string") return redact(value);
  if (typeof value !== "object" || value === null) return value;
  // What is deeper than any JSON we take is not shown at all: it could hold the secret.
  if (depth > maxJsonDepth) return null;
  if (Array.isArray(value)) return value.map((member: unknown) => redactAt(member, redact, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [redact(key), redactAt(member, redact, depth + 1)]),
  );
}

/**
 * What a tool threw, without its secrets: the same error where it can be changed, so that its class still tells what to
 * do with it, else a copy of its name and message. What is no error becomes its text.
 */
export function redactError(thrown: unknown, redact: Redact): unknown {
  const error = readableThrown(thrown);
  if (redact === nothingToRedact) return error;
  if (!(error instanceof Error)) return redact(wordsOfThrown(error));
  const { name, message, stack } = error;
  try {
    const fields = { name: redact(name), message: redact(message), ...(stack ? { stack: redact(stack) } : {}) };
    for (const [field, value] of Object.entries(fields)) {
      Object.defineProperty(error, field, { value, writable: true, configurable: true, enumerable: false });
    }
    return error;
  } catch {
    // It is frozen.
    return Object.assign(new Error(redact(message)), { name: redact(name) });
  }
}
