import { activeTrace } from "../../base/index.ts";
import { LeaseLostError } from "../../errors/index.ts";
import { type AgentKey, type EntryOf, type InboxItem, keyText } from "../../state/index.ts";
import type { Committed } from "../../stores/index.ts";
import { Activation } from "../agent/activation.ts";
import { Attendance, type Attended } from "./attendance.ts";
import { ChildResults } from "./child-results.ts";
import { Committer } from "../agent/committer.ts";
import { Departures } from "./departures.ts";
import { InboxIntake } from "./inbox-intake.ts";
import type { LeavingTime } from "../core/shutdown.ts";
import type { LiveAgentsOptions } from "./live-agents-options.ts";
import { LiveMap } from "./live-map.ts";
import { surroundingsOf } from "./live-surroundings.ts";
import { Parking } from "./parking.ts";
import { restoreSoon } from "./restore.ts";
import { Succession } from "./succession.ts";
import type { Surroundings } from "../agent/live-view.ts";
import { takeTimer } from "./take-timer.ts";
import { takeUp } from "./take-up.ts";
import { payVisit } from "./visit.ts";
import { carryOn, wakeUp } from "../agent/intake.ts";
import { World } from "../agent/calls-in-flight.ts";

/**
 * The agents that live in this process.
 * Owns: their activations, what they have out in the world, their slots. Does not own: leases' renewal, timers, handles.
 *
 * Invariants
 * 1. At most one activation of an agent at a time; every one has a new epoch.
 * 2. A child is released when its turn has ended; a root when its handle says so. Where other processes can take it up, any
 *    is released that no handle here has taken up, as soon as nothing of its own is under way (parking).
 */
export class LiveAgents implements Attended {
  readonly #options: LiveAgentsOptions;
  readonly #committer: Committer;
  readonly #world = new World();
  readonly #here: LiveMap;
  /** Those that a handle of this process has taken up: they stay. */
  readonly #held = new Set<string>();
  /** Shut down mid-turn: only `start()` brings them back (row L6). */
  readonly #dormant = new Set<string>();
  readonly #succession = new Succession<Activation>();
  readonly #inboxes: InboxIntake;
  readonly attendance: Attendance;
  readonly departures: Departures;
  readonly parking: Parking;
  readonly #around: Surroundings<Activation>;
  /** Nothing new is taken up; what lives here goes on until it has come to rest. */
  isLeaving = false;
  isClosing = false;

  constructor(options: LiveAgentsOptions) {
    const { stores, clock, random, part } = options;
    const children = new ChildResults();
    this.#options = options;
    this.attendance = new Attendance(this, options);
    this.#inboxes = new InboxIntake(stores, children);
    this.#committer = new Committer(stores, clock, random);
    const here = { committer: this.#committer, world: this.#world, succession: this.#succession };
    this.departures = new Departures({ ...here, stores });
    this.#here = new LiveMap(this.departures);
    this.parking = new Parking(this, this.#here, { clock, part });
    this.#around = surroundingsOf(options, {
      ...here,
      children,
      notify: (agentIds) => this.notify(agentIds),
      activate: (key) => this.activate(key),
      onCommitted: (activation, outcome) => this.#onCommitted(activation, outcome),
      onLost: (activation) => this.#forget(activation),
      onEffectOver: (activation) => this.#look(activation),
    });
  }

  get tenant(): string {
    return this.#options.tenant;
  }

  get(key: AgentKey): Activation | undefined {
    return this.#here.get(key);
  }

  all(): Activation[] {
    return this.#here.all();
  }

  /** The agent's activation; takes the lease and recovers it where it does not live here yet. */
  async activate(key: AgentKey): Promise<Activation> {
    return await this.#here.come(key, () => this.#activate(key));
  }

  /** As `activate`, for a handle: the agent stays here for it. */
  async own(key: AgentKey): Promise<Activation> {
    this.#held.add(keyText(key));
    return await this.activate(key);
  }

  /** The agent's activation, if it lives here or is just coming to life. */
  async present(key: AgentKey): Promise<Activation | undefined> {
    return await this.#here.present(key);
  }

  /** Takes the agent up for somebody who did not ask for it by name; undefined while it is shut down. */
  async activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined> {
    return this.isShutDown(key) ? undefined : await this.activate(key);
  }

