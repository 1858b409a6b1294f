import { StoreUnavailableError, TroupeError } from "../errors/index.ts";
import type { StopReason } from "../state/index.ts";
import { oneLine } from "./view/terminal-text.ts";

interface Failure {
  /** The message on one line, without a line break at its end; with TROUPE_DEBUG=1 followed by the stack. */
  readonly text: string;
  readonly exitCode: ExitCode;
}

const hints: Readonly<Record<string, string>> = {
  already_owned: "another process runs this agent; wait for it, or stop it with `abort`",
  policy_refused: "decide as another person with --by NAME",
  corrupt_record: "nothing was changed; restore a copy, or give another store",
};

/** Hints by the error code of Redis or Postgres, or of the connection. */
const waysToServers: Readonly<Record<string, string>> = {
  NOAUTH: "give the password in the address, preferably in TROUPE_REDIS",
  WRONGPASS: "give the right password in the address, preferably in TROUPE_REDIS",
  "28P01": "give the right password in the address, or set PGPASSWORD",
  "3D000": "create the database, or name another one at the end of the address",
  ECONNREFUSED: "nothing listens at this address: start the server, or give another address",
  ENOTFOUND: "there is no such host: give another address",
};

/** Errors that another command line would avoid. */
const usageCodes: readonly string[] = ["invalid_input", "not_found", "request_conflict", "policy_refused"];

/** The message for an error: its code, the problem and, if known, a hint. */
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
  if (code === "SQLITE_BUSY") return "another process has locked the file; try again in a moment";
  // The error's message already contains the hint for a full disk.
  if (code === "SQLITE_FULL") return undefined;
  if (typeof path === "string") return "check the disk and the permissions of the file, then try again";
  if (typeof code !== "string") return "try again in a moment";
  // A certificate error's message already contains the hint.
  if (/CERT|SIGNATURE|ALTNAME/.test(code)) return undefined;
  return waysToServers[code] ?? "try again in a moment; committed work is kept";
}

function exitCodeOfError(error: unknown): ExitCode {
  if (!(error instanceof TroupeError)) return exitCodes.failure;
  return usageCodes.includes(error.code) ? exitCodes.usage : exitCodes.failure;
}

/** `waiting`: the turn is open and waits for a decision or an answer. */
export const exitCodes = { success: 0, failure: 1, usage: 2, budget: 3, waiting: 4, interrupted: 130 } as const;
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

const limitReasons: readonly StopReason[] = ["steps_limit", "token_limit", "cost_limit", "time_limit"];

/** The exit code for the end of a turn: limits, failures and aborts have different codes. */
export function exitCodeOf(end: {
  readonly status: "completed" | "stopped" | "failed";
  readonly stopReason: StopReason;
}): ExitCode {
  if (end.status === "completed") return exitCodes.success;
  if (end.status === "failed") return exitCodes.failure;
  if (end.stopReason === "user_requested") return exitCodes.interrupted;
  if (limitReasons.includes(end.stopReason)) return exitCodes.budget;
  return end.stopReason === "stop_requested" ? exitCodes.success : exitCodes.failure;
}

/** The process's events that `tellWarnings` uses. */
export interface WarningSource {
  listeners(event: "warning"): readonly ((warning: Error) => void)[];
  removeAllListeners(event: "warning"): unknown;
  on(event: "warning", listener: (warning: Error) => void): unknown;
}

/** Minimum time before the same warning is repeated, in milliseconds. */
const silenceMs = 60_000;

/** Experimental features of older Node versions that the commands themselves use: users cannot avoid the warning. */
const usedFeatures = /^(?:SQLite|Type Stripping) is an experimental feature\b/;

/**
 * Prints each warning on one line, and limits repetitions: while a store is unavailable, every agent warns of it.
 * Warnings with a name or code of Node or of a package are left to Node, except those of `usedFeatures`, which are
 * dropped. `now` is a monotonic clock in milliseconds.
 */
export function tellWarnings(source: WarningSource, note: (line: string) => void, now: () => number): void {
  const others = source.listeners("warning");
  const toldAt = new Map<string, number>();
  source.removeAllListeners("warning");
  source.on("warning", (warning) => {
    if (warning.name === "ExperimentalWarning" && usedFeatures.test(warning.message)) return;
    if (!isPlain(warning)) {
      for (const listener of others) listener.call(source, warning);
      return;
    }
    const line = `troupe: warning: ${oneLine(warning.message)}`;
    const last = toldAt.get(line);
    if (last !== undefined && now() - last < silenceMs) return;
    toldAt.set(line, now());
    note(line);
  });
}

function isPlain(warning: Error): boolean {
  const code = "code" in warning ? warning.code : undefined;
  return warning.name === "Warning" && (code === undefined || (typeof code === "string" && code.startsWith("TROUPE_")));
}
