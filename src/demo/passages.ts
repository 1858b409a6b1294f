/** A sentence, item, table row, heading or line of code, with the line in which it begins. */
export interface Passage {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly kind: "heading" | "prose" | "item" | "row" | "code";
  /** The headings above it, outermost first; for a row the titles of its table too. */
  readonly headings: readonly string[];
}

const proseFile = /\.(?:md|markdown|mdx|txt|text|rst|adoc|asciidoc)$|(?:^|\/)[^./]+$/i;
const maxCodeLineLength = 400;

export function isProse(path: string): boolean {
  return proseFile.test(path);
}

/** The passages of a text file in order. `firstLine` is the number of the first line given, by default 1. */
export function passagesOf(path: string, lines: readonly string[], firstLine = 1): Passage[] {
  if (isProse(path)) return new Splitter(firstLine).split(lines);
  return lines.flatMap((text, index): Passage[] => {
    const isUsed = text.trim() !== "" && text.length <= maxCodeLineLength;
    return isUsed ? [{ line: firstLine + index, text: text.trim(), kind: "code", headings: [] }] : [];
  });
}

const markup = /^(?:\[?!\[.*|\s*[-*+]\s+\[[^\]]*\]\(#[^)]*\)|\[[^\]]+\]:\s.*|<\/?[a-z][^>]*>|[-*_=|:\s]+)$/i;
const abbreviation = /(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|incl|ca|No|Nr|Mr|Mrs|Ms|Dr|St|[A-Z])\.$/;
const mostMarkupLength = 500;
let sentences: Intl.Segmenter | undefined;

/** Splits Markdown and plain text. Knows headings, items, tables, fenced code, comments and front matter. */
class Splitter {
  readonly #passages: Passage[] = [];
  readonly #firstLine: number;
  #headings: { readonly level: number; readonly text: string }[] = [];
  #titles: string | undefined;
  #block: { readonly line: number; readonly text: string }[] = [];
  #kind: "prose" | "item" = "prose";

  constructor(firstLine: number) {
    this.#firstLine = firstLine;
  }

  split(lines: readonly string[]): Passage[] {
    let until: RegExp | undefined = this.#firstLine === 1 && lines[0]?.trim() === "---" ? /^---\s*$/ : undefined;
    let isCode = false;
    for (const [index, whole] of lines.entries()) {
      const line = this.#firstLine + index;
      const text = whole.replace(/^\uFEFF/, "").replace(/^(?:\s*>\s?)+/, "");
      if (until !== undefined && index > 0 && until.test(text)) {
        until = undefined;
        isCode = false;
      } else if (until !== undefined) {
        if (isCode && text.trim() !== "") this.#add(line, text.trim(), "code");
      } else if (/^\s*(?:```|~~~)/.test(text)) {
        this.#flush();
        isCode = true;
        until = text.trimStart().startsWith("`") ? /^\s*```+\s*$/ : /^\s*~~~+\s*$/;
      } else if (/^\s*<!--/.test(text)) {
        this.#flush();
        if (!text.includes("-->")) until = /-->/;
      } else this.#take(line, text, lines[index + 1]);
    }
    this.#flush();
    return this.#passages;
  }

  #take(line: number, text: string, next: string | undefined): void {
    const [, marks, heading] = /^(#{1,6})\s+(\S.*)$/.exec(text) ?? [];
    const isUnderlined = text.trim() !== "" && /^(?:={2,}|-{2,})\s*$/.test(next ?? "") && this.#block.length === 0;
    const [, item] = /^\s*(?:[-*+]|\d{1,3}[.)])\s+(.*)$/.exec(text) ?? [];
    if (heading !== undefined) this.#open(line, heading.replace(/\s#+\s*$/, ""), marks?.length ?? 1);
    else if (isUnderlined) this.#open(line, text.trim(), next?.startsWith("=") === true ? 1 : 2);
    else if (text.trim() === "" || (text.length <= mostMarkupLength && markup.test(text))) this.#flush();
    else if (text.trimStart().startsWith("|")) this.#takeRow(line, text, next);
    else if (item === undefined) this.#block.push({ line, text: text.trim() });
    else {
      this.#flush();
      this.#kind = "item";
      this.#block.push({ line, text: item.trim() });
    }
    if (!text.trimStart().startsWith("|")) this.#titles = undefined;
  }

  #takeRow(line: number, text: string, next: string | undefined): void {
    this.#flush();
    const row = text
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|")
      .map((cell) => cell.trim())
      .join(" | ");
    if (/^\s*\|[\s:|-]+$/.test(next ?? "")) this.#titles = row;
    else this.#add(line, row, "row");
  }

  #open(line: number, text: string, level: number): void {
    this.#flush();
    this.#headings = this.#headings.filter((heading) => heading.level < level);
    this.#add(line, text, "heading");
    this.#headings.push({ level, text });
  }

  /** Adds the sentences of the block; each begins in the line that holds its first letter. */
  #flush(): void {
    const [block, kind] = [this.#block, this.#kind];
    this.#block = [];
    this.#kind = "prose";
    if (block.length === 0) return;
    sentences ??= new Intl.Segmenter("en", { granularity: "sentence" });
    let open = "";
    let line = 0;
    let lineEnd = (block[0]?.text.length ?? 0) + 1;
    for (const { segment, index } of sentences.segment(block.map(({ text }) => text).join(" "))) {
      if (open === "") {
        while (index >= lineEnd && line < block.length - 1) {
          line += 1;
          lineEnd += (block[line]?.text.length ?? 0) + 1;
        }
      }
      open += segment;
      if (abbreviation.test(open.slice(-12).trimEnd())) continue;
      this.#add(block[line]?.line ?? 1, open.trim(), kind);
      open = "";
    }
    if (open !== "") this.#add(block[line]?.line ?? 1, open.trim(), kind);
  }

  #add(line: number, text: string, kind: Passage["kind"]): void {
    const titles = kind === "row" && this.#titles !== undefined ? [this.#titles] : [];
    this.#passages.push({ line, text, kind, headings: [...this.#headings.map((heading) => heading.text), ...titles] });
  }
}