  /** Changes an agent between two turns, and begins nothing. */
  async visit(key: AgentKey, change: (activation: Activation) => void): Promise<void> {
    const source = { ...this.#options, departures: this.departures };
    const isRest = await this.parking.during(key, () =>
      payVisit(source, key, (start) => {
        const activation = new Activation(start, this.#around);
        activation.start();
        change(activation);
        return activation;
      }),
    );
    if (!isRest) this.notify([key.agentId]);
  }

  isShutDown(key: AgentKey): boolean {
    return this.#dormant.has(keyText(key));
  }

  /** Not to be parked: a handle here holds on to it, or it is in this process' memory alone. */
  staysHere(key: AgentKey): boolean {
    return this.#held.has(keyText(key)) || this.#options.stores.isHeld(key);
  }

  /** Whether another process may take the agent up, and is to be told of what comes for it. */
  isOthers(key: AgentKey): boolean {
    return this.#options.part.isDistributed && !this.#options.stores.isHeld(key);
  }

  wake(key: AgentKey): Promise<void> {
    return this.#options.part.queues.wake(key, activeTrace());
  }

  /** The last activation of this agent here, as one of its earlier ones leads to it. */
  lastOf(activation: Activation): Activation {
    return this.#succession.lastOf(activation);
  }

  async #activate(key: AgentKey): Promise<Activation> {
    if (this.isClosing || this.isLeaving) throw new LeaseLostError("this runtime is shutting down");
    this.#dormant.delete(keyText(key));
    const start = await takeUp(this.#options, key);
    const activation = new Activation(start, this.#around);
    this.#here.put(activation);
    this.#options.onActivated(activation);
    activation.start();
    carryOn(activation);
    for (const item of start.aborts) this.take(activation, item);
    try {
      await this.intake(activation);
    } finally {
      this.#seeToChildren(activation);
    }
    this.parking.look(activation);
    return activation;
  }

  /** Children that lived in a process that is gone have nobody else to take them up, where nobody looks for such. */
  #seeToChildren(activation: Activation): void {
    if (this.isOthers(activation.key)) return;
    this.notify([...activation.openChildIds, ...activation.backgroundChildren.map(({ childId }) => childId)]);
  }

  async intake(activation: Activation): Promise<number> {
    return await this.#inboxes.intake(activation, (woken) => wakeUp(woken));
  }

  take(activation: Activation, item: InboxItem): void {
    this.#inboxes.take(activation, item);
  }

  async takeTimer(activation: Activation, timer: Parameters<typeof takeTimer>[2]): Promise<void> {
    this.notify(await takeTimer(this.#options.stores, activation, timer));
  }

  notify(agentIds: readonly string[]): void {
    this.attendance.notify(agentIds);
  }

  /** Commits what is left, stops the actors, gives the lease back. What the inbox holds waits for the next owner. */
  async leave(activation: Activation): Promise<void> {
    if (!(await this.departures.settle(activation))) return;
    this.#held.delete(keyText(activation.key));
    if (activation.openTurnId !== null) this.#dormant.add(keyText(activation.key));
    await this.departures.leave(activation);
  }

  /** As `leave`, unless the inbox holds something new: then false, and the agent lives on. */
  async release(activation: Activation, as: "rest" | "parked" = "rest"): Promise<boolean> {
    if (!(await this.departures.settle(activation))) return true;
    if (as === "rest" && activation.openTurnId !== null) return false;
    return await this.departures.release(activation, as);
  }

  /** Stores what has happened and gives the leases back, as far as there is time. */
  async close(time: LeavingTime): Promise<void> {
    this.isClosing = true;
    const isStored = await time.spend("store", Promise.all([this.#here.arrived(), this.#committer.drained()]));
    const left = this.departures.leaveAll(this.all(), new LeaseLostError("this runtime was shut down"), !isStored);
    this.#committer.close();
    await time.spend("giveBack", left);
    this.#world.abandon();
  }

  #forget(activation: Activation): void {
    this.#here.forget(activation);
    this.departures.look(activation);
    this.parking.lost(activation);
  }

  #onCommitted(activation: Activation, outcome: Committed): void {
    this.#options.bus.publishCommitted(outcome, activation.identity, (id) => activation.conversation.text(id));
    if (outcome.timers.length > 0) this.#options.onTimers(outcome.timers);
    if (outcome.posted.length > 0) this.notify(outcome.posted);
    this.#options.onCommitted(activation, outcome);
    let ended: EntryOf<"turn.ended"> | undefined;
    for (const entry of outcome.entries) {
      if (entry.type === "turn.ended") ended = entry;
      if (entry.type === "agent.paused") this.#options.onRest(activation);
      if (entry.type === "agent.resumed") this.#options.onResumed(activation);
    }
    const restores = this.#options.restoreAfterCommit && outcome.entries.length > 0;
    if (ended) this.#afterTurn(activation, ended, outcome.accounts);
    else if (restores) restoreSoon(this, activation, this.#succession);
    this.#look(activation);
  }

  /** It may have come to rest. */
  #look(activation: Activation): void {
    this.departures.look(activation);
    this.parking.look(activation);
  }

  #afterTurn(activation: Activation, ended: EntryOf<"turn.ended">, accounts: Committed["accounts"]): void {
    this.#options.onTurnEnded(activation, ended, accounts ?? []);
    const isChild = activation.identity.parentAgentId !== null;
    this.parking.turnEnded(activation);
    // Those that are parked are looked at by their last commit.
    if (this.parking.parks(activation.key)) return;
    const rest = isChild ? this.attendance.rest(activation) : this.intake(activation);
    this.attendance.watch(activation.key.agentId, rest);
  }
}
