/** A text as part of one line: no line breaks or other control characters, cut at `maximum` characters (UTF-16 units). */
export function oneLine(text: string, maximum: number): string {
  // Cut first: a text of many megabytes costs no more than a short one.
  const start = text
    .slice(0, maximum)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ");
  return text.length > maximum ? `${start}…` : start;
}
