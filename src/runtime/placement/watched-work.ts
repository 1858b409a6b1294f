import { type Clock, untilReached } from "../../base/index.ts";
import {
  AlreadyOwnedError,
  CorruptRecordError,
  LeaseLostError,
  NotFoundError,
  StoreUnavailableError,
} from "../../errors/index.ts";

/** Pauses between attempts while the stores do not answer. */
export const PAUSES = { baseMs: 50, capMs: 2_000 };

/** The purpose of the work, as a phrase for the warning that it failed. */
export type Duty = "be activated" | "be released" | "take its inbox items";

export interface WatchedWorkOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** Aborted when the runtime closes. */
  readonly closed: AbortSignal;
  /** Whether the process is releasing all its agents anyway. */
  readonly placements: { readonly isClosing: boolean };
  /** Called if an agent cannot continue in this process. */
  readonly onFailed: (agentId: string, cause: unknown) => void;
}

/** Runs work for an agent that is not awaited. The promise resolves when the work has ended, even if it failed. */
export type Watch = (agentId: string, duty: Duty, work: () => Promise<unknown>) => Promise<void>;

/**
 * Work for agents that is not awaited.
 * Owns: repeating the work, and reporting its failures. Does not own: the work.
 *
 * Invariants
 * 1. While the stores do not answer the work is retried, until the runtime closes. Their absence fails no turn.
 * 2. Any other failure is reported to all callers that wait for a turn of the agent in this process, except that another process
 *    owns the agent.
 */
export class WatchedWork {
  readonly #options: WatchedWorkOptions;

  constructor(options: WatchedWorkOptions) {
    this.#options = options;
  }

  readonly watch: Watch = async (agentId, duty, work) => {
    const { clock, random, closed, placements } = this.#options;
    const isTransient = (error: unknown): boolean => error instanceof StoreUnavailableError && !placements.isClosing;
    try {
      await untilReached(work, { clock, random, signal: closed, isTransient, waits: PAUSES });
    } catch (error) {
      this.report(agentId, duty, error);
    }
  };

  /** Reports a failure, unless another process owns the agent and continues it. */
  report(agentId: string, duty: Duty, error: unknown): void {
    const { placements, onFailed } = this.#options;
    // An agent whose definition this process does not know is left to a runtime that does.
    const isOthers = error instanceof AlreadyOwnedError || error instanceof NotFoundError;
    if (isOthers || error instanceof LeaseLostError || placements.isClosing) return;
    // The damage watch has already warned of damaged records.
    if (!(error instanceof CorruptRecordError))
      process.emitWarning(`agent ${agentId} could not ${duty}: ${String(error)}`);
    if (!(error instanceof StoreUnavailableError)) onFailed(agentId, error);
  }
}
