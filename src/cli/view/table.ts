import { oneLine, padEnd, padStart, truncate, widthOf } from "./text-width.ts";

export interface Column {
  readonly title: string;
  /** Default `left`. */
  readonly align?: "left" | "right";
  /** The widest it may get, in terminal columns; longer cells are cut. */
  readonly maxWidth?: number;
}

/** A table as lines: titles, then one line a row; columns two spaces apart, nothing at line ends. */
export function tableLines(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map((column) => column.title), ...rows].map((row) =>
    columns.map((column, index) => cellText(row[index] ?? "", column)),
  );
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => widthOf(row[index] ?? ""))));
  return cells.map((row) =>
    columns
      .map((column, index) => (column.align === "right" ? padStart : padEnd)(row[index] ?? "", widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

function cellText(text: string, { maxWidth }: Column): string {
  // What stands before a name is the branch of a tree.
  const line = `${/^ */u.exec(text)?.[0] ?? ""}${oneLine(text)}`;
  return maxWidth === undefined ? line : truncate(line, maxWidth);
}
