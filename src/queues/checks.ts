import { assertId, createRedactor, describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Job } from "./jobs.ts";
import {
  type AddOptions,
  type JobOutcome,
  type JobRun,
  type ToolQueueOptions,
  WAKE_QUEUE,
  type WorkOptions,
} from "./ports.ts";

/** Maximum number of tries of a job whose processor throws retryable errors: about eight minutes. */
export const MAX_TRIES = 20;
/** The pauses between these tries, in milliseconds. */
export const TRY_PAUSES = { baseMs: 500, capMs: 30_000 } as const;
/** A job is given up after this many deaths of workers that run it; a job that may not be repeated after one. */
export const MAX_DEATHS = 2;
export const DEFAULT_GRACE_MS = 5_000;
export const DEFAULT_DEAD_LETTERS_KEPT = 1_000;
export const DEFAULT_HEALTH_MS = 5_000;
/** The time limit, in milliseconds, for the drain of a `close` without an earlier drain. */
export const CLOSE_DRAIN_MS = 1_000;

const HIGHEST_PRIORITY = 1_000_000;
const LONGEST_MS = 2 ** 31 - 1;

/** Redacts known formats of secrets, and the values of environment variables with secret names. */
export function redactKnown(): (text: string) => string {
  const redactor = createRedactor();
  return (text) => redactor.text(text);
}

export function mayDieAgain(job: Job, deaths: number): boolean {
  return deaths < (job.kind === "wake" || job.isRepeatable ? MAX_DEATHS : 1);
}

/** Throws `InvalidInputError` for a name that a queue of tools may not have. */
export function checkQueueName(queue: string): void {
  assertId("queue", queue);
  if (queue !== WAKE_QUEUE) return;
  throw new InvalidInputError(`the queue "${WAKE_QUEUE}" is reserved for agents; give the tools' queue another name`);
}

/** Throws `InvalidInputError` for a name other than the wake queue that a queue of tools may not have. */
export function checkAnyQueueName(queue: string): void {
  if (queue !== WAKE_QUEUE) checkQueueName(queue);
}

export function checkedAdd({ priority = 0, delayMs = 0 }: AddOptions): { priority: number; delayMs: number } {
  checkWhole("priority", priority, 0, HIGHEST_PRIORITY);
  checkWhole("delayMs", delayMs, 0, LONGEST_MS);
  return { priority, delayMs };
}

/** A queue and how this process handles its jobs. */
export interface QueueWork extends ToolQueueOptions {
  readonly queue: string;
  readonly concurrency: number;
  readonly run: (job: Job, run: JobRun) => Promise<JobOutcome>;
  readonly areNeeded?: NonNullable<WorkOptions["wakes"]>["areNeeded"];
}

/** Throws `InvalidInputError` that names the setting. */
export function checkedWork({ wakes, tools }: WorkOptions): QueueWork[] {
  const works: QueueWork[] = [];
  if (wakes) {
    checkWhole("wakes.concurrency", wakes.concurrency, 1, 100_000);
    const { concurrency, run, areNeeded } = wakes;
    works.push({ queue: WAKE_QUEUE, concurrency, run: (job, by) => run(expected(job, "wake"), by), areNeeded });
  }
  for (const [queue, options] of Object.entries(tools?.queues ?? {})) {
    checkQueueName(queue);
    const { concurrency = 1, rateLimit } = options;
    checkWhole(`tools.queues.${queue}.concurrency`, concurrency, 1, 100_000);
    if (rateLimit) {
      checkWhole(`tools.queues.${queue}.rateLimit.max`, rateLimit.max, 1, LONGEST_MS);
      checkWhole(`tools.queues.${queue}.rateLimit.perMs`, rateLimit.perMs, 1, LONGEST_MS);
    }
    const run: QueueWork["run"] = async (job, by) => tools?.run(expected(job, "tool"), by) ?? "done";
    works.push({ queue, concurrency, rateLimit, run });
  }
  if (works.length > 0) return works;
  throw new InvalidInputError("work() needs wakes, or tools with at least one queue, or both; it was given none");
}

function expected<Kind extends Job["kind"]>(job: Job, kind: Kind): Extract<Job, { kind: Kind }> {
  if (job.kind === kind) return job as Extract<Job, { kind: Kind }>;
  throw new InvalidInputError(`a ${job.kind} job is in a queue of ${kind} jobs`);
}

export function checkWhole(name: string, value: number, least: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new InvalidInputError(`${name} is ${describeValue(value)}; expected a whole number from ${least} to ${most}`);
}
