import { InvalidArgumentError, type Command, Option } from "commander";
import { type JsonObject, jsonObjectSchema } from "../state/index.ts";

/** Where jobs are kept when nobody says otherwise, below the working directory. */
export const defaultStorePath = "./.troupe/ask.db";

export const inspectHelp = "serve the state charts of the live agents on this machine";

/** How many a page of a list has where nobody says otherwise, and at most. */
export const pageSize = { usual: 50, most: 1_000 } as const;

/** Which store a command is about: a file, or Redis. */
export function addStoreOptions(command: Command): Command {
  const store = new Option("--store <path>", `SQLite file in which jobs are kept (default: ${defaultStorePath})`);
  return addRedisOptions(command.addOption(store.argParser(nonEmpty)), "in which jobs are kept, in place of a file");
}

/** Where processes meet. */
export function addRedisOptions(command: Command, what: string): Command {
  return command
    .addOption(new Option("--redis <url>", `Redis ${what} (default: TROUPE_REDIS)`).argParser(nonEmpty))
    .addOption(
      new Option("--prefix <name>", "what all keys in Redis begin with (default: troupe:)").argParser(nonEmpty),
    );
}

/** Where a page of a list begins, and how long it is. */
export function addPageOptions(command: Command, what: string): Command {
  return command
    .option("--limit <number>", `at most so many ${what} (default: ${pageSize.usual})`, wholeNumber(1, pageSize.most))
    .option("--after <cursor>", "continue after this place, which the page before has named", nonEmpty);
}

export function jsonOption(): Option {
  return new Option("--json", "print every event as a line of JSON").conflicts("quiet");
}

export function quietOption(): Option {
  return new Option("--quiet", "print the answer alone");
}

export function agentsOption(
  what: string = "agent file that exports the definition, where the store does not name one",
): Option {
  return new Option("--agents <file>", what).argParser(nonEmpty);
}

export function onOption(): Option {
  return new Option(
    "--on <place>",
    "who runs the turns: workers, or here, this process (default: workers of that Redis where there are some, else here)",
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
    throw noJsonObject("this is no JSON");
  }
  const parsed = jsonObjectSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw noJsonObject("this is something else");
}

function noJsonObject(why: string): InvalidArgumentError {
  return new InvalidArgumentError(`It takes a JSON object, for instance '{"amount":5}'; ${why}.`);
}
