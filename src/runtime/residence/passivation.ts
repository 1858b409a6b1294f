import { type Clock, createDeferred } from "../../base/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Part } from "../doors/roles.ts";
import type { UnsavedTrees } from "../unsaved/unsaved-trees.ts";
import type { Handover } from "./handover.ts";
import type { Inbox } from "./inbox.ts";
import type { Residences, Rest } from "./residence.ts";

/** An open turn of more entries than this takes so long to recover that its agent stays a while before it is passivated. */
const LONG_TURN = 500;
/** A millisecond for each entry, and at most so long. */
const LONGEST_STAY_MS = 5_000;

export interface PassivationOptions {
  readonly residences: Residences<Activation>;
  readonly inbox: Inbox;
  readonly handover: Handover;
  readonly stores: Pick<UnsavedTrees, "isHeld">;
  readonly clock: Clock;
  readonly part: Part;
  /** Reports what goes wrong. */
  watch(agentId: string, work: Promise<unknown>): void;
}

/**
 * Agents leave memory as soon as nothing of their own is under way: they have no open turn, or one that only waits. What is
 * posted to them has them activated again, by any process. Off where other processes are not told of what is posted.
 *
 * Invariants
 * 1. Nothing is under way: no effect of the state is alive, nothing waits for its commit, and nothing lies in the inbox that
 *    could be taken. What moves the agent then is posted by somebody else.
 * 2. Those who wait for an agent's rest are answered when it rests, or is gone, whichever comes first.
 * 3. A root that has ended a turn is kept for a moment, at work's own place and only while a quarter of the places is
 *    free: nobody waits for one meanwhile.
 */
export class Passivation {
  readonly #options: PassivationOptions;
  readonly #isOn: boolean;
  #parkedCount = 0;

  constructor(options: PassivationOptions) {
    this.#options = options;
    this.#isOn = options.part.isDistributed && options.part.role !== "client";
  }

  /** Turns that have left memory while they waited. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Whether the agent leaves this process by itself when it has nothing to do. */
  applies(key: AgentKey): boolean {
    return this.#isOn && !this.isPinned(key);
  }

  /** A handle here holds on to the agent, or it is in this process' memory alone. */
  isPinned(key: AgentKey): boolean {
    const { residences, stores } = this.#options;
    return residences.of(key.agentId).isHeld || stores.isHeld(key);
  }

  /** Resolves when the agent comes to rest, or does not live here any more. */
  async rest(activation: Activation): Promise<Rest> {
    const { residences } = this.#options;
    const { agentId } = activation.key;
    residences.apply(agentId, { type: "rest.awaited", waiter: createDeferred<Rest>() });
    const { waiter } = residences.of(agentId);
    this.look(residences.get(agentId) ?? activation);
    return (await waiter?.promise) ?? "waits";
  }

  /** To be called after each commit and each effect's end; costs nothing where this is off. */
  look(activation: Activation): void {
    const { key, openTurnId, effects } = activation;
    if (!this.#isOn || !isSettled(activation) || !this.applies(key)) return;
    const isIdle = effects.length === 0;
    if (!isIdle && !waitsForChildren(activation)) return;
    const { residences, clock } = this.#options;
    const event = {
      type: "settled",
      activation,
      mayPassivate: isIdle && !residences.isClosing,
      isBetweenTurns: openTurnId === null,
      now: clock.elapsed(),
    } as const;
    for (const { type } of residences.apply(key.agentId, event)) {
      if (type === "passivate") this.#options.watch(key.agentId, this.#passivate(activation));
    }
  }

  /** To be called when a turn has ended here, before the look at its commit. */
  turnEnded(activation: Activation): void {
    const { residences, clock, part } = this.#options;
    const isRoot = activation.identity.parentAgentId === null;
    if (!this.#isOn || !isRoot || residences.waiters > 0.75 * part.agents) return;
    const event = { type: "turn.ended", activation, now: clock.elapsed() } as const;
    for (const effect of residences.apply(activation.key.agentId, event)) {
      if (effect.type === "lookAgain") clock.setDelay(effect.afterMs, () => this.look(activation));
    }
  }

  /** Keeps an agent here while something is given to it. */
  async during<T>({ agentId }: AgentKey, work: () => Promise<T>): Promise<T> {
    const { residences } = this.#options;
    residences.apply(agentId, { type: "delivery" });
    try {
      return await work();
    } finally {
      residences.apply(agentId, { type: "delivery.over" });
      const activation = residences.get(agentId);
      if (activation) this.look(activation);
    }
  }

  async #passivate(activation: Activation): Promise<void> {
    const { residences, inbox, handover, clock } = this.#options;
    const { key } = activation;
    const mayLeave = (): boolean =>
      isSettled(activation) && activation.effects.length === 0 && residences.of(key.agentId).deliveries === 0;
    try {
      // To activate it again for each of many things that come would cost more than to wait for them.
      const { length } = activation.turnEntries;
      if (length > LONG_TURN) await clock.sleep(Math.min(length, LONGEST_STAY_MS));
      while (mayLeave() && this.applies(key)) {
        const isOpen = activation.openTurnId !== null;
        if (await handover.release(activation, isOpen ? "parked" : "rest")) {
          if (isOpen) this.#parkedCount += 1;
          return;
        }
        if (activation.isLost || (await inbox.drain(activation)) > 0) continue;
        if (!isSettled(activation) || activation.effects.length > 0) return;
        // What lies there nobody can take now: a turn that a pause holds. The end of the pause is posted, perhaps just now.
        if (await handover.release(activation, "parked")) return;
        if (activation.isLost || (await inbox.drain(activation)) > 0) continue;
        return await handover.leave(activation);
      }
    } finally {
      residences.apply(key.agentId, { type: "passivation.over", activation });
    }
  }
}

/** Nothing waits for a commit: what follows from all that has happened has begun. */
function isSettled(activation: Activation): boolean {
  return !activation.isLost && activation.writer.isSettled;
}

/**
 * The agent's own code waits for children, which need a place to work at: it keeps none. The agent lives on here, since what
 * such code has on its stack is nowhere else.
 */
function waitsForChildren({ openTurnId, openChildIds, effects }: Activation): boolean {
  return openTurnId !== null && openChildIds.length > 0 && effects.every(({ callId }) => callId !== null);
}
