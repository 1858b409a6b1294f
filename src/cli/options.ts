import { InvalidArgumentError, type Command, Option } from "commander";
import type { JsonObject } from "../state/index.ts";

/** The default store, below the working directory. */
export const defaultStorePath = "./.troupe/ask.db";

/** Default port of `serve`. */
export const usualPort = 8_080;

/** `--inspect`, or `--inspect=9000` for a port. */
export function inspectOption(): Option {
  const help = "show the running agents on a page on this machine; --inspect=9000 sets the port";
  return new Option("--inspect [port]", help).argParser(wholeNumber(0, 65_535));
}

/** `--stately`, which implies `--inspect`. */
export function statelyOption(): Option {
  const help =
    "also show the state machines in Stately's inspector, which is loaded from https://stately.ai; implies --inspect";
  return new Option("--stately", help).implies({ inspect: true });
}

/** Default and maximum length of a page of a list. */
export const pageSize = { usual: 50, most: 1_000 } as const;

/** The options that name the store: a file, Postgres or Redis. */
export function addStoreOptions(command: Command): Command {
  const store = new Option(
    "--store <path>",
    `SQLite file with the jobs, or postgres://… (default: ${defaultStorePath})`,
  );
  return addRedisOptions(command.addOption(store.argParser(nonEmpty)), "with the jobs, instead of a file");
}

/** The options that name a Redis. */
export function addRedisOptions(command: Command, what: string): Command {
  return command
    .addOption(new Option("--redis <url>", `Redis ${what} (default: TROUPE_REDIS)`).argParser(nonEmpty))
    .addOption(new Option("--prefix <name>", "prefix of all keys in Redis (default: troupe:)").argParser(nonEmpty));
}

/** The options for the start and the length of a page. */
export function addPageOptions(command: Command, what: string): Command {
  return command
    .option(
      "--limit <number>",
      `maximum number of ${what} on a page (default: ${pageSize.usual})`,
      wholeNumber(1, pageSize.most),
    )
    .option("--after <cursor>", "continue after this cursor of the previous page", nonEmpty);
}

export function jsonOption(): Option {
  return new Option("--json", "print every event as a line of JSON").conflicts("quiet");
}

export function quietOption(): Option {
  return new Option("--quiet", "print only the answer");
}

export function agentsOption(
  what: string = "agent file that exports the definition, if the store does not name it",
): Option {
  return new Option("--agents <file>", what).argParser(nonEmpty);
}

/** `--mcp`, for commands with agents of a file. */
export function mcpOption(): Option {
  return new Option("--mcp <file>", "add the tools of the MCP servers in this file, such as mcp.json").argParser(
    nonEmpty,
  );
}

export function onOption(): Option {
  return new Option(
    "--on <place>",
    "where turns run: on workers, or here in this process (default: on workers of that Redis if there are any, else here)",
  ).choices(["workers", "here"]);
}

/** Parses the head of an audit. Throws commander's `InvalidArgumentError`. */
export function auditHead(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  throw new InvalidArgumentError("a head of `audit`, with 64 hexadecimal digits, is needed.");
}

/** Parses a whole number within bounds. Throws commander's `InvalidArgumentError`. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= from && value <= to) return value;
    throw new InvalidArgumentError(`Expected a whole number from ${from} to ${to}.`);
  };
}

/** Parses a port. Throws commander's `InvalidArgumentError`. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value <= 65_535) return value;
  throw new InvalidArgumentError("Expected a port from 1 to 65535, or 0 for any free port.");
}

/** Parses text that is not only white space. Throws commander's `InvalidArgumentError`. */
export function nonEmpty(text: string): string {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It must not be empty.");
}

/** Collects the values of an option that may be repeated. Throws commander's `InvalidArgumentError`. */
export function repeated(text: string, known: readonly string[] | undefined): readonly string[] {
  return [...(known ?? []), nonEmpty(text)];
}

/** Parses a JSON object. Throws commander's `InvalidArgumentError`. */
export function jsonObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw noJsonObject("this is not valid JSON");
  }
  if (isJsonObject(value)) return value;
  throw noJsonObject("this is JSON of another type");
}

/** `value`: what `JSON.parse` gave. */
function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function noJsonObject(why: string): InvalidArgumentError {
  return new InvalidArgumentError(`Expected a JSON object, for instance '{"amount":5}'; ${why}.`);
}
