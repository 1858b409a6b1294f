/*
 * A subset of Markdown as values: what of a text is a heading, a list, code, a link. It knows no HTML and no entities, which stay
 * text, and gives the page nothing but texts to draw.
 *
 * 1. Time and space grow with the length of the text, however it is nested: containers are read to a fixed depth, and no rule
 *    looks further ahead than a fixed number of characters.
 * 2. No letter is lost but for the marks of what was recognised.
 * 3. Of a text that is still written, what is open at its end counts as closed there, so that nothing changes its form when the
 *    closing mark arrives.
 */

export type Inline =
  | string
  | { readonly type: "strong" | "em" | "del"; readonly parts: readonly Inline[] }
  | { readonly type: "code"; readonly text: string }
  /** `target` is an address of http or https, as the browser would ask for it. */
  | { readonly type: "link"; readonly target: string; readonly parts: readonly Inline[] }
  | { readonly type: "image"; readonly target: string; readonly parts: readonly Inline[] };

export type Block =
  | { readonly type: "paragraph"; readonly parts: readonly Inline[] }
  | { readonly type: "heading"; readonly level: number; readonly parts: readonly Inline[] }
  | { readonly type: "code"; readonly language: string; readonly text: string }
  | { readonly type: "quote"; readonly blocks: readonly Block[] }
  /** `start` is null for a list without numbers. */
  | { readonly type: "list"; readonly start: number | null; readonly items: readonly (readonly Block[])[] }
  | { readonly type: "table"; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly type: "rule" };

type Cell = readonly Inline[];

/** Quotes and lists inside each other, and emphasis inside emphasis; what is deeper is text. */
const DEEPEST = 8;
const MOST_COLUMNS = 50;
const LONGEST_TARGET = 2_000;

