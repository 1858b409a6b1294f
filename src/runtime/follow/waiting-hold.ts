import { holdProcess } from "../../base/index.ts";

/**
 * Keeps the process from ending by itself while somebody waits here for what can still come.
 *
 * In stores that other processes share it can always come: somebody decides a request, a worker ends the turn. In the memory of
 * this process alone it comes from work here, which holds the process itself; where there is none, Node says so (exit code 13).
 */
export class WaitingHold {
  readonly #isShared: boolean;

  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** Somebody waits until the returned function is called. */
  readonly begin = (): (() => void) => (this.#isShared ? holdProcess() : () => undefined);

  /** Somebody waits until the work has settled. */
  until(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }
}
