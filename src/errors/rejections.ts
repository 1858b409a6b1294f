import { TroupeError, type TroupeErrorOptions } from "./troupe-error.ts";

/** A command that was understood and refused; nothing was changed. */
export abstract class RejectionError extends TroupeError {
  readonly family = "rejection";
  readonly retryable = false;
}

/** The input breaks a schema or a rule; the message says where, how, and what would be right. */
export class InvalidInputError extends RejectionError {
  readonly code = "invalid_input";
  /** Mistakes by field, such as `items[2].name`, where the fields of a value are to blame; else empty. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(
    message: string,
    {
      issues = [],
      ...options
    }: TroupeErrorOptions & { readonly issues?: InvalidInputError["issues"] | undefined } = {},
  ) {
    super(message, options);
    this.issues = issues;
  }
}

/** No agent, turn, definition, tool or artifact of that name is known. */
export class NotFoundError extends RejectionError {
  readonly code = "not_found";
}

/** This version, mode or store does not support what was asked for. */
export class UnsupportedError extends RejectionError {
  readonly code = "unsupported";
}

/** A turn was asked of an agent that was not started, or was shut down: call `start()` first (row L4). */
export class AgentNotStartedError extends RejectionError {
  readonly code = "agent_not_started";
}

/** A turn was asked of an agent whose turn is open: one turn at a time per agent (requirements, Concurrency). */
export class AgentBusyError extends RejectionError {
  readonly code = "agent_busy";
}

/** A turn was asked of an agent under the key of another turn. `details` name that turn. */
export class TurnConflictError extends RejectionError {
  readonly code = "turn_conflict";
}

/** Another living process holds the agent's lease. */
export class AlreadyOwnedError extends RejectionError {
  readonly code = "already_owned";
}

/**
 * A rule refuses it: the parent's policy a subagent, by depth, number, or a tool the parent does not have (row S8);
 * `mayDecide` a decision; a definition the tools of a client.
 */
export class PolicyRefusedError extends RejectionError {
  readonly code = "policy_refused";
}

/** Somebody else decided the request first, or its turn has gone on without it. `details` say who and how. */
export class RequestConflictError extends RejectionError {
  readonly code = "request_conflict";
}
