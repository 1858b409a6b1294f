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

/** A turn with more entries than this takes long to recover, so its agent stays a while before it is passivated. */
const LONG_TURN = 500;
/** The longest such stay, which is a millisecond for each entry. */
const LONGEST_STAY_MS = 5_000;

/** Idle agents are looked for four times in the time that they are kept, but not more often and not more rarely. */
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

/** A lease that this process has, as its heartbeat looks at it. */
export interface HeldLease {
  readonly key: AgentKey;
  readonly epoch: number;
  /** Gives the agent up, because the lease was lost. */
  discard(why: LossReason): void;
}

/**
 * Takes agents out of memory that only a post can move: stops their actors and drops their conversations. A post, a
 * handle or a timer activates them again from the stores.
 *
 * | Which agent | Leaves | Its lease |
 * |---|---|---|
 * | a child whose turn has ended; one that no handle here holds and that has no open turn | at once | goes back |
 * | one whose turn waits, where other processes are told of posts and no handle here holds it | at once | goes back |
 * | every other one | `idle.keptMs` after its last work, or when there are more than `idle.agents` | stays here |
 *
 * A root that ends a turn in a job is kept for `idle.keptMs` in the job's place, because its next turn often comes soon.
 * A tree that is only in the memory of this process keeps its root.
 *
 * Invariants
 * 1. An agent is passivated only if no effect of its state is running, no entry waits for its commit, nothing is
 *    delivered to it, and its inbox is not being read and has no item that can be taken.
 * 2. Waiters for an agent's rest are answered when it rests or is gone, whichever comes first.
 * 3. Roots are kept in their jobs' places only while a quarter of the places is free. When agents come that need these,
 *    those that were kept first leave, so that no other agent waits for a place. One whose lease another process asks
 *    for (`lease.wanted`) leaves at once.
 * 4. Nothing ticks while no agent is live. The timer does not keep the process alive; a turn that waits here does.
 */
export class Passivation {
  readonly #options: PassivationOptions;
  /** Roots that are kept between two turns in a job's place; the one that ended a turn last is the last. */
  readonly #kept = new Set<Activation>();
  #parkedCount = 0;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: PassivationOptions) {
    this.#options = options;
  }

  /** Turns that were passivated while they waited, and whose lease went back. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Whether a handle here holds the agent, or it is only in the memory of this process. */
  isPinned(key: AgentKey): boolean {
    const { placements, stores } = this.#options;
    return placements.isHeld(key.agentId) || stores.isUnsaved(key);
  }

  /** Whether the agent leaves without delay once it rests, and its lease goes back. */
  givesBack(activation: Activation): boolean {
    const { key, openTurnId } = activation;
    if (isDone(activation)) return true;
    return (openTurnId === null || this.#options.part.isDistributed) && !this.isPinned(key);
  }

  /** Resolves when the agent rests, or is not here any more. */
  async rest(activation: Activation): Promise<Rest> {
    const { placements } = this.#options;
    const { agentId } = activation.key;
    const rest = placements.rest(agentId);
    if (this.#isCrowded) this.#letGoOfOne();
    this.look(placements.get(agentId) ?? activation);
    return await rest;
  }

  /** Must be called after each commit, at the end of each effect, and when its inbox was read. */
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

  /** Must be called when a turn has ended here, before `look` is called for its commit. */
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

  /** Lets go of the one whose last turn ended first, if it has no other by now. */
  #letGoOfOne(): void {
    const { placements } = this.#options;
    for (const activation of this.#kept) {
      this.#kept.delete(activation);
      if (activation.openTurnId !== null || placements.get(activation.key.agentId) !== activation) continue;
      placements.report(activation, { type: "kept.ended" });
      return this.look(activation);
    }
  }

  /** Keeps the agent here while something is delivered to it. */
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
    await watch(agentId, "be given back", async () => {
      await this.#leave(activation);
      isOver = true;
    });
    placements.report(activation, { type: "passivation.ended" });
    // It may have settled in the moment since it was found busy; where the stores have failed, the next commit looks.
    if (isOver) this.look(activation);
  }

  /** Gives the agent back, unless it has got something to do meanwhile. */
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
      // Its inbox has only items that it cannot take, such as a turn that a pause holds. The end of the pause may
      // just be posted.
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

  /** The leases that this process has: of live agents and of passive ones. */
  leases(): HeldLease[] {
    const { placements } = this.#options;
    const passive = placements.leases().map(({ key, epoch }) => ({ key, epoch, discard: () => this.forget(key) }));
    return [...placements.all(), ...passive];
  }

  /** The agents whose leases this process has. */
  keys(): AgentKey[] {
    const { placements } = this.#options;
    return [...placements.all(), ...placements.leases()].map(({ key }) => key);
  }

  /** Whether a passive agent has got something since. */
  async hasMore({ key, untaken }: KeptLease): Promise<boolean> {
    const items = await this.#options.stores.inbox(key);
    return items.some((item) => !untaken.includes(item.key));
  }

  /**
   * Gives back the leases of all passive agents. Returns the keys of those whose lease was given back; the handover
   * names the others, and offers theirs again.
   */
  async leave(): Promise<AgentKey[]> {
    const left = this.#options.placements.leases().map(async ({ key }) => {
      await this.giveBack(key);
      return key;
    });
    const outcomes = await Promise.allSettled(left);
    return outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  /** Gives back the lease of a passive agent; false if it is not passive. */
  async giveBack(key: AgentKey): Promise<boolean> {
    const { placements, handover } = this.#options;
    const lease = placements.leaseOf(key.agentId);
    if (!lease) return false;
    this.forget(key);
    await handover.leavePassive(lease);
    return true;
  }

  /** Forgets a passive agent, because its lease was lost. */
  forget({ agentId }: AgentKey): void {
    const { placements } = this.#options;
    if (placements.leaseOf(agentId)) placements.send(agentId, { type: "lost" });
  }

  /** Returns whether an agent is live still. */
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

  /** Passivates an agent whose lease stays here; false if something is being delivered to it. */
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

/** Whether it is a child whose turn has ended. */
function isDone({ identity, openTurnId, hasEndedTurn }: Activation): boolean {
  return identity.parentAgentId !== null && openTurnId === null && hasEndedTurn;
}

/** Whether no entry waits for a commit, so that everything that follows from them has started. */
function isSettled(activation: Activation): boolean {
  return !activation.isLost && activation.writer.isSettled;
}

/**
 * Whether the agent's own code waits for children, which need a place to work in, so that it must not occupy one. The
 * agent stays in memory, because the stack of such code exists nowhere else.
 */
function waitsForChildren({ openTurnId, openChildIds, effects }: Activation): boolean {
  return openTurnId !== null && openChildIds.length > 0 && effects.every(({ callId }) => callId !== null);
}

const nothing: readonly string[] = [];

/** Whether nothing was done with the agent since the last look. */
function isUnused(activation: Activation, now: number): boolean {
  if (!activation.isUsed) return true;
  activation.isUsed = false;
  activation.idleSince = now;
  return false;
}
