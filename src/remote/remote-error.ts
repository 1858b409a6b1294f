import { type ErrorDetails, InvalidInputError, TroupeError } from "../errors/index.ts";

/** Kinds of faults of a remote agent. */
export type RemoteFault =
  /** It is unreachable, or the connection broke. */
  | "remote_unreachable"
  /** It refused the credentials. */
  | "remote_unauthorized"
  /** The card is missing or unusable. */
  | "remote_card"
  /** It supports none of our versions and bindings. */
  | "remote_version"
  /** Its answers violate the protocol, are too large, or belong to another task. */
  | "remote_protocol"
  /** It refused the message with a protocol error. */
  | "remote_refused"
  /** It accepts no more requests at the moment, or has an internal fault. */
  | "remote_unavailable"
  /** Its task failed, was rejected or was cancelled there. */
  | "remote_failed"
  /** It did not end in time; the task was cancelled. */
  | "remote_timeout"
  /** Its request was refused by the caller; the task was cancelled. */
  | "remote_denied"
  /** The task no longer exists there. */
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

/** Maximum length of a remote agent's text in an error, in UTF-16 units. */
const LONGEST_WORDS = 2_000;

/** A remote agent's text, shortened for an error. */
export function shortened(text: string): string {
  const plain = text.toWellFormed();
  return plain.length <= LONGEST_WORDS ? plain : `${plain.slice(0, LONGEST_WORDS)}…`;
}

/** Our code for each protocol error that has one of its own, and for errors of JSON-RPC. */
const reasons: Readonly<Record<string, RemoteFault>> = {
  TASK_NOT_FOUND: "remote_lost",
  VERSION_NOT_SUPPORTED: "remote_version",
  INVALID_AGENT_RESPONSE: "remote_protocol",
  INTERNAL_ERROR: "remote_unavailable",
};

/** Whether the error means that the task no longer exists at the remote agent. */
export function isTaskLost(error: unknown): boolean {
  return error instanceof RemoteAgentError && error.code === "remote_lost";
}

/** Whether a retry may help: the connection broke, or the agent is busy. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof RemoteAgentError && (error.code === "remote_unreachable" || error.code === "remote_unavailable")
  );
}

/**
 * Converts an error of the protocol's client. `reasonOf` returns the name of a protocol error; any other error while an
 * answer is read means that the answer violates the protocol.
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

/** Finds our own error among the causes of an error that a library has wrapped. */
function rootOf(thrown: unknown): unknown {
  let error = thrown;
  for (let depth = 0; depth < 5 && error instanceof Error; depth += 1) {
    if (error instanceof TroupeError) return error;
    error = error.cause;
  }
  return thrown;
}

/** Codes of errors with which the remote agent refuses any kind of request before it has an effect. */
const refusals: ReadonlySet<RemoteFault> = new Set([
  "remote_card",
  "remote_refused",
  "remote_unauthorized",
  "remote_version",
]);

/** Whether the remote agent certainly did not accept a message. */
export function wasNotTaken(error: unknown): boolean {
  return error instanceof RemoteAgentError && (refusals.has(error.code) || error.details["isSent"] === false);
}
