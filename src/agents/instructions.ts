import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describeValue, optionsOf, reading, ruleOf, wordsOfThrown } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Plugin } from "../hooks/index.ts";
import type { AgentDefinition, AgentOptions } from "./definition.ts";

/** More than the context window of any model. */
const MOST_BYTES = 1_000_000;

const right = "a text, { file } with the path of a text file, or a function that returns a text";

/**
 * Normalizes instructions. A file is checked immediately, so that a missing file is reported at startup, and again on each read
 * because it may have changed. Throws `InvalidInputError`.
 */
export function instructionsOf(agent: string, given: AgentOptions["instructions"]): AgentDefinition["instructions"] {
  if (given === undefined || typeof given === "string" || typeof given === "function") return given ?? "";
  const of = `agent "${agent}": instructions`;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidInputError(`${of} are ${describeValue(given)}; expected ${right}`);
  }
  if (reading(of, () => !("file" in given) && Object.keys(given).length === 0)) {
    throw new InvalidInputError(`${of} are an empty object; expected ${right}`);
  }
  const { file } = optionsOf<{ readonly file: string | URL }>(given, of, {
    rules: { file: ruleOf("the path of a text file", (value) => isText(value) || value instanceof URL) },
    needed: ["file"],
    instead: { path: "file", text: "the text itself", url: "file" },
  });
  const path = pathOf(file, of);
  assertFile(path, of);
  readText(path, of, () => readFileSync(path));
  return async () => {
    assertFile(path, of);
    const { readFile } = await import("node:fs/promises");
    const bytes = await readFile(path).catch((error: unknown) => {
      throw unreadable(path, of, error);
    });
    return readText(path, of, () => bytes);
  };
}

/** The agent's own instructions, followed by those of its plugins in their order. */
export function withPlugins(
  own: AgentDefinition["instructions"],
  plugins: readonly Pick<Plugin, "instructions">[],
): AgentDefinition["instructions"] {
  const added = plugins.flatMap(({ instructions = "" }) => (instructions === "" ? [] : [instructions]));
  if (added.length === 0) return own;
  const joined = (text: unknown): string => {
    // The caller reports a result that is not a text.
    if (typeof text !== "string") return text as string;
    return [text, ...added].filter((part) => part.trim() !== "").join("\n\n");
  };
  return typeof own === "string" ? joined(own) : async (context) => joined(await own(context));
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.trim() !== "" && !value.includes("\0");
}

/** A relative path is resolved against the working directory at definition time. */
function pathOf(file: string | URL, of: string): string {
  if (typeof file === "string") return resolve(file);
  try {
    return fileURLToPath(file);
  } catch (error) {
    throw new InvalidInputError(`${of}: "${String(file)}" is not the file: URL of a text file`, { cause: error });
  }
}

function assertFile(path: string, of: string): void {
  const stats = statOf(path, of);
  if (!stats) throw new InvalidInputError(`${of}: there is no file "${path}"`, { details: { path } });
  if (!stats.isFile()) {
    const what = stats.isDirectory() ? "a folder" : "not a regular file";
    throw new InvalidInputError(`${of}: "${path}" is ${what}; expected the path of a text file`, { details: { path } });
  }
  if (stats.size <= MOST_BYTES) return;
  throw new InvalidInputError(`${of}: "${path}" has ${stats.size} bytes; up to ${MOST_BYTES} are read`, {
    details: { path },
  });
}

function statOf(path: string, of: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unreadable(path, of, error);
  }
}

function readText(path: string, of: string, read: () => Uint8Array): string {
  let bytes: Uint8Array;
  try {
    bytes = read();
  } catch (error) {
    throw unreadable(path, of, error);
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // The error is thrown below.
  }
  throw new InvalidInputError(`${of}: "${path}" is not valid UTF-8 text`, { details: { path } });
}

function unreadable(path: string, of: string, error: unknown): InvalidInputError {
  return new InvalidInputError(`${of}: "${path}" cannot be read: ${wordsOfThrown(error)}`, {
    details: { path },
    cause: error,
  });
}
