import type { SyntaxNode } from "@lezer/common";
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "./format.ts";
import { isPlain, isToCome, lastBlockIn, type Markdown, readMarkdown, webAddress } from "./markdown.ts";
import { copyText } from "./page-state.ts";
import { Icon } from "./parts.tsx";
import { type JsonValue, JsonView, LongText, oneLine, plainText, Untrusted } from "./untrusted.tsx";

/** The search hit to show; its message is unfolded. `null` without a search. */
export const sought = signal<{ readonly messageId: string; readonly text: string } | null>(null);

/** Characters parsed as Markdown at once, because parsing may take quadratic time. The rest is shown on request. */
const READ_AT_ONCE = 20_000;
/** A live text is shown up to this length; what follows `READ_AT_ONCE` is shown as plain text. */
const MOST_WRITTEN = 200_000;
/** Deepest nesting of quotes, lists and emphasis. Deeper content is shown as text. */
const DEEPEST = 8;
/** Texts with more characters or lines are folded, if they may be. */
const LONG = 1_500;
const MANY_LINES = 20;
/** Characters and lines shown of a folded text. */
const FOLDED_LENGTH = 700;
const FOLDED_LINES = 8;
/** How deep short JSON is opened at first. */
const OPEN_DEPTH_OF_SHORT = 12;
/** A longer text is not parsed as JSON. */
const LONGEST_JSON = 2_000_000;

interface TextProps {
  readonly text: string;
  /** `prose` may be Markdown; `data` (tool arguments and results) is JSON or plain text. */
  readonly kind: "prose" | "data";
  /** Whether the text is still being written. */
  readonly isWriting?: boolean;
  /** Whether a long text is folded at first. */
  readonly isFolded?: boolean;
  /** A substring to find and show. */
  readonly look?: string | undefined;
}

/** A text from a person, a model or a tool, rendered as Markdown or JSON. A button shows the raw text. */
export function TextView({ text, kind, isWriting = false, isFolded = false, look }: TextProps) {
  const lookedFor = look !== undefined && look !== "" && text.includes(look) ? look : undefined;
  const [isRaw, setRaw] = useState(lookedFor !== undefined);
  const [isOpen, setOpen] = useState(lookedFor !== undefined);
  const json = useMemo(() => (kind === "data" ? jsonIn(text) : undefined), [text, kind]);
  const isLong = isFolded && (text.length > LONG || linesIn(text, MANY_LINES + 1) > MANY_LINES);
  const isCut = isLong && !isOpen;
  const length = isCut ? foldedLength(text) : READ_AT_ONCE;
  const isMarkdown = kind === "prose" && !isRaw;
  const head = isMarkdown ? text.slice(0, length) : "";
  const markdown = useMemo(() => readMarkdown(head, isWriting || isCut), [head, isWriting, isCut]);
  const hasForm = json !== undefined || (kind === "prose" && (isRaw || !isPlain(markdown)));
  return (
    <div class="shown-text">
      {(hasForm || isLong || kind === "data") && !isWriting && (
        <span class="text-tools">
          {hasForm && (
            <button
              type="button"
              class="link"
              aria-pressed={isRaw}
              title="The text as it is stored"
              onClick={() => setRaw(!isRaw)}
            >
              raw
            </button>
          )}
          {kind === "data" && <CopyButton text={text} />}
        </span>
      )}
      {lookedFor !== undefined && isRaw && isOpen ? (
        <FoundText text={text} found={lookedFor} />
      ) : isCut && (json !== undefined || isRaw) ? (
        <code class="quiet">{oneLine(text, FOLDED_LENGTH / 2)}</code>
      ) : json !== undefined && !isRaw ? (
        <JsonView value={json} {...(text.length > LONG ? {} : { openDepth: OPEN_DEPTH_OF_SHORT })} />
      ) : kind === "data" || isRaw ? (
        <LongText text={isCut ? text.slice(0, length) : text} isCode={kind === "data"} />
      ) : (
        <>
          {isCut || isWriting || text.length <= length ? <Root of={markdown} /> : <MarkdownPiece text={text} />}
          {isWriting && text.length > length && (
            <div class="long-text">
              <Untrusted text={text.slice(length, MOST_WRITTEN)} />
            </div>
          )}
        </>
      )}
      {isLong && (
        <button type="button" class="link fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Fold" : `Show all: ${sizeOf(text)}`}
        </button>
      )}
    </div>
  );
}

/** A text scrolled to a search hit. */
function FoundText({ text, found }: { readonly text: string; readonly found: string }) {
  const mark = useRef<HTMLElement>(null);
  useLayoutEffect(() => mark.current?.scrollIntoView({ block: "center" }), []);
  const at = text.indexOf(found);
  // Show only a limited part of a very long text.
  const from = Math.max(0, at - READ_AT_ONCE);
  const behind = at + found.length;
  return (
    <div class="long-text">
      {from > 0 && <span class="quiet">{plural(from, "character")} before … </span>}
      <Untrusted text={text.slice(from, at)} />
      <mark ref={mark}>
        <Untrusted text={found} />
      </mark>
      <LongText text={text.slice(behind)} />
    </div>
  );
}

