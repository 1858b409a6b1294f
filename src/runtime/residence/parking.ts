import { createDeferred, type Clock, type Deferred } from "../../base/index.ts";
import { type AgentKey, keyText } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { LiveMap } from "./live-map.ts";
import type { Part } from "../doors/roles.ts";

/** An open turn of more entries than this takes so long to be taken up that it stays a while before it leaves memory. */
const LONG_TURN = 500;
/** A millisecond for each entry, and at most so long. */
const LONGEST_STAY_MS = 5_000;

/** The next turn of a conversation often comes at once: for so long it need not be taken up anew. */
const KEPT_MS = 250;
/** However fast its turns come, an agent leaves once in a while: which process has it, and in which job, is decided anew. */
const LONGEST_KEPT_MS = 10_000;

/** What parking needs of those that live here. */
export interface Parked {
  readonly isClosing: boolean;
  intake(activation: Activation): Promise<number>;
  /** False when the inbox holds something new: the agent lives on then. */
  release(activation: Activation, as: "rest" | "parked"): Promise<boolean>;
  /** Takes agents away whatever is left to do. */
  readonly departures: { leave(activation: Activation): Promise<void> };
  /** Somebody here holds on to it, or it is in this process' memory alone. */
  staysHere(key: AgentKey): boolean;
  readonly attendance: { watch(agentId: string, work: Promise<unknown>): void };
}

/** `waits`: it lives here still, and does nothing of its own; whatever comes for it is seen. `gone`: it does not. */
export type Rest = "waits" | "gone";

/**
 * Agents leave memory as soon as nothing of their own is under way: they have no open turn, or one that only waits. What is
 * posted to them has them taken up again, by any process.
 *
 * Invariants
 * 1. Nothing is under way: no effect of the state is alive, nothing waits for its commit, and nothing lies in the inbox that
 *    could be taken. Whatever moves the agent then is posted by somebody else.
 * 2. Who waits for an agent's rest is told of it, or of its end here, whichever comes first.
 * 3. A root that has ended a turn is kept for a moment, at work's own place and only while a quarter of the places is
 *    free: nobody waits for one meanwhile.
 */
export class Parking {
  readonly #agents: Parked;
  readonly #here: LiveMap;
  readonly #clock: Clock;
  readonly #isOn: boolean;
  /** Agents at a time for which somebody here may wait for their rest. */
  readonly #places: number;
  /** Until when those that have ended a turn here are kept. */
  readonly #keptUntil = new WeakMap<Activation, number>();
  /** When each of them ended its first turn here. */
  readonly #keptSince = new WeakMap<Activation, number>();
  readonly #under = new Set<Activation>();
  readonly #rests = new Map<string, Deferred<Rest>>();
  /** Agents that something is about to be given to, by how much. */
  readonly #expecting = new Map<string, number>();
  #parkedCount = 0;

  constructor(agents: Parked, here: LiveMap, { clock, part }: { readonly clock: Clock; readonly part: Part }) {
    this.#agents = agents;
    this.#here = here;
    this.#clock = clock;
    this.#isOn = part.isDistributed && part.role !== "client";
    this.#places = part.agents;
  }

  /** Turns that have left memory while they waited. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Resolves when the agent comes to rest, or does not live here any more. */
  async rest(activation: Activation): Promise<Rest> {
    const text = keyText(activation.key);
    const deferred = this.#rests.get(text) ?? createDeferred<Rest>();
    this.#rests.set(text, deferred);
    this.look(activation);
    return await deferred.promise;
  }

  /** Whether the agent leaves this process by itself when it has nothing to do. */
  parks(key: AgentKey): boolean {
    return this.#isOn && !this.#agents.staysHere(key);
  }

