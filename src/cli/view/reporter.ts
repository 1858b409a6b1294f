import type { AgentOverview } from "../../runtime/index.ts";
import type { TroupeEvent, TroupeEventOf } from "../../state/index.ts";
import { type RowContext, summaryLines } from "./agent-rows.ts";
import { printable } from "./terminal-text.ts";

export type TurnEnd = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;

/** How following a job came to its end, as a person is told. */
export interface Ending extends RowContext {
  /** Null when the turn has not ended: it is paused, or waits for somebody. */
  readonly end: TurnEnd | null;
  readonly agents: readonly AgentOverview[];
  /** What to type next, and other closing remarks. */
  readonly remarks: readonly string[];
}

/** One way of showing a job while it runs. Calls come in this order; `close` may come at any time, more than once. */
export interface Reporter {
  /** What is asked, by whom, on what: a few lines. */
  begin(header: readonly string[]): void;
  /** Events that happened before this process looked, in order. */
  past(events: readonly TroupeEvent[]): void;
  event(event: TroupeEvent): void;
  /** Something this program has to say while the job runs. */
  notice(text: string): void;
  /** Keeps quiet while a person is asked something; the returned function ends that. */
  hold(): () => void;
  end(ending: Ending): void;
  close(): void;
}

/** The answer, the table and the closing remarks; what a person reads when all is over. */
export function endingLines({ end, agents, remarks, ...context }: Ending): string[] {
  const answer = end === null ? [] : [...answerLines(end), ""];
  return [...answer, ...summaryLines(agents, context), "", ...remarks];
}

/** The answer, or why there is none. */
export function answerLines(end: TurnEnd): string[] {
  const text = printable(end.text).trim();
  const why = reasonOf(end);
  return [...(text === "" ? [] : text.split("\n")), ...(why === undefined ? [] : [...(text === "" ? [] : [""]), why])];
}

/** Why there is no whole answer; undefined where there is. */
export function reasonOf(end: TurnEnd): string | undefined {
  if (end.type === "turn.completed") return undefined;
  if (end.type === "turn.stopped")
    return `Stopped: ${end.stopReason}${end.message === null ? "" : `, ${printable(end.message)}`}.`;
  return `Failed: ${end.error === null ? end.stopReason : `${printable(end.error.message)} (${end.error.code})`}`;
}
