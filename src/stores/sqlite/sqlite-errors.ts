import { CorruptRecordError, InvariantError, StoreUnavailableError, TroupeError } from "../../errors/index.ts";

/** Primary result codes after which the same command may succeed later. */
const passing: ReadonlyMap<number, string> = new Map([
  [5, "SQLITE_BUSY"],
  [6, "SQLITE_LOCKED"],
  [7, "SQLITE_NOMEM"],
  [8, "SQLITE_READONLY"],
  [9, "SQLITE_INTERRUPT"],
  [10, "SQLITE_IOERR"],
  [14, "SQLITE_CANTOPEN"],
  [15, "SQLITE_PROTOCOL"],
]);

/** The primary result code for a full disk, or a file at its size limit. */
const FULL = 13;

const corrupt: ReadonlyMap<number, string> = new Map([
  [11, "SQLITE_CORRUPT"],
  [26, "SQLITE_NOTADB"],
]);

interface SqliteError extends Error {
  readonly code: "ERR_SQLITE_ERROR";
  readonly errcode: number;
}

/** The lower byte of SQLite's result code; undefined for other errors. */
function primaryCode(error: unknown): number | undefined {
  return isSqliteError(error) ? error.errcode & 0xff : undefined;
}

function isSqliteError(error: unknown): error is SqliteError {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number";
}

/** Whether another connection holds the lock, so that an immediate retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = primaryCode(error);
  return code === 5 || code === 6;
}

/** Translates SQLite's errors into the package's own; returns other errors unchanged. */
export function translated(error: unknown, path: string): unknown {
  const code = primaryCode(error);
  if (code === undefined || !isSqliteError(error) || error instanceof TroupeError) return error;
  const details = { path, extendedCode: error.errcode };
  if (code === FULL) return noSpaceLeft(path, error);
  const transient = passing.get(code);
  if (transient !== undefined) {
    return new StoreUnavailableError(`the store ${path} is not available (${transient}: ${error.message})`, {
      details: { ...details, code: transient },
      cause: error,
    });
  }
  const damage = corrupt.get(code);
  if (damage !== undefined) {
    return new CorruptRecordError(`the file ${path} is damaged or not a database (${damage}); it is not changed`, {
      details: { ...details, code: damage },
      cause: error,
    });
  }
  return new InvariantError(`a statement failed on ${path}: ${error.message}`, { details, cause: error });
}

/** The write was undone completely, so it can be repeated once there is space. */
export function noSpaceLeft(path: string, cause: unknown): StoreUnavailableError {
  const words = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailableError(
    `no space is left for the store ${path} (SQLITE_FULL: ${words}); free space on its disk, or raise maxBytes if it is set, and try again`,
    { details: { path, code: "SQLITE_FULL" }, cause },
  );
}
