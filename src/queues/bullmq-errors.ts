import { InvariantError, StoreUnavailableError, TroupeError } from "../errors/index.ts";
import { hasAnswered, networkCode, translated as translatedFor } from "../redis/index.ts";

/** As errors name what sends the commands. */
export const QUEUES = "the queues";

/** An error of Redis, the connection or the queue package in this package's own words. */
export function translated(error: unknown): TroupeError {
  const known = translatedFor(error, QUEUES);
  if (known instanceof TroupeError) return known;
  return new InvariantError(`the queues failed: ${known instanceof Error ? known.name : typeof known}`);
}

/** What a worker complains of while it goes on. */
export function faultOf(queue: string, error: unknown): TroupeError {
  if (error instanceof Error && /\block\b/i.test(error.message)) {
    return new StoreUnavailableError(
      `a job of queue "${queue}" has lost its lock while it ran; it may be run by another worker too`,
    );
  }
  const isOfConnection = hasAnswered(error) || networkCode(error) !== undefined;
  if (isOfConnection || (error instanceof Error && /connection/i.test(error.message))) return translated(error);
  return new InvariantError(
    `a worker of queue "${queue}" met an error (${error instanceof Error ? error.name : typeof error})`,
  );
}
