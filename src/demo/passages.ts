export type PassageKind = "prose" | "item" | "row" | "code" | "heading";

/** A sentence, list item's sentence, table row, code line or heading, at the line where it begins. */
export interface Passage {
  readonly line: number;
  readonly text: string;
  readonly kind: PassageKind;
  /** The headings above it, outermost first. */
  readonly headings: readonly string[];
  /** The first passage after its heading. */
  readonly opensSection: boolean;
  /** Text before or after it was not given, so it may be a fragment. */
  readonly mayBeCut: boolean;
}

/** The context of the first given line. */
export interface Above {
  /** Outermost first. */
  readonly headings?: readonly string[];
  /** Absent: judged by the fences that follow. */
  readonly isInsideCode?: boolean | undefined;
}

interface Block {
  readonly kind: PassageKind;
  readonly lines: NumberedLine[];
  startsCut: boolean;
}

interface Reading {
  readonly passages: Passage[];
  headings: { level: number; text: string }[];
  block: Block | undefined;
  fence: string | undefined;
  inComment: boolean;
  opensSection: boolean;
  tableHead: string | undefined;
}

/** Longer lines are no prose; cutting them bounds the work on hostile input. */
const maxLineLength = 4_000;
const proseFile = /\.(?:md|markdown|mdx|txt|text|rst|adoc|asciidoc)$|(?:^|\/)[^./]+$/i;

/** True for files whose lines form sentences, judged by the name. In others each line is a passage. */
export function isProse(path: string): boolean {
  return proseFile.test(path);
}

/**
 * The passages of a Markdown or plain text. Lines may have gaps: what touches a gap is marked `mayBeCut`. A sentence
 * over several lines keeps the number of its first. `above` is what is known of the text before the first line.
 */
export function passagesOf(lines: readonly NumberedLine[], above: Above = {}): Passage[] {
  const reading: Reading = {
    passages: [],
    headings: (above.headings ?? []).map((text, index) => ({ level: index + 1, text })),
    block: undefined,
    fence: undefined,
    inComment: false,
    opensSection: false,
    tableHead: undefined,
  };
  let previous = 0;
  for (const [index, line] of lines.entries()) {
    const isGap = line.line !== previous + 1;
    if (isGap) {
      flush(reading, true);
      reading.inComment = false;
      reading.tableHead = undefined;
      const isInside = index === 0 ? above.isInsideCode : undefined;
      reading.fence = (isInside ?? startsInsideCode(lines.slice(index))) ? "```" : undefined;
    }
    readLine(reading, line, isGap && line.line > 1);
    previous = line.line;
  }
  flush(reading, true);
  return reading.passages;
}

/** The passages of code or data: every line that says something. */
export function linePassages(lines: readonly NumberedLine[]): Passage[] {
  return lines
    .filter((line) => /[\p{L}\p{N}]/u.test(line.text))
    .map((line) => ({
      line: line.line,
      text: line.text.trim().slice(0, maxLineLength),
      kind: "code",
      headings: [],
      opensSection: false,
      mayBeCut: false,
    }));
}

function readLine(reading: Reading, line: NumberedLine, startsCut: boolean): void {
  const text = line.text
    .slice(0, maxLineLength)
    .replace(/^(?:\s{0,3}>\s?)+/u, "")
    .trimEnd();
  const trimmed = text.trim();
  if (trimmed === "") {
    reading.tableHead = undefined;
    return flush(reading, false);
  }
  if (readFence(reading, trimmed)) return;
  if (reading.fence !== undefined) return addAlone(reading, "code", line.line, trimmed);
  if (readComment(reading, trimmed) || /^(?:[-*_]\s*){3,}$/.test(trimmed) || isMarkup(trimmed)) {
    if (/^-{3,}$/.test(trimmed) && reading.block?.kind === "prose") return underline(reading, 2);
    return flush(reading, false);
  }
  if (/^={2,}$/.test(trimmed)) return underline(reading, 1);
  const tagged = /^<h([1-6])\b[^<>]*>(.*)<\/h\1>$/i.exec(trimmed);
  if (tagged !== null) return addHeading(reading, Number(tagged[1]), withoutTags(tagged[2] ?? ""), line.line);
  const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(trimmed);
  if (heading !== null) return addHeading(reading, heading[1]?.length ?? 1, heading[2] ?? "", line.line);
  if (trimmed.startsWith("|")) return readRow(reading, trimmed, line.line);
  reading.tableHead = undefined;
  const item = /^\s*(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(.*)$/.exec(text);
  if (item !== null) {
    flush(reading, false);
    reading.block = { kind: "item", lines: [{ line: line.line, text: item[1] ?? "" }], startsCut: false };
    return;
  }
  reading.block ??= { kind: "prose", lines: [], startsCut };
  reading.block.lines.push({ line: line.line, text: trimmed.startsWith("<") ? withoutTags(trimmed) : trimmed });
}

/** The row above a line of dashes names the columns. It is a heading of the rows, not a statement. */
function readRow(reading: Reading, trimmed: string, line: number): void {
  flush(reading, false);
  const last = reading.passages.at(-1);
  if (!/^[|\s:-]+$/.test(trimmed)) addAlone(reading, "row", line, trimmed.replace(/^\|\s*|\s*\|$/g, ""));
  else if (last?.kind === "row" && last.line === line - 1) reading.tableHead = reading.passages.pop()?.text;
}

/** Fences open and close code; both are dropped. True when the line was one. A fence with a language never closes. */
function readFence(reading: Reading, trimmed: string): boolean {
  const [, fence, language] = /^(`{3,}|~{3,})\s*([^`]*)$/.exec(trimmed) ?? [];
  if (fence === undefined) return false;
  if (reading.fence === undefined) {
    flush(reading, false);
    reading.fence = fence;
  } else if (language === "" && fence.startsWith(reading.fence)) reading.fence = undefined;
  else return false;
  return true;
}