const fence = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const heading = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const quote = /^ {0,3}> ?/;
const item = /^( *)([-+*]|(\d{1,9})[.)])(?:[ \t]|$)/;
const delimiterRow = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
/** The beginning of a line of which nothing can be known yet. */
const bareMark = /^[ \t]*(?:[-+*>#|~`_]+|\d{1,3}[.)])[ \t]*$/;

/** `isOpen`: the text is still written. */
export function markdownOf(text: string, isOpen = false): readonly Block[] {
  const lines = text.split(/\r?\n/);
  if (isOpen && bareMark.test(lines.at(-1) ?? "")) lines.pop();
  return blocksOf(lines, { isOpen, depth: 0 });
}

/** Whether a text says the same without its marks: paragraphs of plain text. */
export function isPlain(blocks: readonly Block[]): boolean {
  return blocks.every((block) => block.type === "paragraph" && block.parts.every((part) => typeof part === "string"));
}

interface Reading {
  readonly isOpen: boolean;
  readonly depth: number;
}

function blocksOf(lines: readonly string[], { isOpen, depth }: Reading): readonly Block[] {
  const blocks: Block[] = [];
  let at = 0;
  const inside = (end: number): Reading => ({ isOpen: isOpen && end >= lines.length, depth: depth + 1 });
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const next = lines[at + 1] ?? "";
    const begun = at;
    const fenced = fence.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (fenced) {
      const mark = fenced[1] ?? "";
      for (at += 1; at < lines.length && !closes(lines[at] ?? "", mark); ) at += 1;
      const text = lines.slice(begun + 1, at).join("\n");
      at += 1;
      blocks.push({ type: "code", language: (fenced[2] ?? "").trim().split(/\s/)[0] ?? "", text });
    } else if (heading.test(line)) {
      at += 1;
      const level = heading.exec(line)?.[1]?.length ?? 1;
      const parts = inlinesOf(headingText(line), inside(at).isOpen);
      blocks.push({ type: "heading", level, parts });
    } else if (rule.test(line)) {
      at += 1;
      blocks.push({ type: "rule" });
    } else if (quote.test(line) && depth < DEEPEST) {
      while (quote.test(lines[at] ?? "")) at += 1;
      const quoted = lines.slice(begun, at).map((one) => one.replace(quote, ""));
      blocks.push({ type: "quote", blocks: blocksOf(quoted, inside(at)) });
    } else if (itemIn(line) && depth < DEEPEST) {
      const list = listAt(lines, at);
      at = list.end;
      const items = list.items.map((one, index) =>
        blocksOf(one, { ...inside(at), isOpen: inside(at).isOpen && index === list.items.length - 1 }),
      );
      blocks.push({ type: "list", start: list.start, items });
    } else if (isTable(line, next) || (isOpen && isTableToBe(lines, at))) {
      const head = cellsOf(line);
      for (at += 2; (lines[at] ?? "").includes("|"); ) at += 1;
      const rows = lines.slice(begun + 2, at).map((one) => cellsOf(one).slice(0, head.length));
      const cells = (texts: readonly string[]) => texts.map((one) => inlinesOf(one, isOpen && at >= lines.length));
      blocks.push({ type: "table", head: cells(head), rows: rows.map(cells) });
    } else {
      const isOver = (): boolean =>
        interrupts(lines[at] ?? "", lines[at + 1] ?? "", depth) || (isOpen && isTableToBe(lines, at));
      for (at += 1; at < lines.length && !isOver(); ) at += 1;
      const text = lines.slice(begun, at).join("\n");
      blocks.push({ type: "paragraph", parts: inlinesOf(text, isOpen && at >= lines.length) });
    }
  }
  return blocks;
}

function closes(line: string, mark: string): boolean {
  const text = line.trim();
  return text.length >= mark.length && text === (mark[0] ?? "").repeat(text.length);
}

function headingText(line: string): string {
  const text = line.replace(heading, "").trim();
  let end = text.length;
  while (text[end - 1] === "#") end -= 1;
  return end === 0 || text[end - 1] === " " ? text.slice(0, end).trim() : text;
}

/** Whether a line ends the paragraph before it. */
function interrupts(line: string, next: string, depth: number): boolean {
  if (line.trim() === "" || fence.test(line) || heading.test(line) || rule.test(line)) return true;
  if (isTable(line, next)) return true;
  const listed = itemIn(line);
  // A number at the beginning of a line is a list only if that begins with 1.
  return depth < DEEPEST && (quote.test(line) || (listed !== undefined && listed.number <= 1));
}

interface Item {
  readonly indent: number;
  readonly isNumbered: boolean;
  readonly number: number;
  readonly text: string;
}

function itemIn(line: string): Item | undefined {
  const match = item.exec(line);
  if (!match) return undefined;
  const [all, blanks = "", , number] = match;
  return {
    indent: blanks.length,
    isNumbered: number !== undefined,
    number: Number(number ?? 0),
    text: line.slice(all.length),
  };
}

function listAt(lines: readonly string[], begun: number) {
  const first = itemIn(lines[begun] ?? "");
  const base = first?.indent ?? 0;
  const items: string[][] = [];
  let at = begun;
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const own = itemIn(line);
    const isDeeper = indentOf(line) >= base + 2;
    if (own && !isDeeper) {
      if (own.isNumbered !== first?.isNumbered || rule.test(line)) break;
      items.push([own.text]);
      continue;
    }
    if (line.trim() === "") {
      // A blank line belongs to the list if the list goes on behind it.
      const after = lines[at + 1] ?? "";
      const following = itemIn(after);
      const goesOn = indentOf(after) >= base + 2 || (following && following.isNumbered === first?.isNumbered);
      if (after.trim() === "" || !goesOn) break;
      items.at(-1)?.push("");
      continue;
    }
    const isContinued = (lines[at - 1] ?? "").trim() !== "" && !interrupts(line, lines[at + 1] ?? "", 0);
    if (!isDeeper && !isContinued) break;
    items.at(-1)?.push(withoutIndent(line, base + 2));
  }
  return { items, start: first?.isNumbered === true ? first.number : null, end: at };
}

function indentOf(line: string): number {
  let indent = 0;
  for (const letter of line) {
    if (letter === " ") indent += 1;
    else if (letter === "\t") indent += 4;
    else return indent;
  }
  return 0;
}

/** Takes so many columns of blanks from the beginning of a line. */
function withoutIndent(line: string, columns: number): string {
  let taken = 0;
  let at = 0;
  for (; taken < columns && (line[at] === " " || line[at] === "\t"); at += 1) taken += line[at] === "\t" ? 4 : 1;
  return " ".repeat(Math.max(0, taken - columns)) + line.slice(at);
}

