import {
  abortable,
  copyOfJson,
  maxJsonDepth,
  readableThrown,
  readingsOf,
  type SecretSpan,
  SecretSearch,
  wordsOfThrown,
} from "../base/index.ts";
import { ToolNotStartedError } from "../errors/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import type { Refuse } from "./definition-checks.ts";
import type { RunContext } from "./run-context.ts";
import type { Redact, ResolvedArguments } from "./tool.ts";

/** Returns a secret's value for one run, for instance from `run.auth` or a vault. Called again for every attempt. */
export type SecretResolver = (run: RunContext) => string | Promise<string>;

export type SecretResolvers = Readonly<Record<string, SecretResolver>>;

const namePattern = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/;
const unsafeNames: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/**
 * A tool's secrets; `undefined` if it has none. Throws the error from `refuse` for a secret that has no resolver or is also a parameter.
 */
export function checkSecrets(secrets: unknown, jsonSchema: JsonObject, refuse: Refuse): SecretResolvers | undefined {
  if (secrets === undefined) return undefined;
  if (typeof secrets !== "object" || secrets === null || Array.isArray(secrets)) {
    throw refuse("secrets must be an object of functions, such as { apiKey: (run) => … }.");
  }
  for (const [name, resolver] of Object.entries(secrets)) {
    if (!namePattern.test(name) || unsafeNames.has(name)) {
      throw refuse(
        `secrets: a secret cannot be named ${JSON.stringify(name.slice(0, 80))}: use letters, digits and "_", not a digit first.`,
      );
    }
    if (isParameter(jsonSchema, name)) {
      throw refuse(
        `"${name}" is in parameters and in secrets; a model must not set a secret: remove it from parameters.`,
      );
    }
    if (typeof resolver === "function") continue;
    throw refuse(`secrets.${name} must be a function that returns a text, not ${typeof resolver}.`);
  }
  return Object.keys(secrets).length === 0 ? undefined : ({ ...secrets } as SecretResolvers);
}

function isParameter({ properties, required }: JsonObject, name: string): boolean {
  const isProperty = typeof properties === "object" && properties !== null && Object.hasOwn(properties, name);
  return isProperty || (Array.isArray(required) && required.includes(name));
}

/** Converts the journalled arguments to those for `execute`; see `Tool.resolveArguments`. */
export async function resolveArguments(
  json: Json,
  run: RunContext,
  tool: { readonly name: string; readonly secrets: SecretResolvers },
): Promise<ResolvedArguments> {
  const args = copyOfJson(json);
  const values = await Promise.all(
    Object.entries(tool.secrets).map(
      async ([name, resolver]) => [name, await resolveSecret(tool.name, name, resolver, run)] as const,
    ),
  );
  // Not enumerable: logging, copying and JSON leave them out, like credentials.
  const properties = values.map(([name, value]) => [name, { value, enumerable: false }] as const);
  return {
    args: Object.defineProperties(Object(args), Object.fromEntries(properties)),
    redact: redactorOf(values),
  };
}

async function resolveSecret(
  toolName: string,
  name: string,
  resolver: SecretResolver,
  run: RunContext,
): Promise<string> {
  const failed = (why: string) =>
    new ToolNotStartedError(`The tool ${toolName} was not run: its secret "${name}" ${why}.`, {
      details: { tool: toolName, secret: name },
    });
  const { signal } = run;
  let value: unknown;
  try {
    value = await abortable(Promise.resolve(resolver(run)), signal);
  } catch (error) {
    // The error and its text are left out, because both may contain the value.
    throw failed(signal.aborted ? "was not resolved before the call ended" : `could not be resolved${kindOf(error)}`);
  }
  if (typeof value !== "string")
    throw failed(`could not be resolved: its resolver returned ${typeOf(value)}, not a text`);
  if (value.trim() === "") throw failed("could not be resolved: its resolver returned an empty text");
  return value;
}

function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  return /^[A-Z][A-Za-z]{0,63}$/.test(error.name) ? ` (${error.name})` : "";
}

function typeOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

/** Why the model's arguments are refused if they contain a secret, else `undefined`. */
export function secretGivenIn(args: object, secrets: SecretResolvers): string | undefined {
  const given = Object.keys(secrets).find((name) => Object.hasOwn(args, name));
  if (given === undefined) return undefined;
  return `"${given}" is not yours to give: it is filled in when the tool runs. Leave it out.`;
}

/** Why secrets cannot be added to the parsed arguments; `undefined` if they can. */
export function secretClashIn(json: Json, secrets: SecretResolvers): string | undefined {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    return "the tool's own transform returned something other than an object, so its secrets cannot be added.";
  }
  const clash = Object.keys(secrets).find((name) => Object.hasOwn(json, name));
  return clash === undefined ? undefined : `the tool's own transform set "${clash}", which is one of its secrets.`;
}

/** Shorter values occur in texts by chance: removing them would reveal more than it hides. */
const minRedactedLength = 4;

/** The `redact` function of a tool without secrets. */
export const nothingToRedact: Redact = (text) => text;

/**
 * Replaces each of the values by `[secret:<name>]`, even where they are escaped as in JSON, YAML or URLs, to any depth. Each decoding of
 * the text is searched once, so markers are never searched. Values of fewer than 4 characters are not replaced.
 */
export function redactorOf(secrets: readonly (readonly [name: string, value: string])[]): Redact {
  const known = secrets.flatMap(([name, value]) =>
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

/** Of two secrets that begin at the same position, the longer one is replaced; otherwise its rest would be visible. */
function marked(text: string, places: readonly SecretSpan[], markerOf: (secret: number) => string): string {
  if (places.length === 0) return text;
  let shown = "";
  let done = 0;
  for (const { from, to, secret } of places.toSorted((one, other) => one.from - other.from || other.to - one.to)) {
    if (to <= done) continue;
    // If a secret overlaps the previous one, its marker follows that one's end.
    shown += text.slice(done, Math.max(done, from)) + markerOf(secret);
    done = to;
  }
  return shown + text.slice(done);
}

/** Redacts all strings and keys within a value. */
export function redactDeep<Value>(value: Value, redact: Redact): Value {
  return redact === nothingToRedact ? value : (redactAt(value, redact, 0) as Value);
}

function redactAt(value: unknown, redact: Redact, depth: number): unknown {
  if (typeof value === "string") return redact(value);
  if (typeof value !== "object" || value === null) return value;
  // Deeper values than any accepted JSON are dropped, because they might contain the secret.
  if (depth > maxJsonDepth) return null;
  if (Array.isArray(value)) return value.map((member: unknown) => redactAt(member, redact, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [redact(key), redactAt(member, redact, depth + 1)]),
  );
}

/**
 * A thrown value without secrets: the same error, changed in place so that it keeps its class, or a copy of its name and message if it
 * cannot be changed. Other values become texts.
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
    // The error is frozen.
    return Object.assign(new Error(redact(message)), { name: redact(name) });
  }
}
