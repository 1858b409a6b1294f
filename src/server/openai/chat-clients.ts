import type { Clock } from "../../base/index.ts";
import type { Turn } from "../../runtime/index.ts";
import type { AgentRequest } from "../../state/index.ts";

/** How long a client may be away before its turn is ended, in milliseconds. */
const AWAY_MS = 10_000;
/** How long a turn waits for results of its client's tools, in milliseconds. */
const RESULTS_MS = 3_600_000;

interface Present {
  count: number;
  /** Stops the timer that would end the turn. */
  cancel: (() => void) | undefined;
}

/**
 * The clients of requests without a conversation, on this server. No other client can read the answer, so a turn is ended
 * when its client has left, and does not come back with the same request.
 */
export class ChatClients {
  readonly #clock: Clock;
  readonly #present = new Map<string, Present>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A client waits for a turn, until the returned function is called. `left`: it has gone without the answer. */
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

  /** A turn waits for results of its client's tools, and is ended when they never come. */
  awaitResults(
    { turn, turnId }: { readonly turn: Turn; readonly turnId: string },
    requests: readonly Pick<AgentRequest, "requestId">[],
  ): void {
    this.#endLater(turnId, RESULTS_MS, async () => {
      const now = await turn.current();
      const open = now.status === "waiting" && now.reason === "request" ? now.requests : [];
      // Results may have come at another server.
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
      // A runtime that was shut down meanwhile has ended it for now, or has handed it over.
      end().catch(() => undefined);
    });
  }
}
