import type { AgentOverview, TroupeEvent, TroupeEventOf } from "../../state/index.ts";
import { type RowContext, summaryLines } from "./agent-rows.ts";
import { printable } from "./terminal-text.ts";

export type TurnEnd = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;

export function isTurnEnd(event: TroupeEvent): event is TurnEnd {
  return event.type === "turn.completed" || event.type === "turn.stopped" || event.type === "turn.failed";
}

/** The end of following a job. */
export interface Ending extends RowContext {
  /** Null when the turn has not ended: it is paused, or waits for somebody. */
  readonly end: TurnEnd | null;
  readonly agents: readonly AgentOverview[];
  /** Commands to type next, and other closing remarks. */
  readonly remarks: readonly string[];
}

/** Shows a job while it runs. Methods are called in this order; `close` at any time, even twice. */
export interface Reporter {
  /** Takes the header: a few lines on the question, the model and the store. */
  begin(header: readonly string[]): void;
  /** Takes events from before this process, in order; may be called several times. */
  past(events: readonly TroupeEvent[]): void;
  event(event: TroupeEvent): void;
  /** Takes a message of this program while the job runs. */
  notice(text: string): void;
  /** Shows nothing while a person is asked something; the returned function ends that. */
  hold(): () => void;
  end(ending: Ending): void;
  close(): void;
}

/** The answer, the table and the closing remarks. */
export function endingLines({ end, agents, remarks, ...context }: Ending): string[] {
  const answer = end === null ? [] : [...answerLines(end), ""];
  return [...answer, ...summaryLines(agents, context), "", ...remarks];
}

/** The answer, and the reason if it is not whole. */
export function answerLines(end: TurnEnd): string[] {
  const text = printable(end.text).trim();
  const why = reasonOf(end);
  return [...(text === "" ? [] : text.split("\n")), ...(why === undefined ? [] : [...(text === "" ? [] : [""]), why])];
}

/** Why there is no whole answer; undefined for a completed turn. */
export function reasonOf(end: TurnEnd): string | undefined {
  if (end.type === "turn.completed") return undefined;
  if (end.type === "turn.stopped")
    return `Stopped: ${end.stopReason}${end.message === null ? "" : `, ${printable(end.message)}`}.`;
  return `Failed: ${end.error === null ? end.stopReason : `${printable(end.error.message)} (${end.error.code})`}`;
}
