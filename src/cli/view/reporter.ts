import type { AgentOverview, TroupeEvent, TroupeEventOf } from "../../state/index.ts";
import { type RowContext, summaryLines } from "./agent-rows.ts";
import { printable } from "./terminal-text.ts";
import { wrapText } from "./text-width.ts";

export type TurnEnd = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;

export function isTurnEnd(event: TroupeEvent): event is TurnEnd {
  return event.type === "turn.completed" || event.type === "turn.stopped" || event.type === "turn.failed";
}

/** The state of a job when following ends. */
export interface Ending extends RowContext {
  /** `null` while the turn has not ended, because it is paused or waits for a decision. */
  readonly end: TurnEnd | null;
  readonly agents: readonly AgentOverview[];
  /** Commands to run next, and other closing remarks. */
  readonly remarks: readonly string[];
}

/** An ending with the maximum width of its lines in terminal columns. */
export interface ShownEnding extends Ending {
  readonly width: number;
}

/** Shows a running job. Methods are called in this order; `close` may be called at any time, even twice. */
export interface Reporter {
  /** Shows the header: a few lines about the question, the model and the store. */
  begin(header: readonly string[]): void;
  /** Shows events from before this process, in order; may be called several times. */
  past(events: readonly TroupeEvent[]): void;
  event(event: TroupeEvent): void;
  /** Shows a message of this program while the job runs. */
  notice(text: string): void;
  /** Shows lines that remain visible while the job runs: the address of the page. */
  keep(lines: readonly string[]): void;
  /** Keeps the terminal unchanged while a person is asked a question, until the returned function is called. */
  hold(): () => void;
  end(ending: Ending): void;
  close(): void;
}

/** The answer, the table and the closing remarks. */
export function endingLines({ end, agents, remarks, width, ...context }: ShownEnding): string[] {
  const answer = end === null ? [] : [...answerLines(end, width), ""];
  return [...answer, ...summaryLines(agents, context, width), "", ...remarks];
}

/** The answer, and the reason if it is incomplete; lines wider than `width` are wrapped at spaces. */
export function answerLines(end: TurnEnd, width: number): string[] {
  const text = printable(end.text).trim();
  const why = reasonOf(end);
  return [
    ...(text === "" ? [] : wrapText(text, width)),
    ...(why === undefined ? [] : [...(text === "" ? [] : [""]), wrapText(why, width).join("\n")]),
  ];
}

/** The reason of an incomplete answer; `undefined` for a completed turn. */
export function reasonOf(end: TurnEnd): string | undefined {
  if (end.type === "turn.completed") return undefined;
  if (end.type === "turn.stopped")
    return `Stopped: ${end.stopReason}${end.message === null ? "" : `, ${printable(end.message)}`}.`;
  return `Failed: ${end.error === null ? end.stopReason : `${printable(end.error.message)} (${end.error.code})`}`;
}
