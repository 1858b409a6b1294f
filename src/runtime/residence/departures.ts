import { createDeferred, type Deferred } from "../../base/index.ts";
import { LeaseLostError } from "../../errors/index.ts";
import type { ReleaseOptions, Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Committer } from "../agent/committer.ts";
import type { LeftBehind } from "../doors/runtime-types.ts";
import type { Succession } from "./succession.ts";
import type { World } from "../agent/calls-in-flight.ts";

export interface DeparturesOptions {
  readonly stores: Stores;
  readonly committer: Committer;
  readonly world: World;
  readonly succession: Succession<Activation>;
}

/**
 * How agents leave this process: what they have to say is committed, the lease is given back, the actors are stopped.
 *
 * Invariant: whoever asks for an agent whose lease is just being given back is told when that is decided: what came for it in
 * the meantime is seen either by this owner or by the one after it.
 */
export class Departures {
  readonly #options: DeparturesOptions;
  readonly #leaving = new Map<Activation, Promise<void>>();
  readonly #onTheWay = new Map<Activation, Deferred<void>>();
  /** Those that were stopped here and are not known to be given back, and those that were stopped too early, by agent. */
  readonly #leftBehind = new Map<string, LeftBehind>();

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  /** Settles when it is decided whether the agent leaves; undefined where it is not about to. */
  undecided(activation: Activation): Promise<void> | undefined {
    return this.#leaving.size === 0 ? undefined : this.#leaving.get(activation);
  }

  /** Waits until everything that was appended is committed; false when the lease was lost meanwhile. */
  async settle(activation: Activation): Promise<boolean> {
    while (!activation.isLost && !activation.writer.isSettled) await this.#options.committer.drained();
    return !activation.isLost;
  }

  /** False when the inbox holds something new: the agent lives on then. */
  async release(activation: Activation, as: "rest" | "parked"): Promise<boolean> {
    const { key, epoch, clock } = activation;
    return await this.#leave(activation, async () => {
      const how = as === "rest" ? {} : { as, steady: clock.elapsed() };
      const released = await this.#options.stores.release(key, epoch, how);
      if (released) this.#stop(activation);
      return released;
    });
  }

  /** Whatever is left to do; what the inbox holds waits for the next owner. */
  async leave(activation: Activation, as: ReleaseOptions["as"] = "leaving", isLate = false): Promise<void> {
    await this.#leave(activation, async () => {
      this.#stop(activation);
      return await this.#giveBack(activation, as, isLate);
    });
  }

  /**
   * Begins nothing new, lets what is under way come to its end, and gives the agent up between two steps; at once when it is
   * cut: a model call in flight is dropped then, and repeated by the next owner. True when it was.
   */
  async leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean> {
    const safe = this.#onTheWay.get(activation) ?? createDeferred();
    this.#onTheWay.set(activation, safe);
    activation.gate.close(() => this.look(activation));
    this.look(activation);
    const over = createDeferred();
    const stop = (): void => over.resolve();
    cut.addEventListener("abort", stop, { once: true });
    if (cut.aborted) stop();
    try {
      await Promise.race([safe.promise, over.promise]);
      // What has happened is committed first, unless the stores do not answer within the time.
      await Promise.race([this.settle(activation), over.promise]);
    } finally {
      cut.removeEventListener("abort", stop);
      this.#onTheWay.delete(activation);
    }
    const isCut = !safe.isSettled;
    const isIdle = !isCut && activation.openTurnId !== null && activation.effects.length === 0;
    // One that only waits is not left at work.
    if (isIdle && (await this.release(activation, "parked"))) return false;
    if (!activation.isLost) await this.leave(activation, "leaving", over.isSettled);
    return isCut;
  }

  /** To be called after each commit, and when the agent is lost. */
  look(activation: Activation): void {
    const waiting = this.#onTheWay.get(activation);
    if (waiting && (activation.isLost || isBetweenSteps(activation))) waiting.resolve();
  }

  /** Whoever could not be left as it should, up to now. */
  get leftBehind(): LeftBehind[] {
    return [...this.#leftBehind.values()];
  }

  /**
   * Stops all that live here at once, then gives them back. `isLate`: what they have done could not be stored in time. What
   * goes wrong is told by `leftBehind`.
   */
  async leaveAll(activations: readonly Activation[], why: LeaseLostError, isLate: boolean): Promise<void> {
    for (const activation of activations) activation.discard(why);
    await Promise.allSettled(activations.map((activation) => this.#giveBack(activation, "leaving", isLate)));
  }

  async #giveBack(activation: Activation, as: ReleaseOptions["as"], isLate: boolean): Promise<boolean> {
    const { key, epoch, clock, openTurnId: turnId, writer } = activation;
    const { agentId } = key;
    const note = (reason: string): unknown => this.#leftBehind.set(agentId, { agentId, turnId, reason });
    note("it could not be given back in time; others take it up when this process' lease has ended");
    try {
      const isGiven = await this.#options.stores.release(key, epoch, { as, steady: clock.elapsed() });
      if (isLate && !writer.isSettled)
        note("what it did last could not be stored; whoever takes it up does that again");
      else this.#leftBehind.delete(agentId);
      return isGiven;
    } catch (error) {
      note(`it could not be given back (${String(error)}); others take it up when this process' lease has ended`);
      throw error;
    }
  }

  async #leave(activation: Activation, leave: () => Promise<boolean>): Promise<boolean> {
    const left = leave();
    const decided = left.then(
      () => undefined,
      () => undefined,
    );
    this.#leaving.set(activation, decided);
    try {
      return await left;
    } finally {
      this.#leaving.delete(activation);
    }
  }

  #stop(activation: Activation): void {
    const { world, succession } = this.#options;
    succession.release(activation);
    activation.discard(new LeaseLostError(`agent ${activation.key.agentId} was released`));
    world.abandon(activation.key.agentId);
  }
}

/** All that the state calls for is held back, or waits for nothing that would be lost. */
function isBetweenSteps(activation: Activation): boolean {
  const { writer, effects, gate } = activation;
  return writer.isSettled && effects.every(({ callId }) => gate.isHolding(callId) || onlyWaits(activation, callId));
}

/** For its next attempt, or, a subagent's call, for others of its kind to end. */
function onlyWaits(activation: Activation, callId: string | null): boolean {
  const { openTurnId, clock, definition } = activation;
  if (openTurnId === null) return false;
  const isLater = (at: number | null | undefined): boolean => typeof at === "number" && at > clock.now();
  if (callId === null) return isLater(activation.turn(openTurnId)?.retryAt);
  const call = activation.call(openTurnId, callId);
  if (!call) return false;
  const isSpawn = call.gate?.verdict === "allowed" && definition.tools.get(call.name)?.kind === "subagent";
  return isSpawn || isLater(call.retryAt);
}