function readComment(reading: Reading, trimmed: string): boolean {
  if (!reading.inComment && !trimmed.startsWith("<!--")) return false;
  reading.inComment = !trimmed.includes("-->");
  return true;
}

function withoutTags(text: string): string {
  return text.replace(/<[^<>]*>/g, "").trim();
}

/** Tags, badges, link definitions and tables of contents: structure without a statement. */
function isMarkup(trimmed: string): boolean {
  if (/^\[[^\]]+\]:\s/.test(trimmed)) return true;
  const bare = trimmed
    .replace(/<[^<>]*>/g, " ")
    .replace(/^(?:[-*+]|\d+[.)])\s/, "")
    .replace(/!\[[^\]]*\]\([^()]*\)/g, " ")
    .replace(/\[[^\]]*\]\([^()]*\)/g, " ");
  return bare !== trimmed && !/[\p{L}\p{N}]{2}/u.test(bare);
}

/** True if the lines begin inside code: the first fence is bare, and the next one opens again or is missing. */
function startsInsideCode(lines: readonly NumberedLine[]): boolean {
  const fences: string[] = [];
  let previous = (lines[0]?.line ?? 1) - 1;
  for (const { line, text } of lines) {
    if (line !== previous + 1) break;
    previous = line;
    if (/^\s*(?:`{3,}|~{3,})[^`]*$/.test(text)) fences.push(text.trim());
  }
  const [first, second] = fences;
  if ((lines[0]?.line ?? 1) === 1 || first === undefined || !isBare(first)) return false;
  return fences.length % 2 === 1 || (second !== undefined && !isBare(second));
}

function isBare(fence: string): boolean {
  return /^(?:`+|~+)$/.test(fence);
}

function underline(reading: Reading, level: number): void {
  const first = reading.block?.lines[0];
  const text = reading.block?.lines.map((line) => line.text).join(" ");
  reading.block = undefined;
  if (first !== undefined && text !== undefined) addHeading(reading, level, text, first.line);
}

function addHeading(reading: Reading, level: number, text: string, line: number): void {
  flush(reading, false);
  reading.headings = [...reading.headings.filter((heading) => heading.level < level), { level, text }];
  reading.opensSection = false;
  addAlone(reading, "heading", line, text);
  reading.opensSection = true;
}

function addAlone(reading: Reading, kind: PassageKind, line: number, text: string): void {
  if (reading.block !== undefined) flush(reading, false);
  if (text !== "" && /[\p{L}\p{N}]/u.test(text)) push(reading, kind, line, text, false);
}

function flush(reading: Reading, endsCut: boolean): void {
  const block = reading.block;
  reading.block = undefined;
  if (block === undefined) return;
  const sentences = splitSentences(block.lines);
  for (const [index, sentence] of sentences.entries()) {
    const isFirst = index === 0 && block.startsCut;
    const isLast = index === sentences.length - 1 && endsCut && !/[.!?:;][)"'*_`\]]*$/u.test(sentence.text);
    push(reading, block.kind, sentence.line, sentence.text, isFirst || isLast);
  }
}

function push(reading: Reading, kind: PassageKind, line: number, text: string, mayBeCut: boolean): void {
  const all = reading.headings.map((heading) => heading.text);
  const columns = kind === "row" && reading.tableHead !== undefined ? [reading.tableHead] : [];
  const headings = kind === "heading" ? all.slice(0, -1) : [...all, ...columns];
  reading.passages.push({
    line,
    text: text.replace(/\s+/gu, " "),
    kind,
    headings,
    opensSection: reading.opensSection,
    mayBeCut,
  });
  reading.opensSection = false;
}

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
function splitSentences(lines: readonly NumberedLine[]): NumberedLine[] {
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
