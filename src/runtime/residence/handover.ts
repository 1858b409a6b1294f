import { createDeferred } from "../../base/index.ts";
import { LeaseLostError } from "../../errors/index.ts";
import type { ReleaseOptions, Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Committer } from "../agent/committer.ts";
import type { CallsInFlight } from "../agent/calls-in-flight.ts";
import type { LeftBehind } from "../doors/runtime-types.ts";
import type { Residences } from "./residence.ts";
import type { Succession } from "./activation-ports.ts";

export interface HandoverOptions {
  readonly stores: Stores;
  readonly committer: Committer;
  readonly inFlight: CallsInFlight;
  readonly succession: Succession;
  readonly residences: Residences<Activation>;
}

interface LeaveOptions {
  readonly as?: ReleaseOptions["as"];
  /** Its last steps could not be stored in time. */
  readonly isLate?: boolean;
  /** Its turn stays open, and nobody but `start()` brings it back to this process. */
  readonly isShutDown?: boolean;
}

/**
 * Gives leases back: what the agents have done is committed, the lease is released, the actors are stopped.
 * Owns: what could not be given back as it should. Does not own: when an agent is to leave.
 *
 * Invariants
 * 1. Of one activation one release is under way at a time; who asks for another one waits for its outcome.
 * 2. An activation whose lease was given back is stopped in the same step, and its calls in the inFlight are aborted.
 * 3. A lease is given back under the epoch that it was taken with: one that another owner has meanwhile stays as it is.
 */
export class Handover {
  readonly #options: HandoverOptions;
  /** Agents that were stopped here and are not known to be given back, or were stopped too early. */
  readonly #leftBehind = new Map<string, LeftBehind>();

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  /** Agents that could not be left as they should, up to now. */
  get leftBehind(): LeftBehind[] {
    return [...this.#leftBehind.values()];
  }

  /** Waits until everything that was appended is committed; false when the lease was lost meanwhile. */
  async settle(activation: Activation): Promise<boolean> {
    while (!activation.isLost && !activation.writer.isSettled) await this.#options.committer.drained();
    return !activation.isLost;
  }

  /** Offers the lease back. False when the inbox holds something new, or a turn is open: then the agent lives on. */
  async release(activation: Activation, as: "rest" | "parked" = "rest"): Promise<boolean> {
    for (;;) {
      if (!(await this.settle(activation))) return true;
      const over = this.#options.residences.overOf(activation);
      if (!over) break;
      await over;
    }
    if (as === "rest" && activation.openTurnId !== null) return false;
    return await this.#release(activation, as);
  }

  async #release(activation: Activation, as: "rest" | "parked"): Promise<boolean> {
    const { stores, residences } = this.#options;
    const { key, epoch, clock } = activation;
    const over = createDeferred();
    residences.apply(key.agentId, { type: "release", activation, over: over.promise });
    try {
      const isReleased = await stores.release(key, epoch, as === "rest" ? {} : { as, steady: clock.elapsed() });
      if (isReleased) this.#stop(activation);
      return isReleased;
    } finally {
      residences.apply(key.agentId, { type: "release.over", activation });
      over.resolve();
    }
  }

  /** Gives the agent up whatever is left to do; what its inbox holds waits for the next owner. */
  async leave(
    activation: Activation,
    { as = "leaving", isLate = false, isShutDown = false }: LeaveOptions = {},
  ): Promise<void> {
    const { residences } = this.#options;
    const { agentId } = activation.key;
    const over = createDeferred();
    residences.apply(agentId, { type: "leave", activation, over: over.promise, isShutDown });
    this.#stop(activation);
    try {
      await this.#giveBack(activation, as, isLate);
    } finally {
      residences.apply(agentId, { type: "leave.over", activation });
      over.resolve();
    }
  }

  /**
   * Begins nothing new, lets what is under way come to its end, and gives the agent up between two steps; at once when it is
   * cut: a model call in flight is dropped then, and repeated by the next owner. True when it was.
   */
  async leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean> {
    const { residences } = this.#options;
    const { agentId } = activation.key;
    residences.apply(agentId, { type: "safePoint.awaited", activation, safePoint: createDeferred() });
    const safePoint = residences.stay(activation)?.safePoint;
    activation.gate.close(() => this.look(activation));
    this.look(activation);
    const over = createDeferred();
    const stop = (): void => over.resolve();
    cut.addEventListener("abort", stop, { once: true });
    if (cut.aborted) stop();
    try {
      await Promise.race([safePoint?.promise, over.promise]);
      // What has happened is committed first, unless the stores do not answer within the time.
      await Promise.race([this.settle(activation), over.promise]);
    } finally {
      cut.removeEventListener("abort", stop);
    }
    const isCut = safePoint?.isSettled === false;
    if (!isCut) await this.#decided(activation);
    const { isLost, openTurnId, effects } = activation;
    const isIdle = !isCut && !isLost && openTurnId !== null && effects.length === 0;
    // One that only waits is not left at work.
    if (isIdle && (await this.#release(activation, "parked"))) return false;
    if (!activation.isLost) await this.leave(activation, { isLate: over.isSettled });
    await this.#decided(activation);
    return isCut;
  }

  /** To be called after each commit and each effect's end: a safe point may be reached. */
  look(activation: Activation): void {
    const safePoint = this.#options.residences.stay(activation)?.safePoint;
    if (safePoint && isBetweenSteps(activation)) safePoint.resolve();
  }

  /**
   * Stops all that live here at once, then gives them back. `isLate`: what they have done could not be stored in time. What
   * goes wrong is told by `leftBehind`.
   */
  async leaveAll(isLate: boolean): Promise<void> {
    const activations = this.#options.residences.all();
    for (const activation of activations) activation.discard(new LeaseLostError("this runtime was shut down"));
    await Promise.allSettled(activations.map((activation) => this.#giveBack(activation, "leaving", isLate)));
  }

  async #giveBack(activation: Activation, as: ReleaseOptions["as"], isLate: boolean): Promise<void> {
    const { key, epoch, clock, openTurnId: turnId, writer } = activation;
    const { agentId } = key;
    const note = (reason: string): unknown => this.#leftBehind.set(agentId, { agentId, turnId, reason });
    note("it could not be given back in time; others take it up when this process' lease has ended");
    try {
      await this.#options.stores.release(key, epoch, { as, steady: clock.elapsed() });
      if (isLate && !writer.isSettled)
        note("what it did last could not be stored; the process that takes it up next does that again");
      else this.#leftBehind.delete(agentId);
    } catch (error) {
      note(`it could not be given back (${String(error)}); others take it up when this process' lease has ended`);
      throw error;
    }
  }

  /** Waits while the lease of this activation is being given back. */
  async #decided(activation: Activation): Promise<void> {
    const { residences } = this.#options;
    for (let over = residences.overOf(activation); over; over = residences.overOf(activation)) await over;
  }

  #stop(activation: Activation): void {
    const { inFlight, succession } = this.#options;
    succession.end(activation);
    activation.discard(new LeaseLostError(`agent ${activation.key.agentId} was released`));
    inFlight.abandon(activation.key.agentId);
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
