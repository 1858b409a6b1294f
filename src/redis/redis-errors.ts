import {
  CorruptRecordError,
  InvalidInputError,
  InvariantError,
  StoreUnavailableError,
  TroupeError,
} from "../errors/index.ts";

/** Errors after which the same command may succeed soon: the server is starting, failing over or moving keys. */
const momentary = new Set([
  "LOADING",
  "BUSY",
  "TRYAGAIN",
  "CLUSTERDOWN",
  "MASTERDOWN",
  "READONLY",
  "MOVED",
  "ASK",
  "UNBLOCKED",
]);

/** Errors that last until an operator acts. The command has written nothing. */
const lasting = new Set(["OOM", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM"]);

/** Whether Redis answered, as opposed to a broken connection or another error. */
export function hasAnswered(error: unknown): boolean {
  return replyCode(error) !== undefined;
}

/** The first word of an error reply; undefined for other errors. */
function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  // Before Redis 7 an error inside a script is wrapped: "ERR Error running script (...): @user_script:12: -OOM ...".
  return (/ -([A-Z]+) /.exec(error.message) ?? /^([A-Z]+)\b/.exec(error.message))?.[1] ?? "ERR";
}

export function isMissingScript(error: unknown): boolean {
  return replyCode(error) === "NOSCRIPT";
}

/** Whether to send the same command again at once. The first one may have been applied before the connection broke. */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof TroupeError || isDefect(error)) return false;
  const code = replyCode(error);
  return code === undefined || momentary.has(code);
}

/** The last error of the nodes if a cluster is unreachable, else the error itself. */
export function nodeErrorOf(error: unknown): unknown {
  return error instanceof Error && "lastNodeError" in error ? (error.lastNodeError ?? error) : error;
}

/**
 * Translates errors of Redis and of the connection into the package's own; returns defects unchanged. The original error is not attached,
 * because it may contain the failed command and thereby a password. `user` is the sender: "the stores".
 */
export function translated(given: unknown, user: string): unknown {
  const error = nodeErrorOf(given);
  if (error instanceof TroupeError || isDefect(error)) return error;
  const code = replyCode(error);
  if (code === undefined) return unreachable(networkCode(error) ?? "ECONNRESET", user);
  if (momentary.has(code) || lasting.has(code)) {
    return new StoreUnavailableError(
      `Redis refuses a command of ${user} (${code}: ${meanings[code] ?? "try again later"}); nothing was written`,
      { details: { code } },
    );
  }
  const text = error instanceof Error ? error.message : String(error);
  if (code === "WRONGTYPE") {
    return new CorruptRecordError(`a key of ${user} holds a value of another type; the key is not changed`);
  }
  if (text.includes("DB index is out of range")) {
    return new InvalidInputError(
      'this Redis has no database with the configured number; they are numbered from 0, up to its setting "databases"',
    );
  }
  return new InvariantError(`a command of ${user} failed on Redis: ${text}`);
}

function unreachable(code: string, user: string): StoreUnavailableError {
  const why = /CERT|SIGNATURE|ALTNAME/.test(code)
    ? "its certificate is not trusted; set its CA with NODE_EXTRA_CA_CERTS, or pass a client with tls: { ca }"
    : "the connection broke or cannot be made";
  return new StoreUnavailableError(`Redis does not answer ${user} (${why})`, { details: { code } });
}

/** A defect of the package, not a failure of the connection. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

const meanings: Readonly<Record<string, string>> = {
  OOM: "its memory is full; raise maxmemory or remove data",
  MISCONF: "it cannot save its data; see its log",
  READONLY: "it is a replica",
  LOADING: "it is still reading its data",
  NOREPLICAS: "it has too few replicas",
  NOAUTH: "it requires a password",
  WRONGPASS: "the user or the password is wrong",
  NOPERM: "the user may not do this",
};

/** The error code of a failed connection, for instance ECONNREFUSED. */
export function networkCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
