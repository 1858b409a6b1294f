/** A text as one word of a POSIX shell, quoted if necessary. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./~#-]+$/.test(text) && !/^[~#]/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
