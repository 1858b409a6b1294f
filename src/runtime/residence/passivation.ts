import { type Clock, createDeferred, holdProcess } from "../../base/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { LossReason } from "../agent/journal-writer.ts";
import type { IdleSettings, Part } from "../doors/roles.ts";
import type { EventBus } from "../follow/event-bus.ts";
import type { RuntimeStores } from "../unsaved/unsaved-stores.ts";
import type { Handover } from "./handover.ts";
import type { Inbox } from "./inbox.ts";
import type { PutAway, Residences, Rest } from "./residence.ts";
import type { Watch } from "./watched-work.ts";

/** A turn with more entries than this takes long to recover, so its agent stays a while before it is passivated. */
const LONG_TURN = 500;
/** The longest such stay, which is a millisecond for each entry. */
const LONGEST_STAY_MS = 5_000;

export interface PassivationOptions {
  readonly residences: Residences<Activation>;
  readonly inbox: Inbox;
  readonly handover: Handover;
  readonly stores: Pick<RuntimeStores, "isUnsaved">;
  readonly clock: Clock;
  readonly part: Part;
  readonly watch: Watch;
}

/**
 * Passivates agents as soon as none of their own work is running: they have no open turn, or one that only waits. A
 * post activates them again, in any process. Off if other processes are not notified of posts.
 *
 * Invariants
 * 1. An agent is passivated only if no effect of its state is running, no entry waits for its commit, and its inbox has
 *    no item that can be taken. Only a post of somebody else can move it then.
 * 2. Waiters for an agent's rest are answered when it rests or is gone, whichever comes first.
 * 3. A root that has ended a turn is kept for a moment, in its job's place, and only while a quarter of the places is
 *    free. When agents come that need these, those that were kept first leave, so that no other agent waits for a place. One
 *    whose lease another process asks for (`lease.wanted`) leaves at once.
 */
export class Passivation {
  readonly #options: PassivationOptions;
  /** Whether agents are passivated here at all; `look` and `turnEnded` need not be called otherwise. */
  readonly isOn: boolean;
  /** Roots that are kept between two turns; who has ended a turn last is the last. */
  readonly #kept = new Set<Activation>();
  /** Those that a timer waits for: one each, however many turns they end meanwhile. */
  readonly #timed = new Set<Activation>();
  #parkedCount = 0;

  constructor(options: PassivationOptions) {
    this.#options = options;
    this.isOn = options.part.isDistributed && options.part.role !== "client";
  }

  /** Turns that were passivated while they waited. */
  get parkedCount(): number {
    return this.#parkedCount;
  }

  /** Whether the agent is passivated when it has nothing to do. */
  applies(key: AgentKey): boolean {
    return this.isOn && !this.isPinned(key);
  }

  /** Whether a handle here holds the agent, or it is only in the memory of this process. */
  isPinned(key: AgentKey): boolean {
    const { residences, stores } = this.#options;
    return residences.of(key.agentId).isHeld || stores.isUnsaved(key);
  }

  /** Resolves when the agent rests, or is not here any more. */
  async rest(activation: Activation): Promise<Rest> {
    const { residences } = this.#options;
    const { agentId } = activation.key;
    residences.apply(agentId, { type: "rest.awaited", waiter: createDeferred<Rest>() });
    const { waiter } = residences.of(agentId);
    if (this.#isCrowded) this.#letGoOfOne();
    this.look(residences.get(agentId) ?? activation);
    return (await waiter?.promise) ?? "waits";
  }

  /** Must be called after each commit and at the end of each effect. */
  look(activation: Activation): void {
    const { key, openTurnId, effects } = activation;
    if (!this.isOn || !isSettled(activation) || !this.applies(key)) return;
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
      if (type === "passivate") void this.#passivate(activation);
    }
  }

