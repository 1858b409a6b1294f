import { backoffDelay, type Clock } from "../../base/index.ts";
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
  readonly residences: { readonly isClosing: boolean };
  /** Called when an agent cannot be carried on here. */
  readonly onFailed: (agentId: string, cause: unknown) => void;
}

/** Has work for an agent done that nothing awaits. The promise resolves when the work is over, whatever came of it. */
export type Watch = (agentId: string, duty: Duty, work: () => Promise<unknown>) => Promise<void>;

/**
 * Work for agents that nothing awaits.
 * Owns: that it is done again, and that its failures are told. Does not own: the work.
 *
 * Invariants
 * 1. While the stores do not answer the work is done again, until the runtime closes. Their absence fails no turn.
 * 2. Any other failure is told to all who wait for a turn of the agent here, except that somebody else has the agent.
 */
export class WatchedWork {
  readonly #options: WatchedWorkOptions;

  constructor(options: WatchedWorkOptions) {
    this.#options = options;
  }

  readonly watch: Watch = (agentId, duty, work) =>
    work().then(nothing, (error: unknown) => this.#again(agentId, duty, work, error));

  async #again(agentId: string, duty: Duty, work: () => Promise<unknown>, failure: unknown): Promise<void> {
    const { clock, random, closed, residences } = this.#options;
    let error: unknown = failure;
    for (let tries = 1; error instanceof StoreUnavailableError && !residences.isClosing; tries += 1) {
      const pause = clock.sleep(backoffDelay(tries, random(), PAUSES), closed);
      error = await pause.then(work).then(nothing, (next: unknown) => next);
    }
    if (error !== undefined) this.report(agentId, duty, error);
  }

  /** Tells of a failure, but not of one that is none: who has the agent, or gets it, carries it on. */
  report(agentId: string, duty: Duty, error: unknown): void {
    const { residences, onFailed } = this.#options;
    // An agent whose definition is unknown here is left to a runtime that knows it.
    const isOthers = error instanceof AlreadyOwnedError || error instanceof NotFoundError;
    if (isOthers || error instanceof LeaseLostError || residences.isClosing) return;
    // The damage watch has already warned of damaged records.
    if (!(error instanceof CorruptRecordError))
      process.emitWarning(`agent ${agentId} could not ${duty}: ${String(error)}`);
    if (!(error instanceof StoreUnavailableError)) onFailed(agentId, error);
  }
}

const nothing = (): undefined => undefined;
