import { useState } from "preact/hooks";

/**
 * Characters that change how other text is shown, or that show nothing: controls, directions, zero widths, tags. Texts of models
 * and tools could hide behind them, so that their code is shown in their place. Joiners are left out, which scripts and emoji
 * need.
 */
const hiding = /(?![\n\r\t\u200c\u200d])[\p{Cc}\p{Cf}\u2028\u2029]/gu;

function codeOf(letter: string): string {
  return `⟨U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The text with hidden characters replaced by their codes; for attributes and single lines. */
export function plainText(text: string): string {
  return text.replace(hiding, codeOf);
}

/** The beginning of a text, about one line. */
export function oneLine(text: string, most = 160): string {
  const line = plainText(text.slice(0, most * 2))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** A part of a line, including the spaces at its ends. */
export function flowText(text: string): string {
  return plainText(text).replace(/\s+/g, " ");
}

/** Text that a person, a model or a tool wrote, shown as plain text. */
export function Untrusted({ text }: { readonly text: string }) {
  const parts: (string | { readonly code: string })[] = [];
  let from = 0;
  for (const { 0: letter, index } of text.matchAll(hiding)) {
    parts.push(text.slice(from, index), { code: codeOf(letter) });
    from = index + letter.length;
  }
  if (from === 0) return <>{text}</>;
  parts.push(text.slice(from));
  return <>{parts.map((part) => (typeof part === "string" ? part : <span class="hidden-letter">{part.code}</span>))}</>;
}

/** Longer texts are shown in pieces, because a page with 5 MB of text in one element freezes. */
const PIECE = 20_000;

/** A text of any length over several lines. */
export function LongText({ text, isCode = false }: { readonly text: string; readonly isCode?: boolean }) {
  const [shown, setShown] = useState(PIECE);
  const rest = text.length - shown;
  return (
    <div class={isCode ? "long-text code" : "long-text"}>
      <Untrusted text={rest > 0 ? text.slice(0, shown) : text} />
      {rest > 0 && (
        <button type="button" class="link" onClick={() => setShown(shown + PIECE * 5)}>
          … {rest.toLocaleString("en")} more characters
        </button>
      )}
    </div>
  );
}

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

interface JsonProps {
  readonly value: JsonValue;
  /** Deeper values are closed at first. Default: 2. */
  readonly openDepth?: number;
}

interface NodeProps extends Required<JsonProps> {
  readonly name?: string | number;
  readonly depth: number;
}

const OPEN_DEPTH = 2;
const MOST_ITEMS = 100;
const LONGEST_TEXT = 2_000;

/** A JSON value with collapsible members. Closed members are not rendered, so any depth and size can be shown. */
export function JsonView({ value, openDepth = OPEN_DEPTH }: JsonProps) {
  return (
    <div class="json">
      <JsonNode value={value} depth={0} openDepth={openDepth} />
    </div>
  );
}

function JsonNode({ name, value, depth, openDepth }: NodeProps) {
  const [isOpen, setOpen] = useState(depth < openDepth);
  const [most, setMost] = useState(MOST_ITEMS);
  if (value === null || typeof value !== "object") {
    return (
      <div class="json-line">
        <Key name={name} />
        <Leaf value={value} />
      </div>
    );
  }
  const isList = Array.isArray(value);
  const items: [string | number, JsonValue][] = isList ? [...value.entries()] : Object.entries(value);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (items.length === 0) {
    return (
      <div class="json-line">
        <Key name={name} />
        {open}
        {close}
      </div>
    );
  }
  return (
    <div class="json-node">
      <button type="button" class="json-line json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Key name={name} />
        {open}
        {!isOpen && (
          <span class="quiet">
            {" "}
            {items.length} {items.length === 1 ? "item" : "items"} {close}
          </span>
        )}
      </button>
      {isOpen && (
        <div class="json-inside">
          {items.slice(0, most).map(([key, item]) => (
            <JsonNode key={key} name={key} value={item} depth={depth + 1} openDepth={openDepth} />
          ))}
          {items.length > most && (
            <button type="button" class="link" onClick={() => setMost(most * 10)}>
              … {items.length - most} more
            </button>
          )}
        </div>
      )}
      {isOpen && <div class="json-line">{close}</div>}
    </div>
  );
}

function Key({ name }: { readonly name: string | number | undefined }) {
  if (name === undefined) return null;
  return (
    <span class="json-key">
      <Untrusted text={String(name)} />
      <span class="quiet">: </span>
    </span>
  );
}

function Leaf({ value }: { readonly value: string | number | boolean | null }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <span class="json-literal">{String(value)}</span>;
  const isLong = value.length > LONGEST_TEXT && !isWhole;
  return (
    <span class="json-text">
      "<Untrusted text={isLong ? value.slice(0, LONGEST_TEXT) : value} />"
      {isLong && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          … {value.length - LONGEST_TEXT} more characters
        </button>
      )}
    </span>
  );
}
