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

/** What the work is to bring about, in the words of the warning that it could not. */
export type Duty = "be activated" | "be given back" | "take what was posted to it";

export interface WatchedWorkOptions {
  readonly clock: Clock;
  readonly random: () => number;
  /** Aborted when the runtime closes. */
  readonly closed: AbortSignal;
  /** Whether the process is giving its agents back in any case. */
  readonly placements: { readonly isClosing: boolean };
  /** Called when an agent cannot be carried on here. */
  readonly onFailed: (agentId: string, cause: unknown) => void;
}

/** Runs work for an agent that nothing awaits. The promise resolves when the work is over, also if it failed. */
export type Watch = (agentId: string, duty: Duty, work: () => Promise<unknown>) => Promise<void>;

/**
 * Work for agents that nothing awaits.
 * Owns: repeating the work, and reporting its failures. Does not own: the work.
 *
 * Invariants
 * 1. While the stores do not answer the work is done again, until the runtime closes. Their absence fails no turn.
 * 2. Any other failure is reported to all callers that wait for a turn of the agent here, except the one that another
 *    process has the agent.
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

  /** Reports a failure, unless another process has the agent, or gets it, and carries it on. */
  report(agentId: string, duty: Duty, error: unknown): void {
    const { placements, onFailed } = this.#options;
    // An agent whose definition is unknown here is left to a runtime that knows it.
    const isOthers = error instanceof AlreadyOwnedError || error instanceof NotFoundError;
    if (isOthers || error instanceof LeaseLostError || placements.isClosing) return;
    // The damage watch has already warned of damaged records.
    if (!(error instanceof CorruptRecordError))
      process.emitWarning(`agent ${agentId} could not ${duty}: ${String(error)}`);
    if (!(error instanceof StoreUnavailableError)) onFailed(agentId, error);
  }
}
