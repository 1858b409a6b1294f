/** Whether the file system has no space left, for this file or this user. */
export function isNoSpace(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
}

/** Adds the file name, which the system's message for a failed write lacks, and advice for a full disk. */
export function describeFileError(path: string, error: unknown): string {
  if (isNoSpace(error)) return `no space is left for ${path} (${error.code}); free space on its disk and try again`;
  return `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}`;
}
