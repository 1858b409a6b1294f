import { join } from "node:path";
import { createRedactor, flagRule, functionRule, optionsOf, type Redactor, reading, textRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { EventNarrator } from "./event-narrator.ts";
import { assertRuntime, type EventFeed, listen, redactorRule, type Telemetry } from "./listen.ts";
import { FileAppender, fileNameOf } from "./log-files.ts";

/** One file for all agents, or a folder with a file `<root agent's id>.log` for each tree (see `fileNameOf`). */
export type TextLogLocation = string | { readonly directory: string };

/**
 * Appends the events of all live agents of a runtime to plain-text files: the time in ISO 8601, the agent's path, the
 * event. Creates folders that only the process's owner may read. If the disk fails, it warns once with
 * `process.emitWarning`; turns are not affected.
 * @throws InvalidInputError without a location.
 */
export function textLog(runtime: EventFeed, place: TextLogLocation, options?: LogOptions): Telemetry {
  assertRuntime(runtime, "textLog()");
  const checked = optionsOf<LogOptions>(options, "textLog()", { rules: logRules });
  const { redactor = createRedactor(), content = false } = checked;
  const pathOf = pathsIn(place);
  const appender = new FileAppender({ refusesLinks: typeof place !== "string" });
  const narrator = new EventNarrator(redactor, content);
  const stop = listen(runtime, "the text log", (event) => {
    const told = narrator.tell(event);
    if (told) appender.append(pathOf(told.rootAgentId), `${new Date(told.at).toISOString()}  ${told.text}\n`);
  });
  return {
    flush: () => appender.flush(),
    close: () => {
      stop();
      return appender.flush();
    },
  };
}

function pathsIn(place: TextLogLocation): (rootAgentId: string) => string {
  if (typeof place === "string" && place !== "") return () => place;
  const directory = reading("textLog()", () => folderOf(place));
  if (directory !== undefined) return (rootAgentId) => join(directory, `${fileNameOf(rootAgentId)}.log`);
  throw new InvalidInputError('a text log needs a location: a path, or { directory: "logs" }');
}

function folderOf(place: unknown): string | undefined {
  if (typeof place !== "object" || place === null) return undefined;
  const rules = { directory: textRule };
  const { directory } = optionsOf<{ readonly directory: string }>(place, "textLog(): its location", { rules });
  return directory === "" ? undefined : directory;
}

/** Options of all logs. */
export interface LogOptions {
  /** Removes secrets. Default: `createRedactor()`, which removes the environment's secrets. */
  readonly redactor?: Redactor | undefined;
  /** Includes prompts, answers, questions and progress, cut to one line. Default false. */
  readonly content?: boolean | undefined;
}

/** Options of `terminalLog()`. */
export interface TerminalLogOptions extends LogOptions {
  /** Receives each line with its line break. Default: standard error, which keeps standard output for the program. */
  readonly write?: ((line: string) => void) | undefined;
  /** Writes nothing; traces and files are unaffected. Default false. */
  readonly quiet?: boolean | undefined;
}

const logRules = { redactor: redactorRule, content: flagRule } as const;

/** Writes the notable events of all live agents of a runtime, one per line. */
export function terminalLog(runtime: EventFeed, given?: TerminalLogOptions): { close(): void } {
  assertRuntime(runtime, "terminalLog()");
  const options = optionsOf<TerminalLogOptions>(given, "terminalLog()", {
    rules: { ...logRules, write: functionRule, quiet: flagRule },
  });
  const { write = writeToStandardError, quiet = false, redactor = createRedactor(), content = false } = options;
  if (quiet) return { close: () => undefined };
  const narrator = new EventNarrator(redactor, content);
  const stop = listen(runtime, "the terminal log", (event) => {
    const told = narrator.tell(event);
    if (told) write(`${new Date(told.at).toISOString().slice(11, 23)}  ${told.text}\n`);
  });
  return { close: stop };
}

function writeToStandardError(line: string): void {
  process.stderr.write(line);
}
