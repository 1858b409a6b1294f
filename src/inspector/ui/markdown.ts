import type { SyntaxNode } from "@lezer/common";
import { parser, Strikethrough, Table } from "@lezer/markdown";
import remend, { INCOMPLETE_IMAGE_PLACEHOLDER } from "remend";

/** A text with its Markdown syntax tree. */
export interface Markdown {
  readonly text: string;
  readonly root: SyntaxNode;
}

/** Ends at spaces and at characters that cannot occur in an address. */
const address = /https?:\/\/[^\s<>"'`]+/iy;
const LONGEST_ADDRESS = 2_000;
/** A last line whose Markdown meaning is not yet decidable. */
const undecided = /^[ \t]*(?:[-+*>#|~`_: \t]+|\d{1,3}[.)][ \t]*)$/;

const reader = parser.configure([
  Table,
  Strikethrough,
  {
    // These remain text. A setext line of dashes would turn a paragraph into a heading while a list is being written.
    remove: ["HTMLBlock", "HTMLTag", "Entity", "IndentedCode", "SetextHeading", "LinkReference"],
    parseInline: [
      {
        name: "WebAddress",
        parse(context, next, at) {
          const isFirst = at === context.offset || !/[\p{L}\p{N}]/u.test(context.slice(at - 1, at));
          if ((next !== 104 && next !== 72) || !isFirst) return -1;
          address.lastIndex = 0;
          const [found = ""] = address.exec(context.slice(at, Math.min(context.end, at + LONGEST_ADDRESS))) ?? [];
          const written = withoutEnd(found);
          return webAddress(written) ? context.addElement(context.elt("URL", at, at + written.length)) : -1;
        },
      },
    ],
  },
]);

/**
 * `isOpen`: the text is still being written. Open marks at its end count as closed, so that the form does not change later.
 */
export function readMarkdown(text: string, isOpen = false): Markdown {
  const shown = isOpen ? closed(text) : text;
  return { text: shown, root: reader.parse(shown).topNode };
}

/** Whether a text has no Markdown, only plain paragraphs. */
export function isPlain({ root }: Markdown): boolean {
  for (let block = root.firstChild; block; block = block.nextSibling) {
    if (block.name !== "Paragraph" || block.firstChild) return false;
  }
  return true;
}

/** The start of the last block, which may continue after the end of the text; 0 if it is the only block. */
export function lastBlockIn({ root }: Markdown): number {
  return root.lastChild?.from ?? 0;
}

/** A web address in the form that the browser requests; `undefined` for anything else. */
export function webAddress(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text).href : undefined;
}

/** Whether an image has no address yet, because its text is still being written. */
export function isToCome(target: string): boolean {
  return target === INCOMPLETE_IMAGE_PLACEHOLDER;
}

function closed(text: string): string {
  const from = text.lastIndexOf("\n") + 1;
  const decided = undecided.test(text.slice(from)) ? text.slice(0, Math.max(0, from - 1)) : text;
  const whole = remend(decided.replace(/(?<=\s)[*_~`]+$/, ""), {
    linkMode: "text-only",
    comparisonOperators: false,
    htmlTags: false,
    katex: false,
    setextHeadings: false,
    singleTilde: false,
  });
  const [above = "", line = ""] = `\n${whole}`.split("\n").slice(-2);
  // The header row of a table whose second row is still incomplete.
  if (!/^ {0,3}\|.*\S/.test(line) || above.includes("|") || isInCode(whole)) return whole;
  const columns = line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/).length;
  return `${whole}\n|${"-|".repeat(columns)}`;
}

function isInCode(text: string): boolean {
  return reader.parse(text).topNode.lastChild?.name === "FencedCode";
}

/** Removes trailing punctuation, which does not belong to the address. */
function withoutEnd(written: string): string {
  let end = written.length;
  while (".,;:!?*_~]".includes(written[end - 1] ?? " ") || (written[end - 1] === ")" && !written.includes("(")))
    end -= 1;
  return written.slice(0, end);
}
