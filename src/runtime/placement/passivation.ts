import { type Clock, holdProcess } from "../../base/index.ts";
import type { Rest } from "../../machines/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { LossReason } from "../agent/journal-writer.ts";
import type { Part } from "../api/roles.ts";
import type { EventBus } from "../follow/event-bus.ts";
import type { RuntimeStores } from "../unsaved/unsaved-stores.ts";
import type { Handover } from "./handover.ts";
import type { Inbox } from "./inbox.ts";
import type { KeptLease, Placements } from "./placements.ts";
import type { Watch } from "./watched-work.ts";

/** Recovering a turn with more entries than this takes long, so its agent stays a while before it is passivated. */
const LONG_TURN = 500;
/** Maximum such stay; it is a millisecond per entry. */
const LONGEST_STAY_MS = 5_000;

/** Idle agents are checked four times in the time that they are kept, within these bounds. */
const SHORTEST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 1_000;

export interface PassivationOptions {
  readonly placements: Placements<Activation>;
  readonly inbox: Inbox;
  readonly handover: Handover;
  readonly stores: Pick<RuntimeStores, "isUnsaved" | "inbox" | "rest">;
  readonly clock: Clock;
  readonly part: Part;
  readonly bus: Pick<EventBus, "forget">;
  readonly watch: Watch;
}

/** A lease that this process holds, as used by its heartbeat. */
export interface HeldLease {
  readonly key: AgentKey;
  readonly epoch: number;
  /** Gives up the agent, because the lease was lost. */
  discard(why: LossReason): void;
}

/**
 * Removes agents from memory that only a post can make continue: stops their actors and drops their conversations. A post, a
 * handle or a timer activates them again from the stores.
 *
 * | Agent | Removed | Its lease |
 * |---|---|---|
 * | a child whose turn has ended; one without an open turn that no handle of this process holds | immediately | is released |
 * | one whose turn waits, if other processes are notified of posts and no handle of this process holds it | immediately | is
 * released |
 * | every other one | `idle.keptMs` after its last work, or when there are more than `idle.agents` | stays here |
 *
 * A root agent that ends a turn in a job keeps its job slot for `idle.keptMs`, because its next turn often comes soon. A tree
 * that is only in the memory of this process keeps its root.
 *
 * Invariants
 * 1. An agent is passivated only if no effect of its state is running, no entry waits for its commit, no delivery to it is in
 *    progress, and its inbox is not being read and has no item that can be taken.
 * 2. Waiters for an agent's rest are answered when it rests or has left, whichever happens first.
 * 3. Root agents keep their job slots only while a quarter of the slots is free. When other agents need slots, the roots kept
 *    first leave, so that no agent waits for a slot. An agent whose lease another process requests (`lease.wanted`) leaves
 *    immediately.
 * 4. No timer runs while no agent is live. The timer does not keep the process alive; a turn that waits in this process does.
 */
