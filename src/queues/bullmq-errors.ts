import { InvariantError, LeaseLostError, TroupeError } from "../errors/index.ts";
import { hasAnswered, networkCode, translated as translatedFor } from "../redis/index.ts";

/** As errors name what sends the commands. */
export const QUEUES = "the queues";

/**
 * Numbers with which the package answers whoever writes down what became of a job that is not its own any more: the job is
 * gone, since another worker has ended it; its lock is; it does not count as running; the lock is another's.
 */
const lostJobCodes: readonly unknown[] = [-1, -2, -3, -6];
const LONGEST_TEXT = 500;

/** An error of Redis, the connection or the queue package in this package's own words. */
export function translated(error: unknown): TroupeError {
  const known = translatedFor(error, QUEUES);
  if (known instanceof TroupeError) return known;
  return new InvariantError(`the queues failed: ${known instanceof Error ? known.name : typeof known}`);
}

/** What a worker complains of while it goes on. `redact` takes secrets out of what is not known here, and told as it is. */
export function faultOf(queue: string, error: unknown, redact: (text: string) => string): TroupeError {
  const jobId = lostJobOf(error);
  if (jobId !== undefined) {
    return new LeaseLostError(
      `job "${jobId}" of queue "${queue}" has lost its lock while it ran, since its worker was not heard of in time; ` +
        "another worker may run it too, or has ended it",
      { details: { queue, jobId } },
    );
  }
  const isOfConnection = hasAnswered(error) || networkCode(error) !== undefined;
  if (isOfConnection || (error instanceof Error && /connection/i.test(error.message))) return translated(error);
  return new InvariantError(
    `a worker of queue "${queue}" met an error: ${redact(textOf(error)).slice(0, LONGEST_TEXT)}`,
  );
}

/** The job whose lock a worker complains not to have renewed; undefined where it complains of something else. */
export function unrenewedJobOf(error: unknown): string | undefined {
  return error instanceof Error ? /^could not renew lock for job (.+)$/s.exec(error.message)?.[1] : undefined;
}

/** The job that a worker complains to have lost; undefined where it complains of something else. */
function lostJobOf(error: unknown): string | undefined {
  const unrenewed = unrenewedJobOf(error);
  if (unrenewed !== undefined) return unrenewed;
  if (!(error instanceof Error && "code" in error && lostJobCodes.includes(error.code))) return undefined;
  return /\bjob (\S+?)\.?(?:\s|$)/i.exec(error.message)?.[1] ?? "?";
}

function textOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${typeof error}`;
}
