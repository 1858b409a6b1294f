import cliTruncate from "cli-truncate";
import stringWidth from "string-width";
import wrapAnsi from "wrap-ansi";

/** Width of a text in terminal columns. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** Cuts the text to this many columns and ends it with `…`. */
export function truncate(text: string, columns: number): string {
  return widthOf(text) <= columns ? text : cliTruncate(text, Math.max(0, columns));
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)));
}

export function padStart(text: string, columns: number): string {
  return " ".repeat(Math.max(0, columns - widthOf(text))) + text;
}

/** Wraps the text to this many columns, at spaces if possible. */
export function wrap(text: string, columns: number): string[] {
  return wrapAnsi(text, Math.max(1, columns), { hard: true }).split("\n");
}

/** Wraps each line that is wider than this many columns and keeps its indentation. Other lines are unchanged. */
export function wrapText(text: string, columns: number): string[] {
  return text.split("\n").flatMap((line) => {
    if (widthOf(line) <= columns) return [line];
    const indent = /^ */.exec(line)?.[0] ?? "";
    const kept = indent.length < columns / 2 ? indent : "";
    return wrap(line.trim(), columns - kept.length).map((part) => kept + part);
  });
}
