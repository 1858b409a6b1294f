import { TroupeError } from "../errors/index.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { oneLine } from "./view/text-width.ts";

export interface Failure {
  /** One line, without a line break at its end; the stack too where that was asked for. */
  readonly text: string;
  readonly exitCode: ExitCode;
}

const hints: Readonly<Record<string, string>> = {
  store_unavailable: "another process holds the file; try again in a moment",
  already_owned: "another process runs this agent; wait for it, or stop it with `abort`",
  corrupt_record: "the file is left as it was; restore a copy, or give another --store",
};

/** The caller asked for something that cannot be: the command line is what has to change. */
const usageCodes: readonly string[] = ["invalid_input", "not_found", "request_conflict"];

/** What a person is told of an error: its code, what was wrong, and what to do where that is known. */
export function failureOf(error: unknown, environment: Readonly<Record<string, string | undefined>>): Failure {
  const isDebugged = environment["TROUPE_DEBUG"] === "1";
  const stack = isDebugged && error instanceof Error && error.stack !== undefined ? `\n${error.stack}` : "";
  return { text: lineOf(error) + stack, exitCode: exitCodeOfError(error) };
}

function lineOf(error: unknown): string {
  const message = oneLine(error instanceof Error ? error.message : String(error));
  if (error instanceof TroupeError) {
    const hint = hints[error.code];
    return `troupe: ${error.code}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
  }
  return `troupe: unexpected error: ${message} (set TROUPE_DEBUG=1 for the stack)`;
}

function exitCodeOfError(error: unknown): ExitCode {
  if (!(error instanceof TroupeError)) return exitCodes.failure;
  return usageCodes.includes(error.code) ? exitCodes.usage : exitCodes.failure;
}
