import { McpServerError } from "./mcp-server-error.ts";

/** Wait after the second failure in a row, in milliseconds; it doubles with each further one. */
const FIRST_MS = 1_000;
const LONGEST_MS = 30_000;

/**
 * When a server may be started again. The attempt after the first failure is free; after each further one in a row it has to wait
 * longer. A start has failed if the server did not answer a single request. Starts of several owners that overlap fail once.
 */
export class StartBackoff {
  #failures = 0;
  #nextAt = 0;
  #reason = "";
  /** Increases with each counted failure. */
  #round = 0;

  /** Begins an attempt and returns its round. Throws `McpServerError` with the time of the next attempt if it is too early. */
  begin(): number {
    const left = this.#nextAt - Date.now();
    // After a jump of the system's clock the wait may seem longer.
    if (left <= 0 || left > LONGEST_MS) return this.#round;
    const at = new Date(this.#nextAt).toISOString();
    throw new McpServerError(
      `the server failed to start ${this.#failures} times in a row; the next attempt is possible at ${at}. The last failure: ${this.#reason}`,
    );
  }

  /** An attempt of this round has failed; only the first of a round counts. */
  failed(round: number, reason: string): void {
    if (round !== this.#round) return;
    this.#round += 1;
    this.#failures += 1;
    this.#reason = reason;
    const wait = this.#failures === 1 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (this.#failures - 2));
    this.#nextAt = Date.now() + wait;
  }

  /** The server has answered. */
  succeeded(): void {
    this.#failures = 0;
    this.#nextAt = 0;
  }

  /** Whether there is nothing to remember. */
  get isClear(): boolean {
    return this.#failures === 0;
  }
}
