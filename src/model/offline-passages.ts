/** A sentence, list item, table row, heading or line of code, with the number of its first line. */
export interface Passage {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
  readonly kind: "heading" | "prose" | "item" | "row" | "code";
  /** Its headings, outermost first, then the sentence with a colon before a list or the header row of a table. */
  readonly headings: readonly string[];
}

const mostCodeLength = 400;
const markup = /^(?:\[?!\[.*|[-*+]\s+\[[^\]]*\]\(#[^)]*\)|\[[^\]]+\]:\s.*|<\/?[a-z].*>|[-*_=|:\s]*)$/i;
/** White space after a sentence: not after an abbreviation, and not before a lower-case letter. */
const sentenceEnd =
  /([ \n])(?<=[.!?][)"'”’*_`]{0,3}[ \n])(?<!(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|incl|ca|No|Nr|Mr|Mrs|Ms|Dr|St|[A-Z])\.[ \n])(?!\p{Ll})/u;

export function isProse(path: string): boolean {
  return /\.(?:md|markdown|mdx|txt|text|rst|adoc|asciidoc)$|(?:^|\/)[^./]+$/i.test(path);
}

/** The passages of a text file in order: sentences for Markdown and plain text, lines for other files. */
export function passagesOf(path: string, lines: readonly string[]): Passage[] {
  if (isProse(path)) return prosePassages(lines);
  const used = [...lines.entries()].filter(([, text]) => text.trim() !== "" && text.length <= mostCodeLength);
  return used.map(([at, text]) => ({ line: at + 1, text: text.trim(), kind: "code", headings: [] }));
}

function prosePassages(lines: readonly string[]): Passage[] {
  const passages: Passage[] = [];
  let headings: { readonly level: number; readonly text: string }[] = [];
  let announced: string[] = [];
  let titles: string[] = [];
  let block: { readonly line: number; readonly kind: "prose" | "item"; text: string } | undefined;
  /** The line that ends the current code block, comment or front matter. */
  let end: RegExp | undefined = lines[0]?.trim() === "---" ? /^---$/ : undefined;
  let isCode = false;

  const add = (line: number, text: string, kind: Passage["kind"]): void => {
    if (kind === "prose" || kind === "heading") announced = [];
    passages.push({ line, text, kind, headings: [...headings.map((above) => above.text), ...announced, ...titles] });
    if (/:[*_`]*$/.test(text) && kind !== "code") announced = [text];
  };
  const endBlock = (): void => {
    let line = block?.line ?? 0;
    for (const piece of block?.text.split(sentenceEnd) ?? []) {
      if (piece.trim() !== "") add(line, piece.replaceAll("\n", " "), block?.kind ?? "prose");
      line += piece.split("\n").length - 1;
    }
    block = undefined;
  };

  for (const [index, whole] of lines.entries()) {
    const line = index + 1;
    const text = whole.replaceAll(/\s+/g, " ").replace(/^[> ]+| $/g, "");
    if (end !== undefined) {
      if (index > 0 && end.test(text)) end = undefined;
      else if (isCode && text !== "") add(line, whole.trim(), "code");
      continue;
    }
    const next = lines[index + 1]?.trim() ?? "";
    const [fence] = /^(?:```|~~~)/.exec(text) ?? [];
    const [, marks, marked] = /^(#{1,6}) (.*?)(?: #+)?$/.exec(text) ?? [];
    const heading = marked ?? (text !== "" && block === undefined && /^(?:={2,}|-{2,})$/.test(next) ? text : undefined);
    const [, item] = /^(?:[-*+]|\d{1,3}[.)]) (.*)$/.exec(text) ?? [];
    const isMarkup = text.length <= 500 && markup.test(text);
    const isOther = fence !== undefined || heading !== undefined || isMarkup || /^(?:\||<!--)/.test(text);
    if (isOther || item !== undefined) endBlock();
    isCode = fence !== undefined;
    if (!text.startsWith("|")) titles = [];
    if (fence !== undefined) end = new RegExp(`^${fence}`);
    else if (text.startsWith("<!--")) end = text.includes("-->") ? undefined : /-->/;
    else if (heading !== undefined) {
      const level = marks?.length ?? (next.startsWith("=") ? 1 : 2);
      headings = headings.filter((above) => above.level < level);
      add(line, heading, "heading");
      headings.push({ level, text: heading });
    } else if (!isMarkup && text.startsWith("|")) {
      const row = text.replaceAll(/^\| ?| ?\|$/g, "").replaceAll(/ ?\| ?/g, " | ");
      if (/^\|[\s:|-]+$/.test(next)) titles = [row];
      else add(line, row, "row");
    } else if (!isOther && (block === undefined || item !== undefined)) {
      block = { line, kind: item === undefined ? "prose" : "item", text: item ?? text };
    } else if (!isOther && block !== undefined) block.text += `\n${text}`;
  }
  endBlock();
  return passages;
}
