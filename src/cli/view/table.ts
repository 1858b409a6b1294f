import type { CliContext } from "../cli-context.ts";
import { oneLine } from "./terminal-text.ts";
import { padEnd, padStart, truncate, widthOf } from "./text-width.ts";

export interface Column {
  readonly title: string;
  /** Alignment of the cells. Default `left`. */
  readonly align?: "left" | "right";
  /** Maximum width in terminal columns; longer cells are cut. */
  readonly maxWidth?: number;
  /** Minimum width to which cells may be cut if the table is too wide. Default: they are not cut. */
  readonly minWidth?: number;
  /** Columns with a rank are omitted if the table is too wide, the lowest rank first. */
  readonly leaveOut?: number;
}

/**
 * Formats a table: the titles, then one line per row. Columns are two spaces apart; lines have no trailing spaces. If
 * lines would be wider than `width`, columns are omitted and cells cut, as far as the columns allow.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = Number.POSITIVE_INFINITY,
): string[] {
  const shown = fittingColumns(measured(columns, rows), width);
  const [{ cells: titles } = { cells: [] }] = shown;
  return titles.map((_, row) => {
    const line = shown.map(({ column, cells, width: columnWidth }) =>
      (column.align === "right" ? padStart : padEnd)(truncate(cells[row] ?? "", columnWidth), columnWidth),
    );
    return line.join(gap).trimEnd();
  });
}

/** Whether a table of this width fits all columns. */
export function fitsTable(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): boolean {
  return excessOf(measured(columns, rows), width) <= 0;
}

const gap = "  ";

interface MeasuredColumn {
  readonly column: Column;
  /** The title and the cells of all rows. */
  readonly cells: readonly string[];
  readonly width: number;
}

function measured(columns: readonly Column[], rows: readonly (readonly string[])[]): MeasuredColumn[] {
  return columns.map((column, index) => {
    const cells = [column.title, ...rows.map((row) => row[index] ?? "")].map((text) => cellText(text, column));
    return { column, cells, width: Math.max(...cells.map(widthOf)) };
  });
}

/** Missing terminal columns if all cells are cut to their minimum; 0 or less if the table fits. */
function excessOf(columns: readonly MeasuredColumn[], width: number): number {
  const least = columns.reduce((total, column) => total + leastWidth(column), 0);
  return least + gap.length * (columns.length - 1) - width;
}

function leastWidth({ column, width }: MeasuredColumn): number {
  return Math.min(width, column.minWidth ?? width);
}

function fittingColumns(all: readonly MeasuredColumn[], width: number): MeasuredColumn[] {
  let columns = [...all];
  while (excessOf(columns, width) > 0) {
    const ranks = columns.flatMap(({ column: { leaveOut } }) => leaveOut ?? []);
    if (ranks.length === 0) break;
    const lowest = Math.min(...ranks);
    columns = columns.filter(({ column }) => column.leaveOut !== lowest);
  }
  return cutColumns(columns, width);
}

/** Cuts columns that may be cut until the table fits, the last ones first. */
function cutColumns(columns: readonly MeasuredColumn[], width: number): MeasuredColumn[] {
  const natural = columns.reduce((total, column) => total + column.width, gap.length * (columns.length - 1));
  let left = Math.max(0, natural - width);
  return columns
    .toReversed()
    .map((column) => {
      const cut = Math.min(left, column.width - leastWidth(column));
      left -= cut;
      return { ...column, width: column.width - cut };
    })
    .toReversed();
}

/** The tree branch before a text; its spaces are kept. */
const branchPattern = /^[ ─│├└]*/u;

function cellText(text: string, { maxWidth }: Column): string {
  const branch = branchPattern.exec(text)?.[0] ?? "";
  const line = `${branch}${oneLine(text.slice(branch.length))}`;
  return maxWidth === undefined ? line : truncate(line, maxWidth);
}

/** Maximum width of a line: the terminal's columns, else `COLUMNS`, else unlimited. */
export function columnsOf({ stdout, environment }: Pick<CliContext, "stdout" | "environment">): number {
  if (stdout.isTTY && stdout.columns > 0) return stdout.columns;
  const given = Number(environment["COLUMNS"]);
  return Number.isSafeInteger(given) && given > 0 ? given : Number.POSITIVE_INFINITY;
}

/** An agent and its parent. */
interface TreeMember {
  readonly agentId: string;
  readonly parentAgentId: string | null;
}

interface Placed<Member> {
  readonly member: Member;
  /** Branches before its name: `├─ `, `│  └─ `; empty for a root. */
  readonly branch: string;
}

/**
 * Orders agents as a tree: parents before children, children in the given order. An agent without its parent in the
 * list is a root.
 */
export function placeTree<Member extends TreeMember>(members: readonly Member[]): Placed<Member>[] {
  const known = new Set(members.map((member) => member.agentId));
  const children = new Map<string | null, Member[]>();
  for (const member of members) {
    const parent = member.parentAgentId !== null && known.has(member.parentAgentId) ? member.parentAgentId : null;
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [member]);
    else siblings.push(member);
  }
  const placed: Placed<Member>[] = [];
  const visit = (member: Member, branch: string, below: string): void => {
    placed.push({ member, branch });
    const siblings = children.get(member.agentId) ?? [];
    for (const [index, child] of siblings.entries()) {
      const isLast = index === siblings.length - 1;
      visit(child, `${below}${isLast ? "└─ " : "├─ "}`, `${below}${isLast ? "   " : "│  "}`);
    }
  };
  for (const root of children.get(null) ?? []) visit(root, "", "");
  return placed;
}
