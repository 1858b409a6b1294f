import { type Clock } from "../../base/index.ts";
import { TroupeError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { ReleaseOptions, Stores } from "../../stores/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { Committer } from "../agent/committer.ts";
import type { CallsInFlight } from "../agent/calls-in-flight.ts";
import type { LeftBehind } from "../api/runtime-types.ts";
import type { KeptLease, Placements } from "./placements.ts";
import type { Succession } from "./activation-ports.ts";
import type { Watch } from "./watched-work.ts";

export interface HandoverOptions {
  readonly stores: Stores;
  readonly committer: Committer;
  readonly inFlight: CallsInFlight;
  readonly succession: Succession;
  readonly placements: Placements<Activation>;
  readonly clock: Clock;
  /** Notifies the owners of these agents, or activates the agents, so that their inbox items are taken. */
  readonly notify: (agentIds: readonly string[]) => void;
  readonly watch: Watch;
}

interface LeaveOptions {
  readonly as?: ReleaseOptions["as"];
  /** Whether its last steps could not be stored in time. */
  readonly isLate?: boolean;
  /** Whether its turn stays open and only `start()` activates it again in this process. */
  readonly isShutDown?: boolean;
}

/**
 * Releases agents: commits open entries, releases the lease and stops the actors. Owns: which agents could not be released
 * properly. Does not own: when an agent leaves.
 *
 * Invariants
 * 1. An activation has one release at a time; further requests wait for its outcome.
 * 2. An activation whose lease was released is stopped in the same step, and its calls in flight are aborted.
 * 3. A lease is released under the epoch that it was acquired with, so a later owner's lease is not affected. An agent that is
 *    shut down releases it with its last batch, when none of its work runs any more.
 * 4. An unused lease is offered to the stores until they answer: while this process lives, no other process can get it.
 */
export class Handover {
  readonly #options: HandoverOptions;
  /** Agents that were stopped in this process, but may not have been released or have lost their last steps. */
  readonly #leftBehind = new Map<string, LeftBehind>();
  /** Promises that resolve between two steps, for waiting handovers. */
  readonly #safePoints = new WeakMap<Activation, PromiseWithResolvers<void>>();
  /** Leases that are offered until the stores answer. */
  readonly #offerings = new Set<Promise<void>>();

  constructor(options: HandoverOptions) {
    this.#options = options;
  }

  /** Agents that could not be released properly so far. */
  get leftBehind(): LeftBehind[] {
    return [...this.#leftBehind.values()];
  }

  /** Waits until all appended entries are committed; returns false if the lease was lost meanwhile. */
  async settle(activation: Activation): Promise<boolean> {
    while (!activation.isLost && !activation.writer.isSettled) await this.#options.committer.drained();
    return !activation.isLost;
  }

  /** Offers the lease to the stores. Returns false if the inbox has a new item or a turn is open; the agent then stays. */
  async release(activation: Activation, as: "rest" | "parked" = "rest"): Promise<boolean> {
    for (;;) {
      if (!(await this.settle(activation))) return true;
      const over = this.#options.placements.overOf(activation);
      if (!over) break;
      await over;
    }
    if (as === "rest" && activation.openTurnId !== null) return false;
    return await this.#release(activation, as);
  }

  async #release(activation: Activation, as: "rest" | "parked"): Promise<boolean> {
    const { stores, placements } = this.#options;
    const { key, epoch, clock } = activation;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    placements.report(activation, { type: "lease.offered" }, { over });
    try {
      const isReleased = await stores.release(key, epoch, as === "rest" ? {} : { as, steady: clock.elapsed() });
      if (isReleased) this.#stop(activation);
      return isReleased;
    } finally {
      placements.report(activation, { type: "lease.kept" });
      resolve();
    }
  }

  /** Gives up the agent with its work unfinished; items in its inbox wait for the next owner. */
  async leave(activation: Activation, { isShutDown = false, ...how }: LeaveOptions = {}): Promise<void> {
    const { placements } = this.#options;
    const { promise: over, resolve } = Promise.withResolvers<void>();
    placements.report(activation, { type: "leave.started", isShutDown }, { over });
    this.#stop(activation);
    try {
      await this.#giveBack(activation, how);
    } finally {
      placements.report(activation, { type: "leave.ended" });
      resolve();
    }
  }

  /**
   * Starts nothing new, lets running work end, and gives up the agent between two steps. When `cut` is aborted it gives up the
   * agent immediately: a model call in flight is dropped, and repeated by the next owner. Returns whether it was cut.
   */
  async leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean> {
    const safePoint = this.#safePoints.get(activation) ?? Promise.withResolvers<void>();
    this.#safePoints.set(activation, safePoint);
    activation.gate.close(() => this.look(activation));
    this.look(activation);
    let isReached = false;
    const reached = safePoint.promise.then(() => {
      isReached = true;
    });
    const over = Promise.withResolvers<void>();
    const stop = (): void => over.resolve();
    cut.addEventListener("abort", stop, { once: true });
    if (cut.aborted) stop();
    try {
      await Promise.race([reached, over.promise]);
      // Open entries are committed first, unless the stores do not answer within the time.
      await Promise.race([this.settle(activation), over.promise]);
    } finally {
      cut.removeEventListener("abort", stop);
    }
    const isCut = !isReached;
    if (!isCut) await this.#decided(activation);
    const { isLost, openTurnId, effects } = activation;
    const isIdle = !isCut && !isLost && openTurnId !== null && effects.length === 0;
    // A turn that only waits is released as parked.
    if (isIdle && (await this.#release(activation, "parked"))) return false;
    if (!activation.isLost) await this.leave(activation, { isLate: cut.aborted });
    await this.#decided(activation);
    return isCut;
  }

  /** Must be called after each commit, at the end of each effect, and when the activation has stopped. */
  look(activation: Activation): void {
    const safePoint = this.#safePoints.get(activation);
    if (safePoint && (activation.isLost || isBetweenSteps(activation))) safePoint.resolve();
  }

  /**
   * Stops all agents of this process immediately, then releases them. `isLate`: their last steps could not be stored in time.
   * Failures are in `leftBehind`.
   */
  async leaveAll(isLate: boolean): Promise<void> {
    const { placements } = this.#options;
    const activations = placements.all();
    const kept = placements.leases();
    for (const activation of activations) activation.discard("this runtime was shut down");
    const leases = [...activations, ...kept.map(leaseToGive)];
    await Promise.allSettled(leases.map((lease) => this.#giveBack(lease, { isLate })));
    for (const { key } of kept) placements.send(key.agentId, { type: "lost" });
  }

  /** Releases the lease of a passive agent. Rejects like `leave`; the lease is then offered again. */
  async leavePassive(kept: KeptLease): Promise<void> {
    const lease = leaseToGive(kept);
    await this.#giveBack(lease, { as: lease.openTurnId === null ? "rest" : "parked" });
  }

  /** Resolves when no lease is being offered any more, because the stores took them or the process is about to end. */
  async offered(): Promise<void> {
    while (this.#offerings.size > 0) await Promise.allSettled(this.#offerings);
  }

  /** Releases an unused lease. Also resolves while the stores do not answer: it is then offered again. */
  async giveUp(key: AgentKey, epoch: number): Promise<void> {
    try {
      await this.#offer(key, epoch);
    } catch (error) {
      this.#offerAgain(key, epoch, error);
    }
  }

  /** Released as "leaving", so that items in its inbox do not matter: a process that can run the agent takes them. */
  async #offer(key: AgentKey, epoch: number, as: ReleaseOptions["as"] = "leaving"): Promise<boolean> {
    const { stores, clock } = this.#options;
    return await stores.release(key, epoch, { as, steady: clock.elapsed() });
  }

  /** Rethrows any error except that the stores do not answer. */
  #offerAgain(key: AgentKey, epoch: number, error: unknown): void {
    const { notify, watch } = this.#options;
    if (!(error instanceof TroupeError && error.retryable)) throw error;
    const { agentId } = key;
    const work = watch(agentId, "be released", async () => {
      const isTaken = await this.#offer(key, epoch);
      this.#leftBehind.delete(agentId);
      // Processes that posted meanwhile have relied on this process, which held the lease.
      if (isTaken) notify([agentId]);
    });
    const over = work.finally(() => this.#offerings.delete(over));
    this.#offerings.add(over);
  }

  async #giveBack(
    lease: LeaseToGive,
    { as = "leaving", isLate = false }: Pick<LeaveOptions, "as" | "isLate"> = {},
  ): Promise<void> {
    const { key, epoch, openTurnId: turnId, writer } = lease;
    const { agentId } = key;
    const note = (reason: string): unknown => this.#leftBehind.set(agentId, { agentId, turnId, reason });
    note("it could not be released in time; another process may activate it when this process's lease has ended");
    try {
      const isTaken = writer.hasLeft || (await this.#offer(key, epoch, as));
      // It has items, which its next owner takes.
      if (!isTaken && as !== "leaving") await this.#offer(key, epoch);
      if (isLate && !writer.isSettled) note("its last steps could not be stored; its next owner repeats them");
      else this.#leftBehind.delete(agentId);
    } catch (error) {
      note(
        `it could not be released (${String(error)}); another process may activate it when this process's lease has ended`,
      );
      if (!this.#options.placements.isClosing) this.#offerAgain(key, epoch, error);
      throw error;
    }
  }

  /** Waits while the lease of this activation is being released. */
  async #decided(activation: Activation): Promise<void> {
    const { placements } = this.#options;
    for (let over = placements.overOf(activation); over; over = placements.overOf(activation)) await over;
  }

  #stop(activation: Activation): void {
    const { inFlight, succession } = this.#options;
    succession.end(activation);
    activation.discard(`agent ${activation.key.agentId} was released`);
    inFlight.abandon(activation.key.agentId);
  }
}

/** The data about an agent whose lease is released. */
interface LeaseToGive extends Pick<Activation, "key" | "epoch" | "openTurnId"> {
  readonly writer: { readonly isSettled: boolean; readonly hasLeft: boolean };
}

function leaseToGive({ key, epoch, standing }: KeptLease): LeaseToGive {
  return { key, epoch, openTurnId: standing.now?.openTurnId ?? null, writer: { isSettled: true, hasLeft: false } };
}

/** Whether every running effect is held back, or waits for an event that the next owner can wait for too. */
function isBetweenSteps(activation: Activation): boolean {
  const { writer, effects, gate } = activation;
  return writer.isSettled && effects.every(({ callId }) => gate.isHolding(callId) || onlyWaits(activation, callId));
}

/** Whether the effect waits for its next attempt or, for a subagent's call, for a free slot. */
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
