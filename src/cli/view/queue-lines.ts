import type { DeadLetter } from "../../queues/index.ts";
import { formatTime } from "./format.ts";
import { type Column, tableLines } from "./table.ts";

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

/** What was given up, and why. */
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

/** `agent ask-mibodu`, `call ask-mibodu#1:1:0, attempt 2`; undefined where it is not known what it was about. */
function jobText(job: DeadLetter["job"]): string | undefined {
  if (job === null) return undefined;
  if (job.kind === "wake") return `agent ${job.agentId}`;
  return `call ${job.callId}${job.attempt === 1 ? "" : `, attempt ${job.attempt}`}`;
}
