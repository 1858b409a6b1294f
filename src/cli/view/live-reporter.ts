import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import { type AgentOverview, noteAgentEvent } from "../../state/index.ts";
import { agentCells, agentColumns, type RowContext, stateOf } from "./agent-rows.ts";
import { LiveScreen, rowsOf, type TerminalStream } from "./live-screen.ts";
import { endingLines, type Reporter } from "./reporter.ts";
import { fitsTable, placeTree, tableLines } from "./table.ts";
import { type Paint, printable } from "./terminal-text.ts";
import { truncate, wrapText } from "./text-width.ts";

/** Reading the accounts takes at most this fraction of the time (1/20), so that it does not slow down a large tree. */
const shareOfReading = 20;
const longestReadPauseMs = 5_000;

/** Minimum number of rows for the tree. */
const leastRows = 8;
/** Rows reserved for a request while a person is asked. */
const rowsOfRequest = 8;

interface LiveReporterOptions {
  readonly stream: TerminalStream;
  readonly clock: Clock;
  readonly paint: Paint;
  readonly rootAgentId: string;
  /** Reads the accounts of the tree; called before each drawing. */
  readonly accounts: () => Promise<readonly Account[]>;
}

/** Draws the tree of agents live at the bottom of the terminal, and finally prints the answer and a table. */
export function liveReporter({ stream, clock, paint, rootAgentId, accounts }: LiveReporterOptions): Reporter {
  const screen = new LiveScreen(stream);
  const agents = new Map<string, AgentOverview>();
  let header: readonly string[] = [];
  let notice: string | undefined;
  let known: readonly Account[] = [];
  /** Lines that remain visible above the tree. */
  let kept: readonly string[] = [];
  let isAsking = false;
  let nextReadAt = Number.NEGATIVE_INFINITY;

  /** Runs in the background; drawings show the accounts of the last read. */
  async function refreshAccounts(): Promise<void> {
    const startedAt = clock.elapsed();
    if (isAsking || startedAt < nextReadAt) return;
    isAsking = true;
    try {
      known = await accounts();
      const now = clock.elapsed();
      nextReadAt = now + Math.min(longestReadPauseMs, (now - startedAt) * shareOfReading);
    } catch {
      // A failing store also fails the job; the view keeps its last accounts.
    } finally {
      isAsking = false;
    }
  }

  function lines(parts: Partial<Frame> = {}): string[] {
    const { columns } = screen.size;
    const above = kept.reduce((total, line) => total + rowsOf(line, columns), 0);
    const frame = {
      agents: [...agents.values()],
      rootAgentId,
      accounts: known,
      header,
      notice,
      now: clock.now(),
      columns,
      rows: rowsWithout(above),
    };
    return frameLines({ ...frame, ...parts }, paint);
  }

  /** The rows left after these are taken, but at least the tree's minimum. */
  function rowsWithout(taken: number): number {
    const { rows } = screen.size;
    return Math.min(rows, Math.max(leastRows, rows - taken));
  }

  const redraws = limitRedraws(clock, () => {
    void refreshAccounts();
    screen.draw(lines());
  });
  const redrawResized = (): void => redraws.request();
  stream.on("resize", redrawResized);

  return {
    begin(given) {
      header = given;
      redraws.request();
    },
    past(events) {
      for (const event of events) noteAgentEvent(agents, event);
    },
    event(event) {
      noteAgentEvent(agents, event);
      redraws.request();
    },
    notice(text) {
      notice = text;
      redraws.request();
    },
    keep(given) {
      kept = given;
      screen.print(given);
      redraws.request();
    },
    hold() {
      // The request and its prompt are printed below the tree.
      screen.suspend(lines({ notice: undefined, rows: rowsWithout(rowsOfRequest) }));
      return () => {
        screen.resume();
        screen.print(kept);
        redraws.request();
      };
    },
    end(ending) {
      this.close();
      const { columns: width } = screen.size;
      const above = header.flatMap((line) => wrapText(line, width));
      stream.write(`${[...above, "", ...endingLines({ ...ending, width })].join("\n")}\n`);
    },
    close() {
      stream.off("resize", redrawResized);
      redraws.stop();
      screen.close();
    },
  };
}

export interface Frame extends RowContext {
  readonly agents: readonly AgentOverview[];
  /** The agent whose streaming text is shown. */
  readonly rootAgentId: string;
  /** Shown above the tree: the question. `notice`, a message of this program, is shown below it. */
  readonly header: readonly string[];
  readonly notice: string | undefined;
  readonly columns: number;
  readonly rows: number;
}

/** The live view as lines that fit the terminal: header, tree of agents, last lines of the answer so far, notice. */
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
  const shown = placed.length > most - 1 ? placed.slice(0, most - 2) : placed;
  const cells = shown.map(({ member, branch }) => agentCells(member, branch, frame));
  const rows = fitsTable(agentColumns, cells, width)
    ? cells
    : shown.map(({ member, branch }) => agentCells(member, branch, frame, "short"));
  const [titles = "", ...lines] = tableLines(agentColumns, rows, width);
  const painted = lines.map((line, index) => {
    const agent = shown[index]?.member;
    return paint(agent === undefined ? "plain" : stateOf(agent).style, truncate(line, width));
  });
  const left = placed.length - shown.length;
  return [paint("dim", truncate(titles, width)), ...painted, ...(left > 0 ? [`… and ${left} more agents`] : [])];
}

/** The last lines of the answer, because lines that have scrolled away cannot be redrawn. */
function answerLines({ agents, rootAgentId }: Frame, width: number, most: number): string[] {
  const text = printable(agents.find((agent) => agent.agentId === rootAgentId)?.text ?? "").trim();
  if (text === "" || most < 1) return [];
  return wrapText(text, width).slice(-most);
}

/** Minimum time between two drawings, in milliseconds. */
export const redrawMs = 100;
/** Maximum time between two drawings, in milliseconds, so that running times advance. */
export const idleRedrawMs = 500;

interface RedrawLimit {
  /** Requests a drawing soon. */
  request(): void;
  stop(): void;
}

/** Draws on request, at most once per `redrawMs`, and at least every `idleRedrawMs`. */
export function limitRedraws(clock: Clock, draw: () => void): RedrawLimit {
  let drawnAt = Number.NEGATIVE_INFINITY;
  let dueAt = Number.POSITIVE_INFINITY;
  let cancel: (() => void) | undefined;
  let isStopped = false;

  function arm(at: number): void {
    if (isStopped || at >= dueAt) return;
    cancel?.();
    dueAt = at;
    cancel = clock.setTimer(at, () => {
      dueAt = Number.POSITIVE_INFINITY;
      drawnAt = clock.now();
      draw();
      arm(drawnAt + idleRedrawMs);
    });
  }

  return {
    request() {
      const now = clock.now();
      // After the clock was set back, the last drawing is in the future and must not delay this one.
      arm(Math.max(now, Math.min(drawnAt, now) + redrawMs));
    },
    stop() {
      isStopped = true;
      cancel?.();
    },
  };
}
