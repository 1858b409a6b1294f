import { InvariantError, StoreUnavailableError, TroupeError } from "../errors/index.ts";

/** Answers after which the same command may succeed in a moment. */
const momentary = new Set(["LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MOVED", "ASK"]);

/** Answers that last until somebody does something about them. */
const lasting: Readonly<Record<string, string>> = {
  OOM: "its memory is full; raise maxmemory or remove data",
  MISCONF: "it cannot save its data; see its log",
  NOREPLICAS: "it has too few replicas",
  NOAUTH: "it wants a password",
  WRONGPASS: "the user or the password is wrong",
  NOPERM: "the user may not do this",
};

/** Whether the same command is worth sending again at once. */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof TroupeError || isDefect(error)) return false;
  const code = replyCode(error);
  return code === undefined || momentary.has(code);
}

/**
 * An error of Redis, the connection or the queue package in this package's own words. Nothing of the first is kept: it may
 * hold the command that failed, and with it a password.
 */
export function translated(error: unknown): TroupeError {
  if (error instanceof TroupeError) return error;
  if (isDefect(error)) return new InvariantError(`the queues failed: ${error.name}`);
  const code = replyCode(error);
  if (code === undefined) {
    return new StoreUnavailableError("Redis does not answer the queues (the connection broke or cannot be made)", {
      details: { code: networkCode(error) },
    });
  }
  const meaning = momentary.has(code) ? "it may work later" : lasting[code];
  if (meaning === undefined) return new InvariantError(`a command of the queues failed on Redis (${code})`);
  return new StoreUnavailableError(`Redis refuses a command of the queues (${code}: ${meaning})`, {
    details: { code },
  });
}

/** What a worker complains of while it goes on. */
export function faultOf(queue: string, error: unknown): TroupeError {
  if (error instanceof Error && /\block\b/i.test(error.message)) {
    return new StoreUnavailableError(
      `a job of queue "${queue}" has lost its lock while it ran; it may be run by another worker too`,
    );
  }
  const isOfConnection = replyCode(error) !== undefined || networkCode(error) !== NO_CODE;
  if (isOfConnection || (error instanceof Error && /connection/i.test(error.message))) return translated(error);
  return new InvariantError(
    `a worker of queue "${queue}" met an error (${error instanceof Error ? error.name : typeof error})`,
  );
}

/** The first word of an error that Redis answered; undefined where the error is of another kind. */
function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  return (/ -([A-Z]+) /.exec(error.message) ?? /^([A-Z]+)\b/.exec(error.message))?.[1] ?? "ERR";
}

/** A mistake of ours, not of the connection. */
function isDefect(error: unknown): error is Error {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

const NO_CODE = "ECONNRESET?";

function networkCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return NO_CODE;
}
