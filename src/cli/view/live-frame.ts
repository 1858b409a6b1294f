import type { AgentOverview } from "../../runtime/index.ts";
import { agentCells, agentColumns, type RowContext, stateOf } from "./agent-row.ts";
import type { Paint } from "./styles.ts";
import { tableLines } from "./table.ts";
import { printable, truncate, wrap } from "./text-width.ts";
import { placeTree } from "./tree-order.ts";

export interface Frame extends RowContext {
  readonly agents: readonly AgentOverview[];
  /** Whose text is shown as it is written. */
  readonly rootAgentId: string;
  /** A line above all others, and one below: what a person asked, and what this program has to say. */
  readonly header: readonly string[];
  readonly notice: string | undefined;
  readonly columns: number;
  readonly rows: number;
}

/** The live view as lines that fit the terminal: header, tree of agents, the end of the answer so far, a notice. */
export function frameLines(frame: Frame, paint: Paint): string[] {
  const { columns, rows, notice } = frame;
  const width = Math.max(20, columns - 1);
  const header = frame.header.map((line) => paint("bold", truncate(line, width)));
  const footer = notice === undefined ? [] : [paint("yellow", truncate(notice, width))];
  const room = Math.max(3, rows - 1 - header.length - footer.length);
  const tree = treeLines(frame, paint, { width, most: Math.max(3, room - 2) });
  const answer = answerLines(frame, width, room - tree.length - 1);
  return [...header, ...tree, ...(answer.length > 0 ? ["", ...answer] : []), ...footer];
}

function treeLines(frame: Frame, paint: Paint, { width, most }: { width: number; most: number }): string[] {
  const placed = placeTree(frame.agents);
  const [titles = "", ...lines] = tableLines(
    agentColumns,
    placed.map(({ member, branch }) => agentCells(member, branch, frame)),
  );
  const shown = lines.length > most - 1 ? lines.slice(0, most - 2) : lines;
  const painted = shown.map((line, index) => {
    const agent = placed[index]?.member;
    return paint(agent === undefined ? "plain" : stateOf(agent).style, truncate(line, width));
  });
  const left = lines.length - shown.length;
  return [paint("dim", truncate(titles, width)), ...painted, ...(left > 0 ? [`… and ${left} more agents`] : [])];
}

/** The answer's last lines: a terminal cannot take back what has scrolled away. */
function answerLines({ agents, rootAgentId }: Frame, width: number, most: number): string[] {
  const text = printable(agents.find((agent) => agent.agentId === rootAgentId)?.text ?? "").trim();
  if (text === "" || most < 1) return [];
  return wrap(text, width).slice(-most);
}
