import type { SyntaxNode } from "@lezer/common";
import { parser, Strikethrough, Table } from "@lezer/markdown";
import remend, { INCOMPLETE_IMAGE_PLACEHOLDER } from "remend";

/** A text with the places of what is Markdown in it. */
export interface Markdown {
  readonly text: string;
  readonly root: SyntaxNode;
}

/** Ends at blanks and at what no address holds. */
const address = /https?:\/\/[^\s<>"'`]+/iy;
const LONGEST_ADDRESS = 2_000;
/** The last line of a text of which nothing can be known yet. */
const undecided = /^[ \t]*(?:[-+*>#|~`_: \t]+|\d{1,3}[.)][ \t]*)$/;

const reader = parser.configure([
  Table,
  Strikethrough,
  {
    // They stay text. A line of dashes below a text would make it a heading while a list is written.
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

/** `isOpen`: the text is still written. What is open at its end counts as closed there, so that no form changes when its mark comes. */
export function readMarkdown(text: string, isOpen = false): Markdown {
  const shown = isOpen ? closed(text) : text;
  return { text: shown, root: reader.parse(shown).topNode };
}

/** Whether a text says the same without its marks: paragraphs of plain text. */
export function isPlain({ root }: Markdown): boolean {
  for (let block = root.firstChild; block; block = block.nextSibling) {
    if (block.name !== "Paragraph" || block.firstChild) return false;
  }
  return true;
}

/** Where the last block of a text begins, which may go on behind the end of what is read; 0 if there is only one. */
export function lastBlockIn({ root }: Markdown): number {
  return root.lastChild?.from ?? 0;
}

/** An address of the web in the form in which the browser asks for it; undefined for anything else. */
export function webAddress(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  return URL.canParse(text) ? new URL(text).href : undefined;
}

/** Whether an image has no address yet, as its text is still written. */
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
  // A first row behind which nothing but the beginning of the second one has come.
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

/** Marks at the end of a sentence are no part of an address in it. */
function withoutEnd(written: string): string {
  let end = written.length;
  while (".,;:!?*_~]".includes(written[end - 1] ?? " ") || (written[end - 1] === ")" && !written.includes("(")))
    end -= 1;
  return written.slice(0, end);
}
