import { InvalidInputError } from "../errors/index.ts";

const LONGEST_PATH = 1_000;
const MOST_FOLDERS = 64;

/**
 * The names in a path of a model, from the root of its workspace down; none for the root itself. Throws `InvalidInputError` for paths that
 * are absolute, contain `..`, `\`, or control characters, or are too long.
 */
export function namesOfPath(path: string): readonly string[] {
  if (path.length > LONGEST_PATH) throw refusedPath(path, `it has more than ${LONGEST_PATH} characters`);
  // Control characters include line breaks and NUL. The marks of direction hide what a person reads in a request.
  if (/[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/u.test(path) || !path.isWellFormed()) {
    throw refusedPath(path, "it contains control characters");
  }
  if (path.includes("\\")) throw refusedPath(path, "folders are separated by /");
  if (path.startsWith("/") || /^[A-Za-z]:/.test(path)) throw refusedPath(path, "it is absolute");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw refusedPath(path, 'it contains ".."');
  if (names.length > MOST_FOLDERS) throw refusedPath(path, `it has more than ${MOST_FOLDERS} levels`);
  if (names.some((name) => Buffer.byteLength(name) > 255))
    throw refusedPath(path, "a name in it is longer than 255 bytes");
  return names;
}

/** The error for a path that cannot be used; the model reads it. */
export function refusedPath(path: string, why: string, cause?: unknown): InvalidInputError {
  const shown = JSON.stringify(path.slice(0, 200));
  return new InvalidInputError(
    `${shown} cannot be used: ${why}. Use a path below the workspace, such as src/main.ts.`,
    {
      cause,
    },
  );
}
