/** Whether the file system has no room left, for this file or for this user. */
export function isNoSpace(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** Names the file, because the system's own message for a failed write does not, and what to do about a full disk. */
export function describeFileError(path: string, error: unknown): string {
  if (isNoSpace(error)) return `no space is left for ${path} (${error.code}); free space on its disk and try again`;
  return `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`;
}
