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

/** The text with the codes of characters that hide something; for attributes and single lines. */
export function plainText(text: string): string {
  return text.replace(hiding, codeOf);
}

/** The first line or so of a text. */
export function oneLine(text: string, most = 160): string {
  const line = plainText(text.slice(0, most * 2))
    .replace(/\s+/g, " ")
    .trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** Text that somebody else wrote, as text and nothing else. */
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

/** Longer texts are shown in pieces: a page with 5 MB of text in one element stands still. */
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
