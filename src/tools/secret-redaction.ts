import { maxJsonDepth, readableThrown, wordsOfThrown } from "../base/index.ts";
import type { Redact } from "./tool.ts";

/** Shorter values stand in any text by chance: to take them out would tell more than it hides. */
const minRedactedLength = 4;

/** The `redact` of a tool without secrets. */
export const nothingToRedact: Redact = (text) => text;

interface Needle {
  readonly text: string;
  readonly marker: string;
}

/**
 * Replaces each of the values by `[secret:<name>]`, also where they are escaped as in JSON or in a URL. One pass over
 * the text, linear in its length: a marker is never searched again. Values of fewer than 4 characters are left alone.
 */
export function redactorOf(secrets: Readonly<Record<string, string>>): Redact {
  const needles = Object.entries(secrets).flatMap(([name, value]) =>
    formsOf(value).map((text) => ({ text, marker: `[secret:${name}]` })),
  );
  // Of two that begin at one place the longer one is taken, or its rest would be shown.
  needles.sort((one, other) => other.text.length - one.text.length);
  return needles.length === 0 ? nothingToRedact : (text) => replaceAll(text, needles);
}

/** The texts in which a value may be met again. */
function formsOf(value: string): readonly string[] {
  const plain = new Set([value, value.trim()]);
  const forms = new Set(plain);
  for (const text of plain) {
    forms.add(JSON.stringify(text).slice(1, -1));
    // A lone surrogate has no form in a URL.
    if (text.isWellFormed()) forms.add(encodeURIComponent(text));
  }
  return [...forms].filter((text) => text.length >= minRedactedLength);
}

function replaceAll(text: string, needles: readonly Needle[]): string {
  const parts: string[] = [];
  let rest = needles.map((needle) => ({ needle, at: text.indexOf(needle.text) })).filter(({ at }) => at >= 0);
  let done = 0;
  while (rest.length > 0) {
    const found = rest.reduce((first, other) => (other.at < first.at ? other : first));
    parts.push(text.slice(done, found.at), found.needle.marker);
    done = found.at + found.needle.text.length;
    rest = rest
      .map((one) => (one.at >= done ? one : { ...one, at: text.indexOf(one.needle.text, done) }))
      .filter(({ at }) => at >= 0);
  }
  return parts.length === 0 ? text : parts.join("") + text.slice(done);
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
