import type { EntryOf, JournalRow, StopSignal } from "../../state/index.ts";
import { limitWords } from "../budget-options.ts";
import type { CliContext } from "../cli-context.ts";
import { commandLine } from "../invocation.ts";
import type { Job } from "./job.ts";

/** How a person goes on after a limit has stopped an agent's newest turn; nothing where none did. */
export function wayOnLines(
  { invocation }: CliContext,
  { rootAgentId, store }: Pick<Job, "rootAgentId" | "store">,
  rows: readonly JournalRow[],
): string[] {
  const signal = lastEnd(rows, rootAgentId)?.signal;
  if (!signal || !isLimit(signal)) return [];
  const { limit, accountId = "", max } = signal;
  if (!accountId.startsWith("turn:") || limit === undefined) {
    return [
      "The budget of its whole life is used up; no budget of a turn can help. Start a new agent, with a larger one.",
    ];
  }
  const words = [rootAgentId, ...limitWords(limit, max), ...store.words];
  return [`Go on from here with a new budget: ${commandLine(invocation, "resume", words)}`];
}

/** How an agent's newest turn ended; undefined while it is open. */
export function lastEnd(rows: readonly JournalRow[], agentId: string): EntryOf<"turn.ended"> | undefined {
  const last = rows
    .flatMap((row) => (row.agentId === agentId ? row.entries : []))
    .findLast(({ type }) => type === "turn.started" || type === "turn.ended");
  return last?.type === "turn.ended" ? last : undefined;
}

function isLimit({ limit, reason }: StopSignal): boolean {
  return limit !== undefined && reason !== "error";
}