function isTable(line: string, next: string): boolean {
  const isRow = line.includes("|") && next.includes("-") && delimiterRow.test(next);
  return isRow && cellsOf(line).length <= MOST_COLUMNS && (next.includes("|") || line.trim().startsWith("|"));
}

/** A first row behind which nothing but the beginning of the second one has come. */
function isTableToBe(lines: readonly string[], at: number): boolean {
  const isLast = at + 1 === lines.length || (at + 2 === lines.length && /^[\s|:-]*$/.test(lines[at + 1] ?? ""));
  return isLast && /^ {0,3}\|.*\S/.test(lines[at] ?? "") && cellsOf(lines[at] ?? "").length <= MOST_COLUMNS;
}

function cellsOf(line: string): readonly string[] {
  const cells: string[] = [];
  const text = line.trim();
  let from = text.startsWith("|") ? 1 : 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "|") {
      cells.push(text.slice(from, at));
      from = at + 1;
    }
  }
  if (from < text.length) cells.push(text.slice(from));
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

interface Opener {
  /** Its place among the parts. */
  readonly place: number;
  readonly mark: string;
}

const marked = { 1: "em", 2: "strong" } as const;
const special = /[\\`*_~[\]<h]/g;
const escaped = /[*_`~#|<>]/;
const inAngles = /<(https?:\/\/[^\s<>]{1,2000})>/iy;
const bare = /https?:\/\/[^\s<>"'`]{1,2000}/iy;
const destination = /^\([ \t]*<?([^\s<>()]*(?:\([^\s()]*\)[^\s<>()]*)*)>?(?:[ \t]+(?:"[^"]*"|'[^']*'))?[ \t]*\)/;

function inlinesOf(text: string, isOpen: boolean): readonly Inline[] {
  const parts: Inline[] = [];
  const openers: Opener[] = [];
  const brackets: { readonly place: number; readonly isImage: boolean }[] = [];
  let runs: Map<number, number[]> | undefined;
  let from = 0;
  let at = 0;
  const wrap = (place: number, make: (inside: readonly Inline[]) => Inline): void => {
    const inside = joined(parts.splice(place).slice(1));
    parts.push(make(inside));
    while ((openers.at(-1)?.place ?? -1) >= place) openers.pop();
    while ((brackets.at(-1)?.place ?? -1) >= place) brackets.pop();
  };
  const emphasise = ({ place, mark }: Opener): void =>
    wrap(place, (inside) => {
      if (mark === "~~") return { type: "del", parts: inside };
      if (mark.length === 3) return { type: "strong", parts: [{ type: "em", parts: inside }] };
      return { type: mark.length === 2 ? marked[2] : marked[1], parts: inside };
    });
  /** Takes the text until here, and goes on behind `length` further letters. */
  const take = (length: number): void => {
    if (at > from) parts.push(text.slice(from, at));
    at += length;
    from = at;
  };
  while (at < text.length) {
    special.lastIndex = at;
    const found = special.exec(text);
    if (!found) break;
    at = found.index;
    const letter = found[0];
    if (letter === "\\") {
      if (escaped.test(text[at + 1] ?? "")) {
        take(1);
        at += 1;
      } else at += 1;
    } else if (letter === "`") {
      const length = runAt(text, at, "`");
      runs ??= runsIn(text);
      const places = runs.get(length) ?? [];
      while ((places.at(-1) ?? Number.POSITIVE_INFINITY) <= at) places.pop();
      const end = places.at(-1) ?? (isOpen ? text.length : -1);
      if (end < 0) at += length;
      else {
        const content = text.slice(at + length, end).replaceAll("\n", " ");
        take(end - at + length);
        if (content !== "") parts.push({ type: "code", text: withoutPadding(content) });
      }
    } else if (letter === "*" || letter === "_" || letter === "~") {
      let left = runAt(text, at, letter);
      const { opens, closes: ends } = flanks(text[at - 1] ?? " ", text[at + left] ?? (isOpen ? "…" : " "), letter);
      if (left > 3 || (letter === "~" && left !== 2) || (!opens && !ends)) {
        at += left;
        continue;
      }
      take(left);
      while (ends && left > 0) {
        const opener = openers.findLast(({ mark }) => mark[0] === letter && mark.length <= left);
        if (!opener) break;
        left -= opener.mark.length;
        emphasise(opener);
      }
      if (left === 0) continue;
      const mark = letter.repeat(left);
      if (opens && openers.length < DEEPEST) openers.push({ place: parts.length, mark });
      parts.push(mark);
    } else if (letter === "[") {
      const isImage = at > from && text[at - 1] === "!";
      if (isImage) at -= 1;
      take(isImage ? 2 : 1);
      brackets.push({ place: parts.length, isImage });
      parts.push(isImage ? "![" : "[");
    } else if (letter === "]") {
      const bracket = brackets.pop();
      const rest = bracket && text[at + 1] === "(" ? text.slice(at + 1, at + 1 + LONGEST_TARGET) : "";
      const match = destination.exec(rest);
      const target = match && (bracket?.isImage === true ? (match[1] ?? "") : webAddress(match[1] ?? ""));
      if (bracket && match && target) {
        take(1 + match[0].length);
        const type = bracket.isImage ? "image" : "link";
        wrap(bracket.place, (inside) => ({ type, target, parts: inside }));
        if (!bracket.isImage) brackets.length = 0;
      } else if (bracket && isOpen && /^\([^\s)]*$/.test(rest)) {
        // Its address is being written.
        take(text.length - at);
        const inside = parts.splice(bracket.place).slice(1);
        parts.push(...inside);
      } else at += 1;
    } else if (letter === "<") {
      inAngles.lastIndex = at;
      const match = inAngles.exec(text);
      const target = match && webAddress(match[1] ?? "");
      if (match && target) {
        take(match[0].length);
        parts.push({ type: "link", target, parts: [match[1] ?? ""] });
      } else at += 1;
    } else {
      bare.lastIndex = at;
      const isWord = /[\p{L}\p{N}]/u.test(text[at - 1] ?? "");
      const match = isWord ? null : bare.exec(text);
      const written = match ? withoutEnd(match[0]) : "";
      const target = match && webAddress(written);
      if (target) {
        take(written.length);
        parts.push({ type: "link", target, parts: [written] });
      } else at += 1;
    }
  }
  at = text.length;
  take(0);
  if (isOpen) {
    for (let opener = openers.at(-1); opener; opener = openers.at(-1)) {
      if (opener.place === parts.length - 1) {
        parts.pop();
        openers.pop();
      } else emphasise(opener);
    }
  }
  return joined(parts);
}

function runAt(text: string, at: number, letter: string): number {
  let end = at;
  while (text[end] === letter) end += 1;
  return end - at;
}

/** The places of runs of backticks, by their length; the last one first. */
function runsIn(text: string): Map<number, number[]> {
  const runs = new Map<number, number[]>();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const places = runs.get(run.length);
    if (places) places.push(index);
    else runs.set(run.length, [index]);
  }
  for (const places of runs.values()) places.reverse();
  return runs;
}

function withoutPadding(code: string): string {
  return code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "" ? code.slice(1, -1) : code;
}

/** Whether a run of marks may begin or end emphasis. Inside a word it may not, but for scripts without blanks. */
function flanks(before: string, after: string, letter: string) {
  const word = letter === "_" ? /[\p{L}\p{N}]/u : /[A-Za-z0-9]/;
  const isInWord = word.test(before) && word.test(after);
  return { opens: !isInWord && /\S/.test(after), closes: !isInWord && /\S/.test(before) };
}

/** An address of the web in the form in which the browser asks for it; undefined for anything else. */
function webAddress(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text).href : undefined;
}

/** Marks at the end of a sentence are no part of an address in it. */
function withoutEnd(address: string): string {
  let end = address.length;
  while (".,;:!?*_~]".includes(address[end - 1] ?? " ") || (address[end - 1] === ")" && !address.includes("(")))
    end -= 1;
  return address.slice(0, end);
}

/** Texts beside each other as one. */
function joined(parts: readonly Inline[]): readonly Inline[] {
  const all: Inline[] = [];
  let texts: string[] = [];
  const flush = (): void => {
    if (texts.length > 0) all.push(texts.join(""));
    texts = [];
  };
  for (const part of parts) {
    if (typeof part === "string") texts.push(part);
    else {
      flush();
      all.push(part);
    }
  }
  flush();
  return all;
}