  /** Must be called when a turn has ended here, before `look` is called for its commit. */
  turnEnded(activation: Activation): void {
    const { residences, clock } = this.#options;
    const isRoot = activation.identity.parentAgentId === null;
    if (!this.isOn || !isRoot || this.#isCrowded) return;
    const event = { type: "turn.ended", activation, now: clock.elapsed() } as const;
    for (const effect of residences.apply(activation.key.agentId, event)) {
      if (effect.type !== "lookAgain") continue;
      this.#kept.delete(activation);
      this.#kept.add(activation);
      if (!this.#timed.has(activation)) this.#lookIn(effect.afterMs, activation);
    }
  }

  #lookIn(ms: number, activation: Activation): void {
    this.#timed.add(activation);
    this.#options.clock.setDelay(ms, () => this.#lookAgain(activation));
  }

  /** Waits on where the agent has ended another turn meanwhile, because that one's time counts. */
  #lookAgain(activation: Activation): void {
    const { residences, clock } = this.#options;
    this.#timed.delete(activation);
    const { keptUntil } = residences.stay(activation) ?? {};
    const left = keptUntil === undefined ? 0 : keptUntil - clock.elapsed();
    if (left > 0) return this.#lookIn(left, activation);
    this.#kept.delete(activation);
    this.look(activation);
  }

