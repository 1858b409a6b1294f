import { StoreUnavailableError, TroupeError } from "../errors/index.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { oneLine } from "./view/text-width.ts";

export interface Failure {
  /** One line, without a line break at its end; the stack too where that was asked for. */
  readonly text: string;
  readonly exitCode: ExitCode;
}

const hints: Readonly<Record<string, string>> = {
  already_owned: "another process runs this agent; wait for it, or stop it with `abort`",
  corrupt_record: "nothing was changed; restore a copy, or give another store",
};

/** By what the store has answered; a file tells none of these. */
const waysToRedis: Readonly<Record<string, string>> = {
  NOAUTH: "give the password in the address, best in TROUPE_REDIS",
  WRONGPASS: "give the right password in the address, best in TROUPE_REDIS",
  ECONNREFUSED: "nothing listens there: start Redis, or give another address",
  ENOTFOUND: "there is no such host: give another address",
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
    const hint = error instanceof StoreUnavailableError ? wayOn(error) : hints[error.code];
    return `troupe: ${error.code}: ${message}${hint === undefined ? "" : ` (${hint})`}`;
  }
  return `troupe: unexpected error: ${message} (set TROUPE_DEBUG=1 for the stack)`;
}

function wayOn({ details }: StoreUnavailableError): string | undefined {
  const { path, code } = details;
  if (typeof path === "string") return "another process holds the file; try again in a moment";
  if (typeof code !== "string") return "try again in a moment";
  // Of a certificate the error itself says what to do.
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) return undefined;
  return waysToRedis[code] ?? "try again in a moment; what was committed is kept";
}

function exitCodeOfError(error: unknown): ExitCode {
  if (!(error instanceof TroupeError)) return exitCodes.failure;
  return usageCodes.includes(error.code) ? exitCodes.usage : exitCodes.failure;
}
