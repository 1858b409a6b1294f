import {
  CorruptRecordError,
  InvalidInputError,
  InvariantError,
  StoreUnavailableError,
  TroupeError,
} from "../errors/index.ts";

/** The SQLSTATE of an error of the server; `undefined` for errors of the connection and all others. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || !("severity" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** States after which the same statement may succeed soon. The statement has written nothing. */
const momentary: ReadonlyMap<string, string> = new Map([
  ["25006", "it is read-only: a standby, or a server that fails over"],
  ["40001", "the transaction met another one"],
  ["40P01", "the transaction met another one"],
  ["53000", "it lacks resources"],
  ["53200", "its memory is full"],
  ["53300", "it has too many connections; lower maxConnections or raise max_connections"],
  ["55P03", "a lock was not free in time"],
  ["57014", "the statement took too long"],
  ["57P01", "it is shutting down"],
  ["57P02", "it has crashed and restarts"],
  ["57P03", "it is starting"],
  ["57P05", "the connection was idle for too long"],
  ["25P03", "the transaction was idle for too long"],
]);

/** States that last until an operator acts. */
const lasting: ReadonlyMap<string, string> = new Map([
  ["28000", "the user may not connect; see pg_hba.conf"],
  ["28P01", "the user or the password is wrong"],
  ["3D000", "the database does not exist"],
  ["42501", "the user may not do this; grant it the schema and its tables"],
  ["53100", "its disk is full"],
  ["58030", "it cannot read or write its files"],
]);

/** Whether another transaction won a race, so that the work must run again. */
export function isConflict(error: unknown): boolean {
  const state = sqlState(error);
  return state === "40001" || state === "40P01";
}

/** Whether a schema or table is missing. */
export function isMissingTable(error: unknown): boolean {
  const state = sqlState(error);
  return state === "42P01" || state === "3F000";
}

/** Whether the server has ended the connection; the statement may have been applied. */
function isLostConnection(state: string): boolean {
  return state.startsWith("08") || state === "57P01" || state === "57P02";
}

/** Whether a statement that failed may have been applied: the server has not answered it. */
export function isUnsure(error: unknown): boolean {
  if (error instanceof TroupeError) return isTimeout(error);
  const state = sqlState(error);
  return state === undefined ? !isDefect(error) : isLostConnection(state);
}

/** Whether the connection cannot be used any more. */
export function endsConnection(error: unknown): boolean {
  const isFatal = error instanceof Error && "severity" in error && error.severity !== "ERROR";
  return isFatal || isUnsure(error);
}

/** Whether to try again until the time limit. */
export function isWorthRepeating(error: unknown): boolean {
  if (error instanceof TroupeError || isDefect(error) || isOfCertificate(error)) return false;
  const state = sqlState(error);
  return state === undefined || isLostConnection(state) || (momentary.has(state) && state !== "57014");
}

/**
 * Translates errors of Postgres and of the connection into the package's own; returns defects unchanged. The original error is not
 * attached, because it may contain values of a statement. `user`: the component's name in errors.
 */
export function translated(error: unknown, user = "the stores"): unknown {
  if (error instanceof TroupeError || isDefect(error)) return error;
  const state = sqlState(error);
  if (state === undefined) return unreachable(error, user);
  const meaning = momentary.get(state) ?? lasting.get(state);
  if (meaning !== undefined || isLostConnection(state)) {
    return new StoreUnavailableError(
      `Postgres refuses a statement of ${user} (${state}: ${meaning ?? "the connection broke"})`,
      { details: { code: state } },
    );
  }
  if (isMissingTable(error)) {
    return new StoreUnavailableError(`the tables of ${user} are gone from Postgres; restore them from a backup`, {
      details: { code: state },
    });
  }
  if (state === "XX001" || state === "XX002") {
    return new CorruptRecordError(`Postgres found damaged data (${state}); restore the database from a backup`, {
      details: { code: state },
    });
  }
  if (state === "54000") {
    return new InvalidInputError("an id is too long to be stored in Postgres; use ids of at most 500 characters", {
      details: { code: state },
    });
  }
  const words = error instanceof Error ? error.message : String(error);
  return new InvariantError(`a statement of ${user} failed on Postgres: ${words} (${state})`, {
    details: { code: state },
  });
}

function unreachable(error: unknown, user: string): StoreUnavailableError {
  const code = codeOf(error);
  const why = isOfCertificate(error)
    ? "its certificate is not trusted; name its CA with sslrootcert in the url, or with NODE_EXTRA_CA_CERTS"
    : "the connection broke or cannot be made";
  return new StoreUnavailableError(`Postgres does not answer ${user} (${why})`, { details: { code } });
}

/** Whether the server's certificate is not trusted, which another attempt does not change. */
function isOfCertificate(error: unknown): boolean {
  return sqlState(error) === undefined && /CERT|SIGNATURE|ALTNAME|SELF_SIGNED/.test(codeOf(error));
}

/** Whether a call has ended because its time was over, which does not say why. */
export function isTimeout(error: unknown): boolean {
  return error instanceof TroupeError && error.details["code"] === "ETIMEDOUT";
}

function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "ECONNRESET";
}

/** A defect of the package, not a failure of the connection. */
function isDefect(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}
