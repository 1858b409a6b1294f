/** The text after an edit, or the reason why it cannot be made. */
export type EditedText =
  | { readonly ok: true; readonly text: string; readonly count: number; readonly line: number }
  | { readonly ok: false; readonly why: string };

interface Edit {
  readonly old: string;
  readonly new: string;
  readonly all: boolean;
}

/**
 * Replaces one passage, or all of them. In a text whose lines all end with CRLF, the passages may be given with LF, and the new lines end
 * with CRLF.
 */
export function editText(text: string, edit: Edit): EditedText {
  const exact = replaced(text, edit);
  if (exact.ok || !text.includes("\r\n") || /(?<!\r)\n/.test(text) || edit.old.includes("\r")) {
    return exact.ok && hasOnlyCrlf(text) ? { ...exact, text: withCrlf(exact.text) } : exact;
  }
  const plain = replaced(text.replaceAll("\r\n", "\n"), edit);
  return plain.ok ? { ...plain, text: withCrlf(plain.text) } : plain;
}

function hasOnlyCrlf(text: string): boolean {
  return text.includes("\r\n") && !/(?<!\r)\n/.test(text);
}

function withCrlf(text: string): string {
  return text.replaceAll(/(?<!\r)\n/g, "\r\n");
}

function replaced(text: string, { old, new: next, all }: Edit): EditedText {
  const parts = text.split(old);
  const count = parts.length - 1;
  if (count === 0)
    return { ok: false, why: "old does not occur in it; read the file, and give old exactly as it is there" };
  if (count > 1 && !all) {
    return { ok: false, why: `old occurs ${count} times in it; give more of its surroundings, or all: true` };
  }
  const line = (parts[0] ?? "").split("\n").length;
  return { ok: true, text: parts.join(next), count, line };
}
