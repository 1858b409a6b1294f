import { TroupeClientError } from "./client-error.ts";

/* Checks of callers' inputs. Each throws `TroupeClientError` (`invalid_input`) before anything is sent. */

export function invalidInput(message: string): TroupeClientError {
  return new TroupeClientError("invalid_input", message);
}

/** Throws unless the value is a non-empty text of at most `longest` characters. */
export function assertText(what: string, value: unknown, longest = 1_000): asserts value is string {
  if (typeof value === "string" && value !== "" && value.length <= longest) return;
  throw invalidInput(`${what} is ${shown(value)}; pass a text of 1 to ${longest} characters`);
}

export function assertWhole(what: string, value: unknown, [least, most]: readonly [number, number]): void {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw invalidInput(`${what} is ${shown(value)}; pass a whole number from ${least} to ${most}`);
}

export function assertOneOf(what: string, value: unknown, known: readonly string[]): void {
  if (typeof value === "string" && known.includes(value)) return;
  throw invalidInput(`${what} is ${shown(value)}; pass one of ${known.join(", ")}`);
}

export function assertObject(what: string, value: unknown): asserts value is object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return;
  throw invalidInput(`${what} is ${shown(value)}; pass an object`);
}

/** Refuses unknown members, such as misspelt ones, which the server would detect only later or not at all. */
export function assertKnown(what: string, value: object, known: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw invalidInput(`${what} has no "${unknown}"; it accepts ${known.join(", ")}`);
}

const settingNames = ["temperature", "maxOutputTokens", "stopSequences", "reasoningEffort", "toolChoice"];

/** Throws unless the value is an object of settings. The server checks their values. */
export function assertSettings(value: unknown): void {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return assertKnown("settings", value, settingNames);
  }
  throw invalidInput(`settings is ${shown(value)}; pass an object such as { temperature: 0 }`);
}

const stubNames = ["tool", "agent", "arguments", "match", "output", "error", "times"];

/** Throws unless the value is a list of stubs. The server checks them against its tools. */
export function assertStubs(value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    throw invalidInput(`stubs is ${shown(value)}; pass a list such as [{ tool: "look", output: {} }]`);
  }
  for (const [index, stub] of value.entries()) {
    assertObject(`stubs[${index}]`, stub);
    assertKnown(`stubs[${index}]`, stub, stubNames);
  }
}

/** The message does not show the secret. */
export function assertStubsSecret(value: unknown): void {
  if (typeof value === "string" && /^[\x21-\x7e]{16,1000}$/.test(value)) return;
  throw invalidInput("invalid stubsSecret; pass a text of at least 16 visible ASCII characters");
}

export function assertIdempotencyKey(value: unknown): void {
  if (typeof value === "string" && /^[\x21-\x7e]{1,255}$/.test(value)) return;
  throw invalidInput(`idempotencyKey is ${shown(value)}; pass 1 to 255 visible ASCII characters`);
}

/** Throws unless the value is a text, a list of parts, or null. */
export function assertInput(value: unknown): void {
  if (typeof value === "string" || value === null) return;
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return;
  throw invalidInput(
    `input is ${shown(value)}; pass a text, null, or a list of { type: "text", text }, { type: "image", url } and { type: "file", mediaType, url }`,
  );
}

function isPart(part: unknown): boolean {
  if (typeof part !== "object" || part === null || !("type" in part)) return false;
  if (part.type === "text") return "text" in part && typeof part.text === "string";
  if (part.type === "file") return "mediaType" in part && typeof part.mediaType === "string";
  return part.type === "image" && "url" in part && typeof part.url === "string";
}

/** A value in short form for an error message; objects only by their kind. */
function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}
