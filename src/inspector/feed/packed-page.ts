import type { PackedContents, PackedHead, PageData } from "./wire.ts";

const ROWS_A_LINE = 200;
const contents: readonly PackedContents[] = ["transitions", "messages", "prompts", "calls"];

/**
 * A page's data as lines `NAME KEY JSON`. A browser reads them one by one, so it can draw and respond meanwhile. The
 * first line is `head`, followed by `rows` in order, then contents by the encoded id of their agent or call.
 */
export function packedLines({ rows, transitions, messages, prompts, calls, ...head }: PageData): string[] {
  const parts = { transitions, messages, prompts, calls };
  const packed: PackedHead = { ...head, rowCount: rows.length, holds: contents.filter((name) => parts[name]) };
  const lines = [`head  ${JSON.stringify(packed)}`];
  for (let from = 0; from < rows.length; from += ROWS_A_LINE) {
    lines.push(`rows  ${JSON.stringify(rows.slice(from, from + ROWS_A_LINE))}`);
  }
  for (const name of contents) {
    for (const [id, value] of Object.entries(parts[name] ?? {})) {
      lines.push(`${name} ${encodeURIComponent(id)} ${JSON.stringify(value)}`);
    }
  }
  return lines;
}
