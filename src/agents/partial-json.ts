import { withoutThoughts } from "./json-answer.ts";

/** At most this many brackets of an answer are tried as the beginning of its JSON. */
const MOST_STARTS = 16;
/** Values that are nested deeper are not shown, because code that walks them may be recursive. */
const MOST_NESTED = 64;

/**
 * The JSON value that an unfinished answer has so far: what is cut is left out, but a text is shown as far as it goes. `undefined` until
 * its JSON begins. Of several documents the last one counts, as in the finished answer.
 */
export function partialJsonIn(text: string): unknown {
  const answer = withoutThoughts(text);
  let found: unknown;
  let from = 0;
  for (let tries = 0; tries < MOST_STARTS; tries += 1) {
    const start = answer.slice(from).search(/[{[]/);
    if (start < 0) break;
    const read = readBeginning(answer, from + start);
    if (read !== undefined) found = read.value;
    if (read?.end === undefined && read !== undefined) break;
    from = read?.end ?? from + start + 1;
  }
  return found;
}

interface Beginning {
  readonly value: unknown;
  /** The index behind the document; `undefined` if it is cut. */
  readonly end: number | undefined;
}

/** The object or list that begins at `start`; `undefined` if it is not JSON. Reads each character once. */
function readBeginning(text: string, start: number): Beginning | undefined {
  const closers: string[] = [];
  // The text up to `cut`, with `quote` and the closers, is complete JSON.
  let cut = start;
  let quote = "";
  let isKey = false;
  let end: number | undefined;
  let at = start;
  while (at < text.length && end === undefined) {
    const char = text.charAt(at);
    at += 1;
    if (char === "{" || char === "[") {
      if (closers.length === MOST_NESTED) break;
      closers.push(char === "{" ? "}" : "]");
      isKey = char === "{";
      cut = at;
    } else if (char === "}" || char === "]") {
      if (closers.pop() !== char) return undefined;
      isKey = false;
      cut = at;
      if (closers.length === 0) end = at;
    } else if (char === '"') {
      const string = readString(text, at);
      at = string.end;
      // A member without its value is left out.
      if (isKey) continue;
      cut = at;
      if (!string.isWhole) quote = '"';
      if (!string.isWhole) break;
    } else if (char === ",") isKey = closers.at(-1) === "}";
    else if (char === ":") isKey = false;
    else if (char.trim() !== "") {
      // A number or a word may go on behind the last character.
      while (at < text.length && !/[\s,:{}[\]"]/.test(text.charAt(at))) at += 1;
      if (at < text.length) cut = at;
    }
  }
  try {
    const closed = text.slice(start, cut) + quote + closers.toReversed().join("");
    return { value: JSON.parse(closed) as unknown, end };
  } catch {
    return undefined;
  }
}

/** The end of a string whose text begins at `from`: behind its quotation mark or, if it is cut, behind its last whole character. */
function readString(text: string, from: number): { readonly end: number; readonly isWhole: boolean } {
  let at = from;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '"') return { end: at + 1, isWhole: true };
    const length = char !== "\\" ? 1 : text.charAt(at + 1) === "u" ? 6 : 2;
    if (at + length > text.length) break;
    at += length;
  }
  return { end: at, isWhole: false };
}
