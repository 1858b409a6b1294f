import { type ErrorDetails, InvalidInputError, TroupeError } from "../errors/index.ts";

/** What went wrong with a remote agent. */
export type RemoteFault =
  /** It cannot be reached, or broke off. */
  | "remote_unreachable"
  /** It does not take the credentials. */
  | "remote_unauthorized"
  /** There is no card, or no card that can be used. */
  | "remote_card"
  /** It speaks no version or binding that is known here. */
  | "remote_version"
  /** Its answers are not those of the protocol, are too large, or are about something else. */
  | "remote_protocol"
  /** It refused the message, by an error of the protocol. */
  | "remote_refused"
  /** It takes no more requests now, or has a fault of its own. */
  | "remote_unavailable"
  /** Its task failed, was rejected or cancelled there. */
  | "remote_failed"
  /** It did not end in time; the task was cancelled. */
  | "remote_timeout"
  /** What it asked for was refused here; the task was cancelled. */
  | "remote_denied"
  /** It does not know the task any more. */
  | "remote_lost";

const passing: ReadonlySet<RemoteFault> = new Set(["remote_unreachable", "remote_unavailable", "remote_timeout"]);

/** An error of a remote agent, for the model and the journal. Its message never contains credentials. */
export class RemoteAgentError extends TroupeError {
  readonly code: RemoteFault;
  readonly family: "transient" | "terminal";
  readonly retryable: boolean;

  constructor(
    code: RemoteFault,
    message: string,
    options: { readonly details?: ErrorDetails; readonly cause?: unknown } = {},
  ) {
    super(message, options);
    this.code = code;
    this.retryable = passing.has(code);
    this.family = this.retryable ? "transient" : "terminal";
  }
}

/** Longest text of a remote agent in an error, in UTF-16 units. */
const LONGEST_WORDS = 2_000;

/** A remote agent's own words, for an error. */
export function shortened(text: string): string {
  const plain = text.toWellFormed();
  return plain.length <= LONGEST_WORDS ? plain : `${plain.slice(0, LONGEST_WORDS)}…`;
}

/** Codes of the protocol's errors that are told apart, and those of JSON-RPC. */
const reasons: Readonly<Record<string, RemoteFault>> = {
  TASK_NOT_FOUND: "remote_lost",
  VERSION_NOT_SUPPORTED: "remote_version",
  INVALID_AGENT_RESPONSE: "remote_protocol",
  INTERNAL_ERROR: "remote_unavailable",
};

/** Whether the error says that the remote agent does not know the task. */
export function isTaskLost(error: unknown): boolean {
  return error instanceof RemoteAgentError && error.code === "remote_lost";
}

/** Whether asking again may help: the line broke, or the agent is busy. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof RemoteAgentError && (error.code === "remote_unreachable" || error.code === "remote_unavailable")
  );
}

/**
 * What the client of the protocol threw, as an error of ours. `reasonOf` gives the name of the protocol's own errors; everything
 * else that is thrown while an answer is read means that it is not one of the protocol.
 */
export function remoteErrorOf(thrown: unknown, what: string, reasonOf: (error: unknown) => string | undefined): Error {
  const known = rootOf(thrown);
  if (known instanceof RemoteAgentError || known instanceof InvalidInputError) return known;
  const words = shortened(thrown instanceof Error ? thrown.message : String(thrown));
  const reason = reasonOf(thrown) ?? reasonOf(thrown instanceof Error ? thrown.cause : undefined);
  if (reason !== undefined) {
    return new RemoteAgentError(reasons[reason] ?? "remote_refused", `${what}: ${words}`, {
      details: { reason },
      cause: thrown,
    });
  }
  return new RemoteAgentError("remote_protocol", `${what}: its answer cannot be read: ${words}`, { cause: thrown });
}

/** The error of ours at the root of one that a library has wrapped. */
function rootOf(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth < 5 && error instanceof Error; depth += 1) {
    if (error instanceof TroupeError) return error;
    error = error.cause;
  }
  return thrown;
}

/** Codes of requests that the remote agent refused before it did anything, for every kind of request. */
const refusals: ReadonlySet<RemoteFault> = new Set([
  "remote_card",
  "remote_refused",
  "remote_unauthorized",
  "remote_version",
]);

/** Whether the remote agent has certainly not taken a message. */
export function wasNotTaken(error: unknown): boolean {
  return error instanceof RemoteAgentError && (refusals.has(error.code) || error.details["isSent"] === false);
}
