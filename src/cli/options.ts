import { InvalidArgumentError, type Command, Option } from "commander";
import type { JsonObject } from "../state/index.ts";

/** The default store, below the working directory. */
export const defaultStorePath = "./.troupe/ask.db";

/** The port of `serve` where none is named. */
export const usualPort = 8_080;

/** `--inspect`, or `--inspect=9000` for a port. */
export function inspectOption(): Option {
  const help = "show the agents at work on a page on this machine; --inspect=9000 for that port";
  return new Option("--inspect [port]", help).argParser(wholeNumber(0, 65_535));
}

/** `--stately`, which asks for the page too. */
export function statelyOption(): Option {
  const help =
    "the state machines in Stately's inspector too, which is loaded from https://stately.ai; implies --inspect";
  return new Option("--stately", help).implies({ inspect: true });
}

/** Default and maximum length of a page of a list. */
export const pageSize = { usual: 50, most: 1_000 } as const;

/** The options that name the store: a file, or Redis. */
export function addStoreOptions(command: Command): Command {
  const store = new Option("--store <path>", `SQLite file in which jobs are kept (default: ${defaultStorePath})`);
  return addRedisOptions(command.addOption(store.argParser(nonEmpty)), "in which jobs are kept, in place of a file");
}

/** The options that name a Redis. */
export function addRedisOptions(command: Command, what: string): Command {
  return command
    .addOption(new Option("--redis <url>", `Redis ${what} (default: TROUPE_REDIS)`).argParser(nonEmpty))
    .addOption(new Option("--prefix <name>", "prefix of all keys in Redis (default: troupe:)").argParser(nonEmpty));
}

/** The options for the begin and the length of a page. */
export function addPageOptions(command: Command, what: string): Command {
  return command
    .option("--limit <number>", `most ${what} on a page (default: ${pageSize.usual})`, wholeNumber(1, pageSize.most))
    .option("--after <cursor>", "continue after this cursor, which the page before shows", nonEmpty);
}

export function jsonOption(): Option {
  return new Option("--json", "print every event as a line of JSON").conflicts("quiet");
}

export function quietOption(): Option {
  return new Option("--quiet", "print the answer alone");
}

export function agentsOption(
  what: string = "agent file that exports the definition, if the store does not name it",
): Option {
  return new Option("--agents <file>", what).argParser(nonEmpty);
}

export function onOption(): Option {
  return new Option(
    "--on <place>",
    "where turns run: on workers, or here in this process (default: on workers of that Redis if there are some, else here)",
  ).choices(["workers", "here"]);
}

/** A whole number within bounds, for an option's value. Throws commander's `InvalidArgumentError`. */
export function wholeNumber(from: number, to: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= from && value <= to) return value;
    throw new InvalidArgumentError(`It takes a whole number from ${from} to ${to}.`);
  };
}

/** A port, for an option's value. Throws commander's `InvalidArgumentError`. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value <= 65_535) return value;
  throw new InvalidArgumentError("It takes a port from 1 to 65535, or 0 for any that is free.");
}

/** Text that is not only white space, for an option's value. Throws commander's `InvalidArgumentError`. */
export function nonEmpty(text: string): string {
  if (text.trim() !== "") return text;
  throw new InvalidArgumentError("It must not be empty.");
}

/** A JSON object, for an option's value. Throws commander's `InvalidArgumentError`. */
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
  return new InvalidArgumentError(`It takes a JSON object, for instance '{"amount":5}'; ${why}.`);
}
