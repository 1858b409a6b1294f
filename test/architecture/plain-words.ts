import { type Node, parseSync, Visitor } from "oxc-parser";

/** A writing habit that hides the subject. `instead`: the advice to the author. */
export interface Habit {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** The worst habits, which comments, messages and titles of tests must not contain. */
export const habits: readonly Habit[] = [
  {
    pattern: /\b(?:somebody|nobody|anybody|everybody|whoever|whatever)\b/i,
    instead: "name the caller, person, process or value",
  },
  { pattern: /(?:^|[.:;] )Who (?!\w+ ?\?)\w+s\b[^?]*$/, instead: "begin the sentence with a noun" },
  {
    pattern: /(?:^|[.;] )(?:undefined|null|absent|true|false): /i,
    instead: "say it in a sentence: `undefined` once the machine has stopped",
  },
  { pattern: /\b(?:hears?|unheard|has lain|have lain|attends? to)\b/i, instead: "say what the code does" },
  {
    pattern: /(?<!\bthere) \bis no (?!longer\b|more\b|such\b)[a-z]/i,
    instead: "say what the value is, or what is expected",
  },
];

export interface Prose {
  readonly line: number;
  readonly text: string;
}

/** The comments of a source file, and its texts of more than one word. */
export function proseOf(path: string, source: string): readonly Prose[] {
  const { program, comments } = parseSync(path, source);
  const found: { readonly start: number; readonly text: string }[] = [];
  for (const { start, value } of comments) {
    // Skips the two characters that begin a comment.
    let at = start + 2;
    for (const line of value.split("\n")) {
      found.push({ start: at, text: line.replace(/^[\s*]+/, "").trim() });
      at += line.length + 1;
    }
  }
  const add = ({ start }: Pick<Node, "start">, text: string): void => {
    if (/\S\s+\S/.test(text)) found.push({ start, text });
  };
  new Visitor({
    Literal: (node) => (typeof node.value === "string" ? add(node, node.value) : undefined),
    TemplateElement: (node) => add(node, node.value.raw),
    JSXText: (node) => add(node, node.value),
  }).visit(program);
  const lines = source.split("\n");
  const starts = [0];
  for (const { length } of lines) starts.push((starts.at(-1) ?? 0) + length + 1);
  const lineAt = (place: number): number => starts.findLastIndex((begin) => begin <= place) + 1;
  return found.map(({ start, text }) => ({ line: lineAt(start), text }));
}
