import type { CliContext } from "../cli-context.ts";
import { oneLine } from "./terminal-text.ts";
import { padEnd, padStart, truncate, widthOf } from "./text-width.ts";

export interface Column {
  readonly title: string;
  /** Default `left`. */
  readonly align?: "left" | "right";
  /** Maximum width in terminal columns; longer cells are cut. */
  readonly maxWidth?: number;
}

/** A table as lines: the titles, then one line a row. Columns are two spaces apart; lines have no trailing spaces. */
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
  // Leading spaces belong to the branch of a tree.
  const line = `${/^ */u.exec(text)?.[0] ?? ""}${oneLine(text)}`;
  return maxWidth === undefined ? line : truncate(line, maxWidth);
}

/** Maximum width of a line: the columns of the terminal, else `COLUMNS`, else unlimited. */
export function columnsOf({ stdout, environment }: Pick<CliContext, "stdout" | "environment">): number {
  if (stdout.isTTY && stdout.columns > 0) return stdout.columns;
  const given = Number(environment["COLUMNS"]);
  return Number.isSafeInteger(given) && given > 0 ? given : Number.POSITIVE_INFINITY;
}

/** An agent with its parent. */
interface TreeMember {
  readonly agentId: string;
  readonly parentAgentId: string | null;
}

interface Placed<Member> {
  readonly member: Member;
  /** Branches in front of its name: `├─ `, `│  └─ `; empty for a root. */
  readonly branch: string;
}

/** Orders agents as a tree: parents before children, children in the given order. Without its parent an agent is a root. */
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
