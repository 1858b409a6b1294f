/** The error that failed a turn in this process, as thrown. */
export interface TurnFailure {
  readonly error: unknown;
  /** A description of the user code that threw it; `undefined` if unknown. */
  readonly source: string | undefined;
}

/**
 * The errors that failed turns of this process, until their results are created. In memory only: stacks and causes of a user's
 * errors are never stored.
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