  /** To be called after each commit; costs nothing where nothing is parked. */
  look(activation: Activation): void {
    if (!this.#isOn || !isSettled(activation) || !this.parks(activation.key)) return;
    if (this.#expecting.has(keyText(activation.key))) return;
    const isIdle = activation.effects.length === 0;
    if (isIdle && this.#isKept(activation)) return;
    if (isIdle || waitsForChildren(activation)) this.#tell(activation.key, "waits");
    if (!isIdle || this.#under.has(activation) || this.#agents.isClosing) return;
    this.#under.add(activation);
    const work = this.#park(activation).finally(() => this.#under.delete(activation));
    this.#agents.attendance.watch(activation.key.agentId, work);
  }

  /** To be called when a turn has ended here, before the look at its commit. */
  turnEnded(activation: Activation): void {
    const isRoot = activation.identity.parentAgentId === null;
    const isRoomy = this.#rests.size <= 0.75 * this.#places;
    if (!this.#isOn || !isRoot || !isRoomy || !this.#rests.has(keyText(activation.key))) return;
    const now = this.#clock.elapsed();
    const since = this.#keptSince.get(activation) ?? now;
    this.#keptSince.set(activation, since);
    if (now - since >= LONGEST_KEPT_MS) return;
    this.#keptUntil.set(activation, now + KEPT_MS);
    this.#clock.setDelay(KEPT_MS, () => this.look(activation));
  }

  #isKept(activation: Activation): boolean {
    const isIdle = activation.openTurnId === null && !this.#agents.isClosing;
    return isIdle && this.#clock.elapsed() < (this.#keptUntil.get(activation) ?? 0);
  }

  /** Keeps an agent here while something is given to it. */
  async during<T>(key: AgentKey, work: () => Promise<T>): Promise<T> {
    const text = keyText(key);
    this.#expecting.set(text, (this.#expecting.get(text) ?? 0) + 1);
    try {
      return await work();
    } finally {
      const others = (this.#expecting.get(text) ?? 1) - 1;
      if (others > 0) this.#expecting.set(text, others);
      else this.#expecting.delete(text);
      const activation = this.#here.get(key);
      if (activation) this.look(activation);
    }
  }

  /** It lives here no more, unless one that takes its place is coming. */
  lost({ key }: Activation): void {
    if (!this.#isOn) return;
    setImmediate(() => {
      if (!this.#here.get(key) && !this.#here.isComing(key)) this.#tell(key, "gone");
    });
  }

  async #park(activation: Activation): Promise<void> {
    await this.#stayAWhile(activation);
    while (isSettled(activation) && activation.effects.length === 0 && !this.#expecting.has(keyText(activation.key))) {
      const isOpen = activation.openTurnId !== null;
      if (await this.#agents.release(activation, isOpen ? "parked" : "rest")) {
        if (isOpen) this.#parkedCount += 1;
        return;
      }
      if (activation.isLost || (await this.#agents.intake(activation)) > 0) continue;
      if (!isSettled(activation) || activation.effects.length > 0) return;
      // What lies there nobody can take now: a turn that a pause holds. The end of the pause is posted, perhaps just now.
      if (await this.#agents.release(activation, "parked")) return;
      if (activation.isLost || (await this.#agents.intake(activation)) > 0) continue;
      return await this.#agents.departures.leave(activation);
    }
  }

  /** Taking it up again for each of many things that come would cost more than to wait for them. */
  async #stayAWhile(activation: Activation): Promise<void> {
    const { length } = activation.turnEntries;
    if (length <= LONG_TURN) return;
    await this.#clock.sleep(Math.min(length, LONGEST_STAY_MS));
  }

  #tell(key: AgentKey, rest: Rest): void {
    const text = keyText(key);
    this.#rests.get(text)?.resolve(rest);
    this.#rests.delete(text);
  }
}

/** Nothing waits for a commit: what follows from all that has happened has begun. */
function isSettled(activation: Activation): boolean {
  return !activation.isLost && activation.writer.isSettled;
}

/**
 * Code of its own waits for children, which need a place to work at: it keeps none. It lives on here, since what such code
 * has on its stack is nowhere else.
 */
function waitsForChildren({ openTurnId, openChildIds, effects }: Activation): boolean {
  return openTurnId !== null && openChildIds.length > 0 && effects.every(({ callId }) => callId !== null);
}
