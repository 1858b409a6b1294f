/** Why a turn has failed in this process, as it was thrown. */
export interface TurnFailure {
  readonly error: unknown;
  /** The user code that has thrown it, in words; undefined where that is not known. */
  readonly source: string | undefined;
}

/**
 * The errors that turns of this process have failed with, until their results are made. In memory only: stacks and causes of a
 * user's errors are never stored.
 */
export class TurnFailures {
  readonly #byTurn = new Map<string, TurnFailure>();

  note(turnId: string, failure: TurnFailure): void {
    this.#byTurn.set(turnId, failure);
  }

  take(turnId: string): TurnFailure | undefined {
    const failure = this.#byTurn.get(turnId);
    this.#byTurn.delete(turnId);
    return failure;
  }
}
