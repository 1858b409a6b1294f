import { createRedactor, flagRule, functionRule, optionsOf, type Redactor } from "../base/index.ts";
import { EventNarrator } from "./event-narrator.ts";
import { assertRuntime, type EventFeed, listen, redactorRule } from "./listen.ts";

export interface LogOptions {
  /** Default: `createRedactor()`, which knows the secrets of the environment. */
  readonly redactor?: Redactor | undefined;
  /** Shows prompts, answers, questions and progress too, cut to a line. Default false. */
  readonly content?: boolean | undefined;
}

export interface TerminalLogOptions extends LogOptions {
  /** Gets each line with its line break. Default: standard error, so that the program's own output stays its own. */
  readonly write?: ((line: string) => void) | undefined;
  /** Shows nothing at all; traces and files are not changed by it. Default false. */
  readonly quiet?: boolean | undefined;
}

export const logRules = { redactor: redactorRule, content: flagRule } as const;

/** Shows what all live agents of a runtime do, a line for each event that says something new (row H8). */
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
