import { stripVTControlCharacters } from "node:util";

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for characters. The tables are loaded for the first text that has others than narrow ones, which takes 8 ms. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return segmenter.segment(text);
}

/** Characters that are one column wide: ASCII, and the branches of our trees. */
const narrow = /^[\x20-\x7e─│├└…]*$/;
/** Words of such characters with one space between them. */
const plainLine = /^[\x21-\x7e─│├└…]+(?: [\x21-\x7e─│├└…]+)*$/;
const emoji = /\p{Emoji_Presentation}|\p{Emoji}\uFE0F/u;
const invisible = /^[\p{Mark}\p{Format}\p{Control}\p{Surrogate}]*$/u;

/** Code points that terminals draw two columns wide: East Asian Wide and Fullwidth (Unicode Annex 11), from and to. */
const wideRanges: readonly (readonly [number, number])[] = [
  [0x11_00, 0x11_5f],
  [0x2e_80, 0x30_3e],
  [0x30_41, 0x33_ff],
  [0x34_00, 0x4d_bf],
  [0x4e_00, 0x9f_ff],
  [0xa0_00, 0xa4_cf],
  [0xa9_60, 0xa9_7f],
  [0xac_00, 0xd7_a3],
  [0xf9_00, 0xfa_ff],
  [0xfe_30, 0xfe_6f],
  [0xff_00, 0xff_60],
  [0xff_e0, 0xff_e6],
  [0x1_b0_00, 0x1_b2_ff],
  [0x2_00_00, 0x3_ff_fd],
];

/** Width of a text in terminal columns. The text must not have control characters. */
export function widthOf(text: string): number {
  if (narrow.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemesOf(text)) width += graphemeWidth(segment);
  return width;
}

function graphemeWidth(grapheme: string): 0 | 1 | 2 {
  if (invisible.test(grapheme)) return 0;
  if (emoji.test(grapheme)) return 2;
  const code = grapheme.codePointAt(0) ?? 0;
  return wideRanges.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** Cuts the text to so many columns and marks the cut with `…`. */
export function truncate(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  if (columns < 1) return "";
  let kept = "";
  let width = 0;
  for (const { segment } of graphemesOf(text)) {
    const more = graphemeWidth(segment);
    if (width + more > columns - 1) break;
    kept += segment;
    width += more;
  }
  return `${kept.trimEnd()}…`;
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

export function padStart(text: string, columns: number): string {
  return " ".repeat(Math.max(0, columns - widthOf(text))) + text;
}

/** Wraps the text to so many columns, at spaces if possible. */
export function wrap(text: string, columns: number): string[] {
  return text.split("\n").flatMap((line) => wrapLine(line, Math.max(1, columns)));
}

function wrapLine(line: string, columns: number): string[] {
  const lines: string[] = [];
  let current = "";
  for (const piece of line.match(/\s*\S+|\s+$/gu) ?? [""]) {
    if (widthOf(current) + widthOf(piece) <= columns) {
      current += piece;
      continue;
    }
    if (current !== "") lines.push(current);
    const chunks = chunksOf(current === "" ? piece : piece.trimStart(), columns);
    current = chunks.pop() ?? "";
    lines.push(...chunks);
  }
  return [...lines, current];
}

/** Pieces of at most so many columns, each with at least one character. */
function chunksOf(text: string, columns: number): string[] {
  const chunks: string[] = [];
  let chunk = "";
  let width = 0;
  for (const { segment } of graphemesOf(text)) {
    const more = graphemeWidth(segment);
    if (chunk !== "" && width + more > columns) {
      chunks.push(chunk);
      chunk = "";
      width = 0;
    }
    chunk += segment;
    width += more;
  }
  return [...chunks, chunk];
}

/**
 * Makes foreign text safe to print: models and files may hold escape sequences that move the cursor or rename the window.
 * Keeps line breaks; tabs become spaces.
 */
export function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll("\r\n", "\n")
    .replaceAll("\t", "  ")
    .replaceAll(/[\p{Control}\u202A-\u202E\u2066-\u2069]/gu, (character) => (character === "\n" ? "\n" : ""));
}

/** The same on a single line. */
export function oneLine(text: string): string {
  return plainLine.test(text) ? text : printable(text).replaceAll(/\s+/gu, " ").trim();
}

export type Style = "plain" | "dim" | "bold" | "red" | "green" | "yellow" | "cyan";

const codes: Readonly<Record<Exclude<Style, "plain">, readonly [number, number]>> = {
  dim: [2, 22],
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

export type Paint = (style: Style, text: string) => string;

/** Colours, unless `NO_COLOR` is set to anything but the empty string (no-color.org) or the terminal is dumb. */
export function paintFor(environment: Readonly<Record<string, string | undefined>>): Paint {
  const isPlain = (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return (style, text) => {
    if (isPlain || style === "plain" || text === "") return text;
    const [on, off] = codes[style];
    return `\u001B[${on}m${text}\u001B[${off}m`;
  };
}
