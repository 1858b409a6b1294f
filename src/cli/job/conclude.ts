import { NotFoundError } from "../../errors/index.ts";
import type { TurnRest } from "../../runtime/index.ts";
import { endOfTurn, type Entry, type StopSignal, type TroupeEvent } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { limitWords } from "../budget-options.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../failure.ts";
import { createReporter, type ViewOptions } from "../view/create-reporter.ts";
import { formatNumberOf } from "../view/format.ts";
import type { TurnEnd } from "../view/reporter.ts";
import { waitingLines } from "../view/request-lines.ts";
import type { Job, Following } from "./job.ts";
import { readStory } from "./story.ts";
import type { EventFeed } from "./tree-events.ts";

/** Shows the result of a job. Returns the exit code. */
export async function conclude(
  context: CliContext,
  { runtime, job, reporter }: Following,
  feed: EventFeed,
  rest: TurnRest,
): Promise<ExitCode> {
  const { agents, accounts, records, entries, ...story } = await readStory(runtime.stores, job.rootAgentId, {
    listener: (events) => events.forEach((event) => feed.push(event)),
    hasTexts: true,
  });
  const end = rest.status === "waiting" ? null : (story.end ?? null);
  const isAsking = rest.status === "waiting" && rest.reason === "request";
  const isPaused = records.some(({ agentId, pause }) => agentId === job.rootAgentId && pause !== null);
  const remarks =
    end !== null
      ? [...wayOnLines(context, job, entries), `Show it again: ${job.showCommand}`]
      : isAsking
        ? [
            `Waits for a decision or an answer: ${formatNumberOf(rest.requests.length, "open request")}.`,
            ...waitingLines(rest.requests, context.invocation, job.store.words),
            ...(isPaused
              ? [`It is also paused; when all requests are decided, resume with: ${job.resumeCommand}`]
              : []),
          ]
        : [`Paused. Resume with: ${job.resumeCommand}`];
  reporter.end({ end, agents, accounts, now: Date.now(), remarks: [...remarks, ...job.store.remarks] });
  if (end !== null) return exitCodeOfEnd(end);
  return isAsking ? exitCodes.waiting : exitCodes.interrupted;
}

/** Shows an earlier job in the same form. */
export async function showEnded(
  context: CliContext,
  stores: Stores,
  job: Pick<Job, "rootAgentId" | "header" | "showCommand" | "store">,
  options: ViewOptions,
): Promise<ExitCode> {
  const past: TroupeEvent[] = [];
  const { agents, accounts, entries, end } = await readStory(stores, job.rootAgentId, {
    listener: (events) => {
      past.push(...events);
    },
    hasTexts: true,
  });
  if (end === undefined) throw new NotFoundError(`agent "${job.rootAgentId}" has not ended any turn`);
  const reporter = createReporter(context, options, { rootAgentId: job.rootAgentId, accounts: async () => accounts });
  reporter.begin(job.header);
  reporter.past(past);
  const remarks = [...wayOnLines(context, job, entries), `Show it again: ${job.showCommand}`, ...job.store.remarks];
  reporter.end({ end, agents, accounts, now: end.at, remarks });
  return exitCodeOfEnd(end);
}

function exitCodeOfEnd({ type, stopReason }: TurnEnd): ExitCode {
  const status = type === "turn.completed" ? "completed" : type === "turn.stopped" ? "stopped" : "failed";
  return exitCodeOf({ status, stopReason });
}

/** How to continue after a limit has stopped the agent's newest turn; empty if no limit did. */
function wayOnLines(
  { invocation }: CliContext,
  { rootAgentId, store }: Pick<Job, "rootAgentId" | "store">,
  entries: readonly Entry[],
): string[] {
  const signal = endOfTurn(entries)?.signal;
  if (!signal || !isLimit(signal)) return [];
  const { limit, accountId = "", max } = signal;
  if (!accountId.startsWith("turn:") || limit === undefined) {
    return [
      "The lifetime budget of this agent is used up, so no further turn can run. Start a new agent with a larger one.",
    ];
  }
  const words = [rootAgentId, ...limitWords(limit, max), ...store.words];
  return [`Continue with a new budget: ${commandLine(invocation, "resume", words)}`];
}

function isLimit({ limit, reason }: StopSignal): boolean {
  return limit !== undefined && reason !== "error";
}
