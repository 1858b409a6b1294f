/** Turns of the event loop without a change before time passes: commits are sent and answered within fewer. */
const QUIET_TURNS = 3;

/** Counts turns of the event loop in which nothing has changed. */
export class QuietTurns {
  #seen = -1;
  #quiet = 0;

  /** Called once in each turn with the number of changes so far. Returns whether nothing can continue any more without time. */
  turn(changes: number): boolean {
    this.#quiet = changes === this.#seen ? this.#quiet + 1 : 0;
    this.#seen = changes;
    return this.#quiet >= QUIET_TURNS;
  }
}
