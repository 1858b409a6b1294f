/** One line of a file, counted from 1. */
export interface NumberedLine {
  readonly line: number;
  readonly text: string;
}

const abbreviations: ReadonlySet<string> = new Set([
  "e.g",
  "i.e",
  "etc",
  "vs",
  "cf",
  "approx",
  "dr",
  "mr",
  "mrs",
  "ms",
  "no",
  "fig",
  "ca",
  "incl",
  "resp",
]);

/** Splits a paragraph into sentences; each keeps the number of the line in which it begins. */
export function splitSentences(lines: readonly NumberedLine[]): NumberedLine[] {
  const { text, starts } = joinLines(lines);
  const sentences: NumberedLine[] = [];
  let start = 0;
  for (const end of boundariesOf(text)) {
    add(start, end);
    start = end;
  }
  add(start, text.length);
  return sentences;

  function add(from: number, to: number): void {
    const sentence = text.slice(from, to);
    const trimmed = sentence.trim();
    if (!/[\p{L}\p{N}]/u.test(trimmed)) return;
    sentences.push({ line: lineAt(starts, from + sentence.length - sentence.trimStart().length), text: trimmed });
  }
}

interface LineStart {
  readonly offset: number;
  readonly line: number;
}

function joinLines(lines: readonly NumberedLine[]): { text: string; starts: LineStart[] } {
  let text = "";
  const starts: LineStart[] = [];
  for (const line of lines) {
    if (text !== "") text += " ";
    starts.push({ offset: text.length, line: line.line });
    text += line.text.replace(/\s+/gu, " ").trim();
  }
  return { text, starts };
}

/** Binary search: a paragraph may have very many lines. */
function lineAt(starts: readonly LineStart[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle]?.offset ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return starts[low]?.line ?? 1;
}

/** Offsets behind each full stop that ends a sentence: not in code, not after an abbreviation, and a new beginning follows. */
function boundariesOf(text: string): number[] {
  const boundaries: number[] = [];
  let inCode = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (character === "`") inCode = !inCode && text.includes("`", index + 1);
    if (inCode) continue;
    if ("。！？".includes(character)) boundaries.push(index + 1);
    if (!".!?".includes(character)) continue;
    const end = endOfClosing(text, index + 1);
    if (text[end] !== " " || !mayBegin(text, end + 1, index)) continue;
    if (character === "." && isAbbreviation(text, index)) continue;
    boundaries.push(end);
  }
  return boundaries;
}

/** A sentence begins with a capital or a sign; with a small letter, as some names do, only after a long word. */
function mayBegin(text: string, at: number, stop: number): boolean {
  const next = text[at] ?? "";
  if (/[\p{Lu}\p{N}\p{Lo}"'“‘`*_[(<#]/u.test(next)) return true;
  return /\p{Ll}/u.test(next) && /^\p{L}{5}$/u.test(text.slice(Math.max(0, stop - 5), stop));
}

function endOfClosing(text: string, from: number): number {
  let end = from;
  while (end < text.length && "\"'”’)]*_".includes(text[end] ?? "")) end += 1;
  return end;
}

function isAbbreviation(text: string, stop: number): boolean {
  let start = stop;
  while (start > 0 && stop - start < 12 && /[\p{L}.]/u.test(text[start - 1] ?? "")) start -= 1;
  const word = text.slice(start, stop).toLowerCase();
  return abbreviations.has(word) || /^\p{Lu}$/u.test(text.slice(start, stop));
}