  get #isCrowded(): boolean {
    const { residences, part } = this.#options;
    return residences.waiters > 0.75 * part.agents;
  }

  /** Lets go of the one whose last turn ended first, if it has no other by now. */
  #letGoOfOne(): void {
    const { residences } = this.#options;
    for (const activation of this.#kept) {
      this.#kept.delete(activation);
      if (activation.openTurnId !== null || residences.get(activation.key.agentId) !== activation) continue;
      residences.apply(activation.key.agentId, { type: "kept.over", activation });
      return this.look(activation);
    }
  }

  /** Keeps the agent here while something is delivered to it. */
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
    const { residences, clock, watch } = this.#options;
    const { agentId } = activation.key;
    this.#kept.delete(activation);
    // Activating it again for each of many posts would cost more than waiting for them.
    const { length } = activation.turnEntries;
    if (length > LONG_TURN) await clock.sleep(Math.min(length, LONGEST_STAY_MS));
    await watch(agentId, "be given back", () => this.#leave(activation));
    residences.apply(agentId, { type: "passivation.over", activation });
    // It may have settled in the moment since it was found busy.
    this.look(activation);
  }

  /** Gives the agent back, unless it has got something to do meanwhile. */
  async #leave(activation: Activation): Promise<void> {
    const { residences, inbox, handover } = this.#options;
    const { key } = activation;
    const mayLeave = (): boolean =>
      isSettled(activation) && activation.effects.length === 0 && residences.of(key.agentId).deliveries === 0;
    while (mayLeave() && this.applies(key)) {
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

/** Idle agents are looked for four times in the time that they are kept, but not more often and not more rarely. */
const SHORTEST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 1_000;

interface IdleOptions {
  readonly residences: Residences<Activation>;
  readonly passivation: Pick<Passivation, "applies">;
  readonly stores: Pick<RuntimeStores, "isUnsaved" | "inbox" | "rest">;
  readonly handover: Pick<Handover, "leavePutAway">;
  readonly clock: Clock;
  readonly idle: IdleSettings;
  readonly bus: Pick<EventBus, "forget">;
}

/** A lease that this process has, as its heartbeat looks at it. */
export interface HeldLease {
  readonly key: AgentKey;
  readonly epoch: number;
  /** Gives the agent up, because the lease was lost. */
  discard(why: LossReason): void;
}

/**
 * Puts idle agents away: it stops their actors and keeps their leases. Whatever is to move one of them takes it up
 * again from the stores, without a commit.
 * Owns: the timer. Does not own: agents that are passivated, which leave at once.
 *
 * Invariants
 * 1. An agent is put away only if no effect of its state is running, no entry waits for its commit, nothing is
 *    delivered to it and its inbox is not being read; and not in the pause in which it was last used.
 * 2. Nothing ticks while no agent is live. The timer does not keep the process alive; a turn that waits does.
 */
export class IdleAgents {
  readonly #options: IdleOptions;
  #cancel: (() => void) | undefined;
  #isClosed = false;

  constructor(options: IdleOptions) {
    this.#options = options;
  }

  /** Must be called when an agent has been activated. */
  begin(): void {
    if (this.#cancel || this.#isClosed) return;
    const { clock, idle } = this.#options;
    const pause = Math.min(Math.max(idle.keptMs / 4, SHORTEST_LOOK_MS), LONGEST_LOOK_MS);
    this.#cancel = clock.setDelay(pause, () => {
      this.#cancel = undefined;
      if (this.#look()) this.begin();
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** The leases that this process has: of agents that live here, and of those that are put away. */
  leases(): HeldLease[] {
    const { residences } = this.#options;
    const putAway = residences.allPutAway().map((remains) => {
      const { key, epoch } = remains;
      return { key, epoch, discard: () => this.#forget(remains) };
    });
    return [...residences.all(), ...putAway];
  }

  /** The agents whose leases this process has. */
  keys(): AgentKey[] {
    return this.#options.residences.heldKeys();
  }

  /** Whether an agent that was put away has got something since. */
  async hasMore({ key, untaken }: PutAway): Promise<boolean> {
    const items = await this.#options.stores.inbox(key);
    return items.some((item) => !untaken.includes(item.key));
  }

  /**
   * Gives back the leases of all agents that are put away. Returns the keys of those whose lease was given back; the
   * handover names the others, and offers theirs again.
   */
  async leave(): Promise<AgentKey[]> {
    const { residences } = this.#options;
    const left = residences.allPutAway().map(async ({ key }) => {
      await this.giveBack(key);
      return key;
    });
    const outcomes = await Promise.allSettled(left);
    return outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  }

  /** Gives back the lease of an agent that is put away; false if it is not. */
  async giveBack({ agentId }: AgentKey): Promise<boolean> {
    const { residences, handover } = this.#options;
    const remains = residences.remainsOf(agentId);
    if (!remains) return false;
    this.#forget(remains);
    await handover.leavePutAway(remains);
    return true;
  }

  /** Forgets an agent that was put away, because its lease was lost. */
  forget({ agentId }: AgentKey): void {
    const remains = this.#options.residences.remainsOf(agentId);
    if (remains) this.#forget(remains);
  }

  #forget(remains: PutAway): void {
    remains.letGo?.();
    this.#options.residences.apply(remains.key.agentId, { type: "forgotten", remains });
  }

  /** Returns whether an agent is live still. */
  #look(): boolean {
    const { residences, stores, clock, idle } = this.#options;
    const now = clock.elapsed();
    const resting: AgentKey[] = [];
    const live = residences.all();
    const unused = live.filter((activation) => isUnused(activation, now));
    let left = live.length;
    for (const activation of unused.sort((one, other) => one.idleSince - other.idleSince)) {
      if (now - activation.idleSince < idle.keptMs && left <= idle.agents) break;
      if (!this.#mayLeave(activation) || !this.#putAway(activation)) continue;
      resting.push(activation.key);
      left -= 1;
    }
    if (resting.length > 0) stores.rest?.(resting);
    return left > 0;
  }

  #mayLeave(activation: Activation): boolean {
    const { passivation, stores } = this.#options;
    if (passivation.applies(activation.key) || stores.isUnsaved(activation.key)) return false;
    return activation.drains === 0 && isSettled(activation) && activation.effects.length === 0;
  }

  #putAway(activation: Activation): boolean {
    const { residences, bus } = this.#options;
    const { key, epoch, writer, standing, lifecycle } = activation;
    const letGo = lifecycle === "busy" ? holdProcess() : undefined;
    const untaken = activation.untaken.length > 0 ? activation.untaken : nothing;
    const { seq, at } = writer.place;
    const remains: PutAway = { key, epoch, seq, at, standing, untaken, letGo };
    residences.apply(key.agentId, { type: "put.away", activation, remains });
    if (residences.remainsOf(key.agentId) === remains) {
      activation.discard(`agent ${key.agentId} was put away`);
      bus.forget(activation.identity);
      return true;
    }
    letGo?.();
    return false;
  }
}

const nothing: readonly string[] = [];

/** Whether nothing was done with the agent since the last look. */
function isUnused(activation: Activation, now: number): boolean {
  if (!activation.isUsed) return true;
  activation.isUsed = false;
  activation.idleSince = now;
  return false;
}
