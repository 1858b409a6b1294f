import type { DeadLetter, QueueCount, Queues } from "../../queues/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type StoreOptions, storePlace, withQueues } from "../job/store-place.ts";
import { deadLetterTable, queueTable } from "../view/queue-lines.ts";

export interface QueuesOptions extends StoreOptions {
  /** Dead letters of each queue that are shown at most. */
  readonly limit?: number | undefined;
  readonly json?: boolean | undefined;
}

/** A queue as `queues` tells of it. */
export interface ShownQueue extends Omit<QueueCount, "deaths" | "refused"> {
  /** Living processes that work on it. */
  readonly workers: number;
  /** The newest first. */
  readonly deadLetters: readonly DeadLetter[];
}

const usualLimit = 20;

/** What waits, runs and was given up in the queues of a Redis. */
export async function queuesCommand(context: CliContext, options: QueuesOptions): Promise<ExitCode> {
  const place = storePlace(context, options);
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
    counts.map(async ({ queue, waiting, active, delayed, dead }) => ({
      queue,
      waiting,
      active,
      delayed,
      dead,
      workers: await queues.workers(queue),
      deadLetters: dead === 0 ? [] : await queues.deadLetters(queue, { limit }),
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