export function CopyButton({ text }: { readonly text: string }) {
  return (
    <button
      type="button"
      class="plain copy"
      aria-label="Copy text"
      title="Copy the text as it is stored"
      onClick={() => void copyText(text, "Text")}
    >
      <Icon name="copy" />
    </button>
  );
}

function sizeOf(text: string): string {
  return `${plural(text.length, "character")} in ${plural(linesIn(text, Number.POSITIVE_INFINITY), "line")}`;
}

/** Counts the lines of a text, up to a maximum. */
function linesIn(text: string, most: number): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && lines < most; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

function foldedLength(text: string): number {
  let end = -1;
  for (let line = 0; line < FOLDED_LINES; line += 1) {
    end = text.indexOf("\n", end + 1);
    if (end < 0) break;
  }
  return Math.min(FOLDED_LENGTH, end < 0 ? text.length : end);
}

/** Parses a text as a JSON object or list. */
function jsonIn(text: string): JsonValue | undefined {
  if (text.length > LONGEST_JSON || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** The beginning of a long text, up to the end of a block. The rest is shown on request. */
function MarkdownPiece({ text }: { readonly text: string }) {
  const [goesOn, setGoesOn] = useState(false);
  const piece = useMemo(() => {
    const longest = readMarkdown(text.slice(0, READ_AT_ONCE));
    const end = text.length > READ_AT_ONCE ? lastBlockIn(longest) : 0;
    return end > 0 ? readMarkdown(text.slice(0, end)) : longest;
  }, [text]);
  const rest = text.length - piece.text.length;
  return (
    <>
      <Root of={piece} />
      {rest > 0 && goesOn && <MarkdownPiece text={text.slice(piece.text.length)} />}
      {rest > 0 && !goesOn && (
        <button type="button" class="link" onClick={() => setGoesOn(true)}>
          … {rest.toLocaleString("en")} more characters
        </button>
      )}
    </>
  );
}

function Root({ of: { root, text } }: { readonly of: Markdown }) {
  return <Blocks of={{ node: root, text, depth: 0 }} />;
}

/** A Markdown node to render. */
interface Part {
  readonly node: SyntaxNode;
  readonly text: string;
  readonly depth: number;
  readonly isInLink?: boolean;
}

interface PartProps {
  readonly of: Part;
}

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

function sourceOf({ node, text }: Part): string {
  return text.slice(node.from, node.to);
}

function Blocks({ of }: PartProps) {
  const blocks = childrenOf(of.node).filter(({ name }) => !name.endsWith("Mark"));
  return (
    <div class="markdown">
      {blocks.map((node, index) => (
        <BlockView key={index} of={{ ...of, node, depth: of.depth + 1 }} />
      ))}
    </div>
  );
}

function BlockView({ of }: PartProps) {
  const { node, depth } = of;
  const isContainer = node.name === "Blockquote" || node.name.endsWith("List");
  if (isContainer && depth > DEEPEST) {
    return (
      <p>
        <Untrusted text={sourceOf(of)} />
      </p>
    );
  }
  const heading = /^ATXHeading(\d)$/.exec(node.name);
  // Not a heading element, so that foreign text does not change the page's outline.
  if (heading) {
    return (
      <p class={`heading level-${heading[1]}`}>
        <Inlines of={of} />
      </p>
    );
  }
  switch (node.name) {
    case "FencedCode":
      return <CodeBlock of={of} />;
    case "Blockquote":
      return (
        <blockquote>
          <Blocks of={of} />
        </blockquote>
      );
    case "BulletList":
    case "OrderedList": {
      const items = childrenOf(node).map((item, index) => (
        <li key={index}>
          <Blocks of={{ ...of, node: item }} />
        </li>
      ));
      if (node.name === "BulletList") return <ul>{items}</ul>;
      return <ol start={Number.parseInt(sourceOf(of), 10)}>{items}</ol>;
    }
    case "Table":
      return <TableView of={of} />;
    case "HorizontalRule":
      return <hr />;
    default:
      return (
        <p>
          <Inlines of={of} />
        </p>
      );
  }
}

function CodeBlock({ of }: PartProps) {
  const parts = childrenOf(of.node);
  const named = (name: string) => parts.filter((part) => part.name === name).map((node) => sourceOf({ ...of, node }));
  const [language = ""] = named("CodeInfo").join("").split(/\s/);
  const code = named("CodeText").join("");
  return (
    <div class="code-block">
      <span class="text-tools">
        {language !== "" && <span class="quiet">{oneLine(language, 20)}</span>}
        <CopyButton text={code} />
      </span>
      <LongText text={code} isCode />
    </div>
  );
}

function TableView({ of }: PartProps) {
  const [head, ...rows] = childrenOf(of.node).filter(({ name }) => name !== "TableDelimiter" && name !== "QuoteMark");
  const headCells = head ? cellsOf(head) : [];
  const drawn = (cell: SyntaxNode | undefined) => cell && <Inlines of={{ ...of, node: cell }} />;
  return (
    <div class="table-box" role="group" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {headCells.map((cell, index) => (
              <th key={index} scope="col">
                {drawn(cell)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {cellsOf(row)
                .slice(0, headCells.length)
                .map((cell, column) => (
                  <td key={column}>{drawn(cell)}</td>
                ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The cells of a row. Two delimiters without a cell between them make an empty cell. */
function cellsOf(row: SyntaxNode): readonly (SyntaxNode | undefined)[] {
  const parts = childrenOf(row);
  return parts.flatMap((part, index) => {
    if (part.name === "TableCell") return [part];
    return part.name === "TableDelimiter" && parts[index - 1]?.name === "TableDelimiter" ? [undefined] : [];
  });
}

/** The content of a node without its marks, or the content `between` two positions. */
function Inlines({ of, between }: PartProps & { readonly between?: readonly [number, number] }) {
  const { node, text } = of;
  const [start, end] = between ?? [node.from, node.to];
  const drawn: ComponentChildren[] = [];
  let from = start;
  const write = (to: number): void => {
    // Continuation lines in a list or quote are indented.
    if (to > from) drawn.push(<Untrusted text={text.slice(from, to).replace(/\n[ \t]+/g, "\n")} />);
  };
  for (const child of childrenOf(node)) {
    if (child.from < start || child.to > end) continue;
    // Remove the spaces next to these marks too.
    const isBeside = child.name === "HeaderMark" || child.name === "QuoteMark";
    write(child.name === "HeaderMark" ? trimmedEnd(text, from, child.from) : child.from);
    from = child.to;
    if (isBeside) while (from < end && /[ \t]/.test(text[from] ?? "")) from += 1;
    if (!child.name.endsWith("Mark")) {
      drawn.push(<InlineView of={{ ...of, node: child, depth: of.depth + 1 }} />);
    }
  }
  write(end);
  return <>{drawn}</>;
}

function trimmedEnd(text: string, from: number, to: number): number {
  return from + text.slice(from, to).trimEnd().length;
}

function InlineView({ of }: PartProps) {
  const { node, isInLink = false } = of;
  const source = sourceOf(of);
  if (of.depth > DEEPEST * 2) return <Untrusted text={source} />;
  switch (node.name) {
    case "StrongEmphasis":
      return (
        <b>
          <Inlines of={of} />
        </b>
      );
    case "Emphasis":
      return (
        <em>
          <Inlines of={of} />
        </em>
      );
    case "Strikethrough":
      return (
        <del>
          <Inlines of={of} />
        </del>
      );
    case "InlineCode":
      return (
        <code>
          <Untrusted text={codeIn(source)} />
        </code>
      );
    case "Escape":
      return <Untrusted text={source.slice(1)} />;
    case "HardBreak":
      return <>{"\n"}</>;
    case "URL": {
      const target = webAddress(source);
      return target !== undefined && !isInLink ? (
        <WebLink target={target} said={source}>
          <Untrusted text={source} />
        </WebLink>
      ) : (
        <Untrusted text={source} />
      );
    }
    case "Autolink":
      return <InlineView of={{ ...of, node: node.getChild("URL") ?? node }} />;
    case "Link":
    case "Image":
      return <Reference of={of} />;
    default:
      return <Untrusted text={source} />;
  }
}

/** A link, or an image, which is not loaded. Shown as text if it does not lead to the web. */
function Reference({ of }: PartProps) {
  const { node, text, isInLink = false } = of;
  const written = node.getChild("URL");
  const [opening, closing] = node.getChildren("LinkMark");
  if (!written || !opening || !closing) return <Untrusted text={sourceOf(of)} />;
  const url = text.slice(written.from, written.to).replace(/^<|>$/g, "");
  const isImage = node.name === "Image";
  const between = [opening.to, closing.from] as const;
  const inside = <Inlines of={{ ...of, isInLink: isInLink || !isImage }} between={between} />;
  if (isImage) {
    if (isToCome(url)) return inside;
    return (
      <span class="quiet">
        image {inside} at <code>{plainText(url.slice(0, 400))}</code>, not loaded
      </span>
    );
  }
  const target = webAddress(url);
  if (target === undefined) return <Untrusted text={sourceOf(of)} />;
  if (isInLink) return inside;
  return (
    <WebLink target={target} said={text.slice(...between)}>
      {inside}
    </WebLink>
  );
}

function codeIn(source: string): string {
  const ticks = /^`*/.exec(source)?.[0].length ?? 0;
  const code = source.slice(ticks, source.length - ticks).replaceAll("\n", " ");
  return code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "" ? code.slice(1, -1) : code;
}

interface LinkProps {
  readonly target: string;
  /** The link text as written. */
  readonly said: string;
  readonly children: ComponentChildren;
}

/** A link followed by its address, unless the link text is that address. */
function WebLink({ target, said, children }: LinkProps) {
  const isSaid = said === target || `${said}/` === target;
  return (
    <>
      <a href={target} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
      {!isSaid && <code class="quiet link-target"> {plainText(target)}</code>}
    </>
  );
}
