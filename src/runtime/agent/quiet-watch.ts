import { createDeferred, type Deferred } from "../../base/index.ts";
import type { CallState, Entry, Refusal, TurnState } from "../../state/index.ts";

/** What is watched of a live agent. */
export interface WatchedAgent {
  readonly openTurnId: string | null;
  turn(turnId: string): TurnState | undefined;
  call(turnId: string, callId: string): CallState | undefined;
  /** Whether an attempt of the call is out in the world: what a lost process had begun is not. */
  isOut(call: CallState): boolean;
}

/**
 * Those who wait until nothing of the open turn's own is out in the world, until a refused intent may be asked again, or for
 * whatever comes next.
 */
export class QuietWatch {
  readonly #agent: WatchedAgent;
  #quiet: Deferred<void> | undefined;
  #freed: Deferred<void> | undefined;
  #moved: Deferred<void> | undefined;
  /** Runs of user code that wait to be freed, by how often. */
  readonly #held = new Map<string, number>();
  /** The last entry that lets refused intents be asked again. */
  #freedSeq = 0;

  constructor(agent: WatchedAgent) {
    this.#agent = agent;
  }

  async quiet(): Promise<void> {
    if (this.#isQuiet()) return;
    this.#quiet ??= createDeferred();
    await this.#quiet.promise;
  }

  /** Resolves with the first freed reservation or end of a pause after the refusal; rejects when the agent is discarded. */
  async freed(refusal: Refusal, run: string): Promise<void> {
    if (this.#freedSeq > refusal.seq) return;
    this.#freed ??= createDeferred();
    this.#held.set(run, (this.#held.get(run) ?? 0) + 1);
    this.#settleQuiet();
    try {
      await this.#freed.promise;
    } finally {
      const others = (this.#held.get(run) ?? 1) - 1;
      if (others > 0) this.#held.set(run, others);
      else this.#held.delete(run);
    }
  }

  /** Whoever is stopped meanwhile waits no longer: that is for the caller to see to. */
  moved(): Promise<void> {
    this.#moved ??= createDeferred();
    return this.#moved.promise;
  }

  /** To be called after each entry; costs next to nothing while nobody waits. */
  look(entry: Entry): void {
    if (entry.type === "budget.freed" || entry.type === "agent.resumed") {
      this.#freedSeq = entry.seq;
      this.#freed?.resolve();
      this.#freed = undefined;
    }
    this.#moved?.resolve();
    this.#moved = undefined;
    this.#settleQuiet();
  }

  #settleQuiet(): void {
    if (!this.#quiet || !this.#isQuiet()) return;
    this.#quiet.resolve();
    this.#quiet = undefined;
  }

  /** The agent is discarded: whoever waits for room here turns to the one that takes its place. */
  close(error: Error): void {
    this.#freed?.promise.catch(() => undefined);
    this.#freed?.reject(error);
  }

  #isQuiet(): boolean {
    const { openTurnId } = this.#agent;
    const turn = openTurnId === null ? undefined : this.#agent.turn(openTurnId);
    if (openTurnId === null || !turn) return true;
    const isRunning = (callId: string): boolean => {
      const call = this.#agent.call(openTurnId, callId);
      return call !== undefined && this.#agent.isOut(call) && !this.#held.has(callId);
    };
    return turn.openRequest === null && !turn.openCallIds.some(isRunning);
  }
}
