import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { plural } from "./format.ts";
import { type Block, type Inline, isPlain, markdownOf } from "./markdown.ts";
import { copyText } from "./page-state.ts";
import { Icon } from "./parts.tsx";
import { type JsonValue, JsonView, LongText, oneLine, plainText, Untrusted } from "./untrusted.tsx";

/** What a search has found: the message that holds it is unfolded and shows it. Null: nothing is looked for. */
export const sought = signal<{ readonly messageId: string; readonly text: string } | null>(null);

/** So much of a text is read as Markdown at once. The rest comes when it is asked for. */
const READ_AT_ONCE = 20_000;
/** A text that is being written is shown to its end. */
const MOST_WRITTEN = 200_000;
/** Texts that are longer are folded where they may be: characters, lines. */
const LONG = 1_500;
const MANY_LINES = 20;
/** What a folded text shows. */
const FOLDED_LENGTH = 700;
const FOLDED_LINES = 8;
/** Of JSON that is short. */
const OPEN_DEPTH_OF_SHORT = 12;
/** A longer text is not read as JSON. */
const LONGEST_JSON = 2_000_000;

interface TextProps {
  readonly text: string;
  /** `prose` may be Markdown; `data`, what tools take and give, is JSON or plain text. */
  readonly kind: "prose" | "data";
  /** The text is still written. */
  readonly isWriting?: boolean;
  /** A long text is folded at first. */
  readonly isFolded?: boolean;
  /** A part of it that is looked for. */
  readonly look?: string | undefined;
}

/** A text that somebody else wrote, in its form: Markdown or JSON, or as it is at the press of a button. */
export function TextView({ text, kind, isWriting = false, isFolded = false, look }: TextProps) {
  const lookedFor = look !== undefined && look !== "" && text.includes(look) ? look : undefined;
  const [isRaw, setRaw] = useState(lookedFor !== undefined);
  const [isOpen, setOpen] = useState(lookedFor !== undefined);
  const [most, setMost] = useState(READ_AT_ONCE);
  const json = useMemo(() => (kind === "data" ? jsonIn(text) : undefined), [text, kind]);
  const isLong = isFolded && (text.length > LONG || linesIn(text, MANY_LINES + 1) > MANY_LINES);
  const isCut = isLong && !isOpen;
  const length = isCut ? foldedLength(text) : isWriting ? MOST_WRITTEN : most;
  const blocks = useMemo(
    () => (kind === "prose" && !isRaw ? markdownOf(text.slice(0, length), isWriting || isCut) : []),
    [text, kind, isRaw, length, isWriting, isCut],
  );
  const hasForm = json !== undefined || (kind === "prose" && (isRaw || !isPlain(blocks)));
  const rest = text.length - length;
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
          <Blocks blocks={blocks} />
          {rest > 0 && !isCut && (
            <button type="button" class="link" onClick={() => setMost(most + READ_AT_ONCE * 5)}>
              … {rest.toLocaleString("en")} more characters
            </button>
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

/** With the place in sight that a search has found. */
function FoundText({ text, found }: { readonly text: string; readonly found: string }) {
  const mark = useRef<HTMLElement>(null);
  useLayoutEffect(() => mark.current?.scrollIntoView({ block: "center" }), []);
  const at = text.indexOf(found);
  // Of megabytes as much as is read at once.
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

/** How many lines a text has, counted up to a number. */
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

/** The object or list that a text is in JSON. */
function jsonIn(text: string): JsonValue | undefined {
  if (text.length > LONGEST_JSON || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function Blocks({ blocks }: { readonly blocks: readonly Block[] }) {
  return (
    <div class="markdown">
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { readonly block: Block }) {
  switch (block.type) {
    case "paragraph":
      return (
        <p>
          <Inlines parts={block.parts} />
        </p>
      );
    // No heading of the page: what somebody else wrote does not change its outline.
    case "heading":
      return (
        <p class={`heading level-${block.level}`}>
          <Inlines parts={block.parts} />
        </p>
      );
    case "code":
      return (
        <div class="code-block">
          <span class="text-tools">
            {block.language !== "" && <span class="quiet">{oneLine(block.language, 20)}</span>}
            <CopyButton text={block.text} />
          </span>
          <LongText text={block.text} isCode />
        </div>
      );
    case "quote":
      return (
        <blockquote>
          <Blocks blocks={block.blocks} />
        </blockquote>
      );
    case "list": {
      const items = block.items.map((blocks, index) => (
        <li key={index}>
          <Blocks blocks={blocks} />
        </li>
      ));
      return block.start === null ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div class="table-box" role="group" aria-label="Table" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {cellsOf(block.head, (cell) => (
                  <th scope="col">{cell}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {cellsOf(row, (cell) => (
                    <td>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr />;
    default:
      return block satisfies never;
  }
}

function cellsOf(
  cells: readonly (readonly Inline[])[],
  draw: (cell: ComponentChildren) => ComponentChildren,
): ComponentChildren {
  return cells.map((parts) => draw(<Inlines parts={parts} />));
}

interface InlinesProps {
  readonly parts: readonly Inline[];
  readonly isInLink?: boolean;
}

function Inlines({ parts, isInLink = false }: InlinesProps) {
  return (
    <>
      {parts.map((part, index) => (
        <InlineView key={index} part={part} isInLink={isInLink} />
      ))}
    </>
  );
}

function InlineView({ part, isInLink }: { readonly part: Inline; readonly isInLink: boolean }) {
  if (typeof part === "string") return <Untrusted text={part} />;
  if (part.type === "code") {
    return (
      <code>
        <Untrusted text={part.text} />
      </code>
    );
  }
  const inside = <Inlines parts={part.parts} isInLink={isInLink || part.type === "link"} />;
  switch (part.type) {
    case "strong":
      return <b>{inside}</b>;
    case "em":
      return <em>{inside}</em>;
    case "del":
      return <del>{inside}</del>;
    case "image":
      return (
        <span class="quiet">
          image {inside} at <code>{plainText(part.target.slice(0, 400))}</code>, not loaded
        </span>
      );
    case "link":
      return isInLink ? inside : <WebLink part={part}>{inside}</WebLink>;
    default:
      return part satisfies never;
  }
}

interface LinkProps {
  readonly part: Extract<Inline, { readonly type: "link" }>;
  readonly children: ComponentChildren;
}

/** A link with the address to which it leads, unless its words are that address. */
function WebLink({ part: { target, parts }, children }: LinkProps) {
  const [said, ...more] = parts;
  const isSaid = typeof said === "string" && more.length === 0 && (said === target || `${said}/` === target);
  return (
    <>
      <a href={target} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
      {!isSaid && <code class="quiet link-target"> {plainText(target)}</code>}
    </>
  );
}
