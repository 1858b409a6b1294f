/** One process of a run. A killed process does nothing more; the code of a simulated one can no longer reach the world. */
export class Life {
  readonly #over = Promise.withResolvers<void>();
  readonly over: Promise<void> = this.#over.promise;
  #isOver = false;

  get isOver(): boolean {
    return this.#isOver;
  }

  end(): void {
    this.#isOver = true;
    this.#over.resolve();
  }
}
