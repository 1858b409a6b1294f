import { join } from "node:path";
import { createRedactor, flagRule, functionRule, optionsOf, type Redactor, reading, textRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { EventNarrator } from "./event-narrator.ts";
import { assertRuntime, type EventFeed, listen, redactorRule, type Telemetry } from "./listen.ts";
import { FileAppender, fileNameOf } from "./log-files.ts";

/** One file for all agents, or a folder with a file `<root agent's id>.log` for each tree (see `fileNameOf`). */
export type TextLogLocation = string | { readonly directory: string };

/**
 * Appends what all live agents of a runtime do to plain-text files: the time in ISO 8601, the agent's path, what happened.
 * Folders are made, only the owner of the process may read them. If the disk fails, it warns once by
 * `process.emitWarning`; no turn ends because of it.
 * @throws InvalidInputError when no place is given.
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
  throw new InvalidInputError('a text log needs a place: a path, or { directory: "logs" }');
}

function folderOf(place: unknown): string | undefined {
  if (typeof place !== "object" || place === null) return undefined;
  const rules = { directory: textRule };
  const { directory } = optionsOf<{ readonly directory: string }>(place, "textLog(): its place", { rules });
  return directory === "" ? undefined : directory;
}

/** What every log takes. */
export interface LogOptions {
  /** Default: `createRedactor()`, which knows the secrets of the environment. */
  readonly redactor?: Redactor | undefined;
  /** Shows prompts, answers, questions and progress too, cut to a line. Default false. */
  readonly content?: boolean | undefined;
}

/** What `terminalLog()` takes beside the runtime. */
export interface TerminalLogOptions extends LogOptions {
  /** Gets each line with its line break. Default: standard error, which keeps the output of the program apart. */
  readonly write?: ((line: string) => void) | undefined;
  /** Shows nothing; does not affect traces and files. Default false. */
  readonly quiet?: boolean | undefined;
}

const logRules = { redactor: redactorRule, content: flagRule } as const;

/** Shows what all live agents of a runtime do, a line for each notable event. */
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
