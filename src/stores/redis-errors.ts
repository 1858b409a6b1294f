import {
  CorruptRecordError,
  InvalidInputError,
  InvariantError,
  StoreUnavailableError,
  TroupeError,
} from "../errors/index.ts";

/** Answers after which the same command may succeed in a moment: the server is starting, failing over or moving keys. */
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

/** Answers that last until somebody does something about them. The command has written nothing. */
const lasting = new Set(["OOM", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS", "NOPERM"]);

/** The first word of an error that Redis answered; undefined where the error is of another kind. */
export function replyCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.name !== "ReplyError") return undefined;
  // Before Redis 7 an error inside a script comes wrapped: "ERR Error running script (...): @user_script:12: -OOM ...".
  return (/ -([A-Z]+) /.exec(error.message) ?? /^([A-Z]+)\b/.exec(error.message))?.[1] ?? "ERR";
}

export function isMissingScript(error: unknown): boolean {
  return replyCode(error) === "NOSCRIPT";
}

/** Whether the same command is worth sending again at once. What broke the connection may have come after it was applied. */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof TroupeError || isDefect(error)) return false;
  const code = replyCode(error);
  return code === undefined || momentary.has(code);
}

/** Of a cluster that cannot be reached: what the last one of its nodes said. */
export function nodeErrorOf(error: unknown): unknown {
  return error instanceof Error && "lastNodeError" in error ? (error.lastNodeError ?? error) : error;
}

/** Errors of Redis and of the connection in the package's own words; none of them shows an address or a password. */
export function translated(given: unknown): unknown {
  const error = nodeErrorOf(given);
  if (error instanceof TroupeError || isDefect(error)) return error;
  const code = replyCode(error);
  if (code === undefined) return unreachable(networkCode(error));
  if (momentary.has(code) || lasting.has(code)) {
    return new StoreUnavailableError(
      `Redis refuses the command (${code}: ${meanings[code] ?? "it may work later"}); nothing was written`,
      {
        details: { code },
      },
    );
  }
  const text = error instanceof Error ? error.message : String(error);
  if (code === "WRONGTYPE") {
    return new CorruptRecordError("a key of the stores holds a value of another type; it is left as it is", {
      cause: error,
    });
  }
  if (text.includes("DB index is out of range")) {
    return new InvalidInputError(
      'this Redis has no database of the number that it was to use; its setting "databases" tells how many it has, from 0',
    );
  }
  return new InvariantError(`a command failed on Redis: ${text}`, { cause: error });
}

function unreachable(code: string): StoreUnavailableError {
  const why = /CERT|SIGNATURE|ALTNAME/.test(code)
    ? "the certificate that it shows is not trusted; give its authority: NODE_EXTRA_CA_CERTS, or a client with tls: { ca }"
    : "the connection broke or cannot be made";
  return new StoreUnavailableError(`Redis does not answer (${why})`, { details: { code } });
}

/** A mistake of ours, not of the connection. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

const meanings: Readonly<Record<string, string>> = {
  OOM: "its memory is full; raise maxmemory or remove data",
  MISCONF: "it cannot save its data; see its log",
  READONLY: "it is a replica",
  LOADING: "it is still reading its data",
  NOAUTH: "it wants a password",
  WRONGPASS: "the user or the password is wrong",
  NOPERM: "the user may not do this",
};

function networkCode(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return "ECONNRESET";
}
