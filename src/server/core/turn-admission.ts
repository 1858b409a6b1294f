import type { Runtime } from "../../runtime/index.ts";
import { callerKey } from "./call.ts";
import { ServerError } from "./failures.ts";
import type { Identity } from "./identity.ts";
import type { Limits } from "./limits.ts";

/**
 * Refuses turns above the limits of a caller.
 *
 * Invariant: on one server a caller never has more than `openTurns` open or queued turns, however many start
 * concurrently.
 */
export class TurnAdmission {
  readonly #limits: Pick<Limits, "turns" | "openTurns">;
  /** Admitted turns that are not stored yet, by caller. */
  readonly #starting = new Map<string, number>();

  constructor(limits: Pick<Limits, "turns" | "openTurns">) {
    this.#limits = limits;
  }

  /**
   * Counts a new turn. Call the returned function once the turn is stored or has failed: until then it is counted here,
   * afterwards in the store. Rejects with `ServerError` (429).
   */
  async admit(runtime: Runtime, identity: Identity): Promise<() => void> {
    const { turns, openTurns } = this.#limits;
    const key = callerKey(identity);
    const starting = this.#starting.get(key) ?? 0;
    this.#starting.set(key, starting + 1);
    const release = (): void => {
      const left = (this.#starting.get(key) ?? 1) - 1;
      if (left === 0) this.#starting.delete(key);
      else this.#starting.set(key, left);
    };
    try {
      await turns.take(key);
      const filter = { ownerId: identity.userId, limit: openTurns };
      const found = await Promise.all([
        runtime.turns({ ...filter, status: "open" }),
        runtime.turns({ ...filter, status: "queued" }),
      ]);
      if (found.flat().length + starting < openTurns) return release;
    } catch (error) {
      release();
      throw error;
    }
    release();
    throw new ServerError(
      "rate_limited",
      `you have ${openTurns} open turns; wait until one ends, or decide its requests`,
      { headers: { "retry-after": "5" } },
    );
  }
}