export class Passivation {
  readonly #options: PassivationOptions;
  /** Root agents that keep a job slot between two turns; the one that ended its turn last comes last. */
  readonly #kept = new Set<Activation>();
  #parkedCount = 0;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: PassivationOptions) {
    this.#options = options;
  }

  /** Number of turns that were passivated while they waited, with their lease released. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Whether a handle of this process holds the agent, or the agent is only in the memory of this process. */
  isPinned(key: AgentKey): boolean {
    const { placements, stores } = this.#options;
    return placements.isHeld(key.agentId) || stores.isUnsaved(key);
  }

  /** Whether the agent leaves and its lease is released as soon as it rests. */
  givesBack(activation: Activation): boolean {
    const { key, openTurnId } = activation;
    if (isDone(activation)) return true;
    return (openTurnId === null || this.#options.part.isDistributed) && !this.isPinned(key);
  }

  /** Resolves when the agent rests, or has left this process. */
  async rest(activation: Activation): Promise<Rest> {
    const { placements } = this.#options;
    const { agentId } = activation.key;
    const rest = placements.rest(agentId);
    if (this.#isCrowded) this.#letGoOfOne();
    this.look(placements.get(agentId) ?? activation);
    return await rest;
  }

  /** Must be called after each commit, at the end of each effect, and when the agent's inbox was read. */
  look(activation: Activation): void {
    if (!this.givesBack(activation) || activation.drains > 0 || !isSettled(activation)) return;
    const isIdle = activation.effects.length === 0;
    if (!isIdle && !waitsForChildren(activation)) return;
    const { placements, clock } = this.#options;
    const event = {
      type: "settled",
      mayLeave: isIdle && !placements.isClosing,
      isBetweenTurns: activation.openTurnId === null,
      isDone: isDone(activation),
      now: clock.elapsed(),
    } as const;
    for (const { type } of placements.report(activation, event)) {
      if (type === "passivate") void this.#passivate(activation);
    }
  }

  /** Must be called when a turn has ended in this process, before `look` is called for its commit. */
  turnEnded(activation: Activation): void {
    const { placements, clock, part } = this.#options;
    const { key, identity } = activation;
    if (identity.parentAgentId !== null || !placements.isAwaited(key.agentId) || this.#isCrowded) return;
    placements.report(activation, { type: "turn.ended", now: clock.elapsed(), keptMs: part.idle.keptMs });
    this.#kept.delete(activation);
    this.#kept.add(activation);
  }

  get #isCrowded(): boolean {
    const { placements, part } = this.#options;
    return placements.waiters > 0.75 * part.agents;
  }

  /** Lets the agent leave whose last turn ended first, unless it has started another turn. */
  #letGoOfOne(): void {
    const { placements } = this.#options;
    for (const activation of this.#kept) {
      this.#kept.delete(activation);
      if (activation.openTurnId !== null || placements.get(activation.key.agentId) !== activation) continue;
      placements.report(activation, { type: "kept.ended" });
      return this.look(activation);
    }
  }

  /** Keeps the agent in this process while a delivery to it is in progress. */
  async during<T>({ agentId }: AgentKey, work: () => Promise<T>): Promise<T> {
    const { placements } = this.#options;
    placements.send(agentId, { type: "delivery.started" });
    try {
      return await work();
    } finally {
      placements.send(agentId, { type: "delivery.ended" });
      const activation = placements.get(agentId);
      if (activation) this.look(activation);
    }
  }

  async #passivate(activation: Activation): Promise<void> {
    const { placements, clock, watch } = this.#options;
    const { agentId } = activation.key;
    this.#kept.delete(activation);
    // Activating it again for each of many posts would cost more than waiting for them.
    const { length } = activation.turnEntries;
    if (length > LONG_TURN) await clock.sleep(Math.min(length, LONGEST_STAY_MS));
    let isOver = false;
    await watch(agentId, "be released", async () => {
      await this.#leave(activation);
      isOver = true;
    });
    placements.report(activation, { type: "passivation.ended" });
    // It may have settled just after it was found busy; if the stores have failed, the next commit checks again.
    if (isOver) this.look(activation);
  }

  /** Releases the agent, unless new work has arrived meanwhile. */
  async #leave(activation: Activation): Promise<void> {
    const { placements, inbox, handover } = this.#options;
    const { key } = activation;
    const mayLeave = (): boolean =>
      isSettled(activation) && activation.effects.length === 0 && !placements.hasDeliveries(key.agentId);
    while (mayLeave() && this.givesBack(activation)) {
      const isOpen = activation.openTurnId !== null;
      if (await handover.release(activation, isOpen ? "parked" : "rest")) {
        if (isOpen) this.#parkedCount += 1;
        return;
      }
      if (activation.isLost || (await inbox.drain(activation)) > 0) continue;
      if (!isSettled(activation) || activation.effects.length > 0) return;
      // Its inbox has only items that it cannot take, such as a turn that a pause holds. The end of the pause may just have been
      // posted.
      if (await handover.release(activation, "parked")) return;
      if (activation.isLost || (await inbox.drain(activation)) > 0) continue;
      return await handover.leave(activation);
    }
  }

  /** Must be called when an agent has been activated. */
  begin(): void {
    if (this.#cancel || this.#isClosed) return;
    const { clock, part, placements } = this.#options;
    const now = clock.elapsed();
    const pause = Math.min(Math.max(part.idle.keptMs / 4, SHORTEST_LOOK_MS), LONGEST_LOOK_MS);
    const kept = [...this.#kept].map(({ key }) => placements.keptUntil(key.agentId) - now);
    this.#cancel = clock.setDelay(Math.max(0, Math.min(pause, ...kept)), () => {
      this.#cancel = undefined;
      if (this.#sweep()) this.begin();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** The leases that this process holds: those of live and of passive agents. */
  leases(): HeldLease[] {
    const { placements } = this.#options;
    const passive = placements.leases().map(({ key, epoch }) => ({ key, epoch, discard: () => this.forget(key) }));
    return [...placements.all(), ...passive];
  }

  /** The agents whose leases this process holds. */
  keys(): AgentKey[] {
    const { placements } = this.#options;
    return [...placements.all(), ...placements.leases()].map(({ key }) => key);
  }

  /** Whether a passive agent has received an item since. */
  async hasMore({ key, untaken }: KeptLease): Promise<boolean> {
    const items = await this.#options.stores.inbox(key);
    return items.some((item) => !untaken.includes(item.key));
  }

  /**
   * Releases the leases of all passive agents. Returns the keys of those that were released; the handover lists the others and
   * offers their leases again.
   */
  async leave(): Promise<AgentKey[]> {
    const left = this.#options.placements.leases().map(async ({ key }) => {
      await this.giveBack(key);
      return key;
    });
    const outcomes = await Promise.allSettled(left);
    return outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  /** Releases the lease of a passive agent; returns false if it is not passive. */
  async giveBack(key: AgentKey): Promise<boolean> {
    const { placements, handover } = this.#options;
    const lease = placements.leaseOf(key.agentId);
    if (!lease) return false;
    this.forget(key);
    await handover.leavePassive(lease);
    return true;
  }

  /** Drops a passive agent, because its lease was lost. */
  forget({ agentId }: AgentKey): void {
    const { placements } = this.#options;
    if (placements.leaseOf(agentId)) placements.send(agentId, { type: "lost" });
  }

  /** Returns whether any agent is still live. */
  #sweep(): boolean {
    const { placements, stores, clock, part } = this.#options;
    const now = clock.elapsed();
    for (const activation of this.#kept) {
      if (placements.isHere(activation) && now < placements.keptUntil(activation.key.agentId)) continue;
      this.#kept.delete(activation);
      this.look(activation);
    }
    const live = placements.all();
    const passive: AgentKey[] = [];
    const unused = live.filter((activation) => isUnused(activation, now));
    let left = live.length;
    for (const activation of unused.sort((one, other) => one.idleSince - other.idleSince)) {
      if (now - activation.idleSince < part.idle.keptMs && left <= part.idle.agents) break;
      if (!this.#mayKeepLease(activation) || !this.#passivateHere(activation)) continue;
      passive.push(activation.key);
      left -= 1;
    }
    if (passive.length > 0) stores.rest?.(passive);
    return left > 0;
  }

  #mayKeepLease(activation: Activation): boolean {
    if (this.givesBack(activation) || this.#options.stores.isUnsaved(activation.key)) return false;
    return activation.drains === 0 && isSettled(activation) && activation.effects.length === 0;
  }

  /** Passivates an agent whose lease stays in this process; returns false if a delivery to it is in progress. */
  #passivateHere(activation: Activation): boolean {
    const { placements, bus } = this.#options;
    const { key, epoch, standing, lifecycle } = activation;
    const untaken = activation.untaken.length > 0 ? activation.untaken : nothing;
    const lease: KeptLease = { key, epoch, standing, untaken, letGo: lifecycle === "busy" ? holdProcess() : undefined };
    placements.report(activation, { type: "passivated" }, { lease });
    if (placements.leaseOf(key.agentId) !== lease) return false;
    activation.discard(`agent ${key.agentId} was passivated`);
    bus.forget(activation.identity);
    return true;
  }
}

/** Whether the agent is a child whose turn has ended. */
function isDone({ identity, openTurnId, hasEndedTurn }: Activation): boolean {
  return identity.parentAgentId !== null && openTurnId === null && hasEndedTurn;
}

/** Whether no entry waits for a commit, so that all resulting work has started. */
function isSettled(activation: Activation): boolean {
  return !activation.isLost && activation.writer.isSettled;
}

/**
 * Whether the agent's own code waits for children. The children need a job slot to run in, so the waiting agent must not occupy
 * one; it stays in memory, because the stack of such code cannot be stored.
 */
function waitsForChildren({ openTurnId, openChildIds, effects }: Activation): boolean {
  return openTurnId !== null && openChildIds.length > 0 && effects.every(({ callId }) => callId !== null);
}

const nothing: readonly string[] = [];

/** Whether the agent was not used since the last check. */
function isUnused(activation: Activation, now: number): boolean {
  if (!activation.isUsed) return true;
  activation.isUsed = false;
  activation.idleSince = now;
  return false;
}
