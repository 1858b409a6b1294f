import { InvariantError, LeaseLostError, type TroupeError } from "../errors/index.ts";
import type { BullmqServer } from "./bullmq-server.ts";

/**
 * The codes with which bullmq refuses to record the end of a job that its worker lost: -1, the job is gone, because another worker ended
 * it; -2, its lock is gone; -3, it is not active; -6, another worker holds the lock.
 */
const lostJobCodes: readonly unknown[] = [-1, -2, -3, -6];
const LONGEST_TEXT = 500;

/** Converts the error of a worker's error event. `redact` removes secrets from errors of unknown origin. */
export function faultOf(
  queue: string,
  error: unknown,
  { server, redact }: { readonly server: BullmqServer; readonly redact: (text: string) => string },
): TroupeError {
  const jobId = lostJobOf(error);
  if (jobId !== undefined) return lostLockOf(queue, jobId);
  if (server.isOfConnection(error) || (error instanceof Error && /connection/i.test(error.message)))
    return server.translated(error);
  return new InvariantError(`a worker of queue "${queue}" failed: ${redact(errorText(error)).slice(0, LONGEST_TEXT)}`);
}

/** The fault of a worker that did not keep the lock of a job that it runs. */
export function lostLockOf(queue: string, jobId: string): LeaseLostError {
  return new LeaseLostError(
    `job "${jobId}" of queue "${queue}" has lost its lock while it ran, since its worker did not renew it in time; ` +
      "another worker may run it too, or has ended it",
    { details: { queue, jobId } },
  );
}

/** The id of the job that a worker lost; `undefined` for any other error. */
function lostJobOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && lostJobCodes.includes(error.code))) return undefined;
  return /\bjob (\S+?)\.?(?:\s|$)/i.exec(error.message)?.[1] ?? "?";
}

function errorText(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : `it threw ${typeof error}`;
}
