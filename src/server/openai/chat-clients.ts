import type { Clock } from "../../base/index.ts";
import type { Turn } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";

/** Time for an absent client to return before its turn is ended, in milliseconds. */
const AWAY_MS = 10_000;
/** Maximum wait of a turn for results of its client's tools, in milliseconds. */
const RESULTS_MS = 3_600_000;

interface Present {
  count: number;
  /** Stops the timer that ends the turn. */
  cancel: (() => void) | undefined;
}

/**
 * Tracks the clients of requests without a conversation on this server. Only they can read the answer, so a turn is
 * ended if its client leaves and does not return with the same request.
 */
export class ChatClients {
  readonly #clock: Clock;
  readonly #present = new Map<string, Present>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Registers a client that waits for a turn, until the returned function is called. `left`: it disconnected without
   * the answer.
   */
  enter({ turn, turnId }: { readonly turn: Turn; readonly turnId: string }): (left: boolean) => void {
    const present = this.#present.get(turnId) ?? { count: 0, cancel: undefined };
    this.#present.set(turnId, present);
    present.cancel?.();
    present.cancel = undefined;
    present.count += 1;
    let isHere = true;
    return (left) => {
      if (!isHere) return;
      isHere = false;
      present.count -= 1;
      if (present.count > 0) return;
      if (left) this.#endLater(turnId, AWAY_MS, () => turn.abort("its client left"));
      else if (present.cancel === undefined) this.#present.delete(turnId);
    };
  }

  /** Ends a turn that waits for results of its client's tools, unless they arrive in time. */
  awaitResults(
    { turn, turnId }: { readonly turn: Turn; readonly turnId: string },
    requests: readonly Pick<AgentRequest, "requestId">[],
  ): void {
    this.#endLater(turnId, RESULTS_MS, async () => {
      const now = await turn.current();
      const open = now.status === "waiting" && now.reason === "request" ? now.requests : [];
      // Another server may have received the results.
      const isSame = open.some(({ requestId }) => requests.some((request) => request.requestId === requestId));
      if (isSame) await turn.abort("its client never sent the results of its tools");
    });
  }

  #endLater(turnId: string, ms: number, end: () => Promise<void>): void {
    const present = this.#present.get(turnId) ?? { count: 0, cancel: undefined };
    this.#present.set(turnId, present);
    present.cancel?.();
    present.cancel = this.#clock.setDelay(ms, () => {
      this.#present.delete(turnId);
      // A runtime that was shut down meanwhile has suspended the turn or handed it over.
      end().catch(() => undefined);
    });
  }
}
