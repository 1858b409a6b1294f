import type { QueueCount, Queues } from "../../queues/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type StoreOptions, storeLocation, withQueues } from "../job/store-location.ts";
import { formatTime } from "../view/format.ts";
import { type Column, tableLines } from "../view/table.ts";

export interface QueuesOptions extends StoreOptions {
  /** Maximum number of dead letters to show for each queue. */
  readonly limit?: number | undefined;
  readonly json?: boolean | undefined;
}

type DeadLetter = Awaited<ReturnType<Queues["deadLetters"]>>[number];

/** A row of `queues`. */
export interface ShownQueue extends Omit<QueueCount, "deaths" | "refused"> {
  /** Live processes that serve the queue. */
  readonly workers: number;
  /** Newest first. */
  readonly deadLetters: readonly DeadLetter[];
}

const usualLimit = 20;

/** Shows the waiting, running and dead jobs in the queues of a Redis or Postgres. */
export async function queuesCommand(context: CliContext, options: QueuesOptions): Promise<ExitCode> {
  const place = storeLocation(context, options);
  return await withQueues(place, async (queues) => {
    const shown = await shownQueues(queues, options.limit ?? usualLimit);
    if (options.json === true) shown.forEach((queue) => context.out(JSON.stringify(queue)));
    else linesOf(shown, place.name).forEach(context.out);
    return exitCodes.success;
  });
}

async function shownQueues(queues: Queues, limit: number): Promise<ShownQueue[]> {
  const names = await queues.names();
  const counts = await queues.counts(names);
  return await Promise.all(
    counts.map(async ({ deaths: _deaths, refused: _refused, ...counted }) => ({
      ...counted,
      workers: await queues.workers(counted.queue),
      deadLetters: counted.dead === 0 ? [] : await queues.deadLetters(counted.queue, { limit }),
    })),
  );
}

function linesOf(shown: readonly ShownQueue[], name: string): string[] {
  if (shown.length === 0) return [`There are no queues in ${name}.`];
  const letters = shown.flatMap(({ deadLetters }) => deadLetters).toSorted((one, other) => other.at - one.at);
  const dead = shown.reduce((total, queue) => total + queue.dead, 0);
  if (dead === 0) return queueTable(shown);
  const title = letters.length < dead ? `Dead letters, the newest ${letters.length} of ${dead}:` : "Dead letters:";
  return [...queueTable(shown), "", title, ...deadLetterTable(letters)];
}

interface QueueRow {
  readonly queue: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  readonly dead: number;
  readonly workers: number;
}

const queueColumns: readonly Column[] = [
  { title: "QUEUE", maxWidth: 40 },
  { title: "WAITING", align: "right" },
  { title: "RUNNING", align: "right" },
  { title: "DELAYED", align: "right" },
  { title: "DEAD", align: "right" },
  { title: "WORKERS", align: "right" },
];

export function queueTable(queues: readonly QueueRow[]): string[] {
  const rows = queues.map(({ queue, waiting, active, delayed, dead, workers }) => {
    const numbers = [waiting, active, delayed, dead, workers];
    return [queue === "wake" ? "wake (agents)" : queue, ...numbers.map(String)];
  });
  return tableLines(queueColumns, rows);
}

const letterColumns: readonly Column[] = [
  { title: "GIVEN UP" },
  { title: "QUEUE", maxWidth: 24 },
  { title: "JOB", maxWidth: 60 },
  { title: "CAUSE" },
  { title: "DEATHS", align: "right" },
  { title: "WHY", maxWidth: 160 },
];

/** The jobs that were given up, with their reasons. */
export function deadLetterTable(letters: readonly DeadLetter[]): string[] {
  const rows = letters.map(({ queue, job, jobId, cause, at }) => [
    formatTime(at),
    queue,
    jobText(job) ?? jobId,
    cause.code,
    String(cause.deaths),
    cause.message,
  ]);
  return tableLines(letterColumns, rows);
}

/** `agent ask-mibodu`, `call ask-mibodu#1:1:0, attempt 2`; `undefined` if the content is unknown. */
function jobText(job: DeadLetter["job"]): string | undefined {
  if (job === null) return undefined;
  if (job.kind === "wake") return `agent ${job.agentId}`;
  return `call ${job.callId}${job.attempt === 1 ? "" : `, attempt ${job.attempt}`}`;
}
