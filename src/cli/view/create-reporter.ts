import { systemClock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { TroupeEvent } from "../../state/index.ts";
import type { CliContext } from "../cli-context.ts";
import { formatNumberOf } from "./format.ts";
import { liveReporter } from "./live-reporter.ts";
import { plainLine } from "./plain-line.ts";
import { answerLines, endingLines, type Reporter } from "./reporter.ts";
import { columnsOf } from "./table.ts";
import { paintFor } from "./terminal-text.ts";

export interface ViewOptions {
  readonly json?: boolean | undefined;
  readonly quiet?: boolean | undefined;
}

type ViewMode = "json" | "quiet" | "live" | "plain";

/** The mode from the options; by default live on a capable terminal, and plain elsewhere. */
export function viewModeOf(options: ViewOptions, isTerminal: boolean, term: string | undefined): ViewMode {
  if (options.json === true) return "json";
  if (options.quiet === true) return "quiet";
  return isTerminal && term !== "dumb" ? "live" : "plain";
}

export function createReporter(
  context: CliContext,
  options: ViewOptions,
  job: { readonly rootAgentId: string; readonly accounts: () => Promise<readonly Account[]> },
): Reporter {
  const { stdout, out, note, environment } = context;
  // A pipe gets the answer unwrapped, as the model wrote it.
  const answerColumns = (): number => (stdout.isTTY ? columnsOf(context) : Number.POSITIVE_INFINITY);
  const mode = viewModeOf(options, stdout.isTTY, environment["TERM"]);
  if (mode === "json") return jsonReporter(out, note);
  if (mode === "quiet") return quietReporter(out, note, answerColumns);
  if (mode === "plain") return plainReporter(out, note, () => columnsOf(context));
  return liveReporter({ stream: stdout, clock: systemClock, paint: paintFor(environment), ...job });
}

type WriteLine = (line: string) => void;
/** Returns the current maximum width of a line, because terminals can be resized. */
type Columns = () => number;

/** Prints a line for each notable event, then answer and table: for logs, pipes and dumb terminals. */
export function plainReporter(write: WriteLine, note: WriteLine, columns: Columns): Reporter {
  let startedAt: number | undefined;
  let heldBack: string[] | undefined;
  const out: WriteLine = (line) => (heldBack === undefined ? write(line) : heldBack.push(line));
  const release = (): void => {
    heldBack?.forEach(write);
    heldBack = undefined;
  };
  let kept = 0;
  return {
    begin: (header) => header.forEach(out),
    past(events) {
      startedAt ??= events[0]?.at;
      kept += events.length;
    },
    event(event) {
      startedAt ??= event.at;
      if (kept > 0) out(`continues after ${formatNumberOf(kept, "stored event")}`);
      kept = 0;
      const line = plainLine(event, startedAt);
      if (line !== undefined) out(line);
    },
    notice: out,
    keep: (lines) => lines.forEach(note),
    hold() {
      heldBack ??= [];
      return release;
    },
    end: (ending) => ["", ...endingLines({ ...ending, width: columns() })].forEach(out),
    close: release,
  };
}

/** Prints every event as a line of JSON, past events first, and nothing else on this stream. */
export function jsonReporter(out: WriteLine, note: WriteLine): Reporter {
  const print = (event: TroupeEvent): void => out(JSON.stringify(event));
  return {
    begin: () => {},
    past: (events) => events.forEach(print),
    event: print,
    notice: note,
    keep: (lines) => lines.forEach(note),
    hold: () => () => {},
    end: ({ end, remarks }) => {
      if (end === null) remarks.forEach(note);
    },
    close: () => {},
  };
}

/** Prints only the answer; if there is none, prints the reason to standard error. */
export function quietReporter(out: WriteLine, note: WriteLine, columns: Columns): Reporter {
  return {
    begin: () => {},
    past: () => {},
    event: () => {},
    notice: () => {},
    keep: (lines) => lines.forEach(note),
    hold: () => () => {},
    end({ end, remarks }) {
      if (end === null) remarks.forEach(note);
      else if (end.type === "turn.completed") answerLines(end, columns()).forEach(out);
      else answerLines(end, columns()).forEach(note);
    },
    close: () => {},
  };
}
