import { activeTrace, backoffDelay, Waiters } from "../../base/index.ts";
import {
  AlreadyOwnedError,
  CorruptRecordError,
  LeaseLostError,
  NotFoundError,
  StoreUnavailableError,
} from "../../errors/index.ts";
import type { AgentKey, EntryOf, InboxItem } from "../../state/index.ts";
import { type Committed, isRunning } from "../../stores/index.ts";
import { Activation } from "../agent/activation.ts";
import { Committer } from "../agent/committer.ts";
import { CallsInFlight } from "../agent/calls-in-flight.ts";
import { carryOn } from "../agent/intake.ts";
import type { ActivationPorts } from "../agent/live-view.ts";
import type { LeavingTime } from "../core/shutdown.ts";
import { type LiveAgentsOptions, Succession, activationPortsOf } from "./activation-ports.ts";
import { Handover } from "./handover.ts";
import { type ChildResults, Inbox } from "./inbox.ts";
import { Passivation } from "./passivation.ts";
import { changeAtRest, recoverAgent } from "./recovery.ts";
import { Residences } from "./residence.ts";

/** Between two attempts while the stores do not answer. */
const PAUSES = { baseMs: 50, capMs: 2_000 };

/**
 * The agents of this process: activates them, drains their inboxes, and lets them go.
 * Owns: the record of where each lives (`Residences`), and what they have in flight. Does not own: the renewal of
 * leases (one heartbeat for the process), timers, handles.
 *
 * Invariants
 * 1. Every activation has a lease under a new epoch. An attempt that others have joined and that found no agent is made anew
 *    by each of them: the agent may have been made since it began.
 * 2. What is posted is seen: by the activation that is here, by one that is made for it, or by the process that has the agent
 *    or is woken. Stores that do not answer are asked again until they do, since what came is told only once.
 * 3. No process is woken for an agent that another one has: that one hears of the post, or finds it before it gives the agent
 *    back. Where it dies before, the reconciler finds the agent.
 * 4. A child is released when its turn has ended; a root when its handle says so. Where other processes can activate it, any
 *    is passivated that no handle here holds, as soon as nothing of its own is under way.
 */
export class LiveAgents {
  readonly #options: LiveAgentsOptions;
  readonly #committer: Committer;
  readonly #inFlight = new CallsInFlight();
  readonly #residences = new Residences<Activation>();
  readonly #succession = new Succession();
  readonly #inbox: Inbox;
  readonly #handover: Handover;
  readonly passivation: Passivation;
  readonly #ports: ActivationPorts<Activation>;

  constructor(options: LiveAgentsOptions) {
    const { stores, clock, random, part } = options;
    const children: ChildResults = new Waiters();
    this.#options = options;
    this.#committer = new Committer(stores, clock, random);
    this.#inbox = new Inbox(stores, this.#residences, children);
    const here = { stores, committer: this.#committer, inFlight: this.#inFlight, succession: this.#succession };
    this.#handover = new Handover({ ...here, residences: this.#residences });
    this.passivation = new Passivation({
      residences: this.#residences,
      inbox: this.#inbox,
      handover: this.#handover,
      stores,
      clock,
      part,
      watch: (agentId, work) => this.watch(agentId, work),
    });
    this.#ports = activationPortsOf(options, {
      ...here,
      children,
      notify: (agentIds) => this.notify(agentIds),
      activate: (key) => this.activate(key),
      onCommitted: (activation, outcome) => this.#onCommitted(activation, outcome),
      onLost: (activation) => this.#residences.apply(activation.key.agentId, { type: "lost", activation }),
      onEffectOver: (activation) => this.#look(activation),
    });
  }

  /** Nothing new is activated; what lives here goes on until it has come to rest. */
  get isLeaving(): boolean {
    return this.#residences.isLeaving;
  }

  beginLeaving(): void {
    this.#residences.isLeaving = true;
  }

  get isClosing(): boolean {
    return this.#residences.isClosing;
  }

  /** Agents that could not be left as they should, up to now. */
  get leftBehind() {
    return this.#handover.leftBehind;
  }

  get({ agentId }: AgentKey): Activation | undefined {
    return this.#residences.get(agentId);
  }

  all(): Activation[] {
    return this.#residences.all();
  }

  isShutDown({ agentId }: AgentKey): boolean {
    return this.#residences.isShutDown(agentId);
  }

  /** Whether another process may activate the agent, and is to be told of what comes for it. */
  isOthers(key: AgentKey): boolean {
    return this.#options.part.isDistributed && !this.#options.stores.isHeld(key);
  }

  /** The last activation of this agent here, as one of its earlier ones leads to it. */
  lastOf(activation: Activation): Activation {
    return this.#succession.lastOf(activation);
  }

  /** The agent's activation, if it is here or just coming. */
  async present({ agentId }: AgentKey): Promise<Activation | undefined> {
    return await this.#residences.present(agentId);
  }

  /**
   * The agent's activation; takes the lease and recovers its state where it is not here yet. Throws `LeaseLostError` once the
   * process is leaving, `NotFoundError` for an unknown agent or definition, `AlreadyOwnedError` while another process has it.
   */
  async activate(key: AgentKey): Promise<Activation> {
    for (;;) {
      const at = this.#residences.of(key.agentId);
      if (at.kind === "here") return at.stay.activation;
      if ("over" in at) await at.over;
      else if (at.kind !== "coming") return await this.#begin(key);
      else {
        try {
          return await at.attempt;
        } catch (error) {
          if (!(error instanceof NotFoundError)) throw error;
        }
      }
    }
  }

  /** As `activate`, for a handle: the agent stays here for it. */
  async own(key: AgentKey): Promise<Activation> {
    const activation = this.activate(key);
    this.#residences.apply(key.agentId, { type: "hold" });
    return await activation;
  }

  /** As `activate`, for something that came for the agent; undefined while it is shut down. */
  async activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined> {
    return this.isShutDown(key) ? undefined : await this.activate(key);
  }

  #begin(key: AgentKey): Promise<Activation> {
    if (this.isClosing || this.isLeaving) throw new LeaseLostError("this runtime is shutting down");
    const attempt = Promise.resolve().then(() => this.#arrive(key));
    this.#residences.apply(key.agentId, { type: "activate", attempt });
    return attempt;
  }

  async #arrive(key: AgentKey): Promise<Activation> {
    const { agentId } = key;
    let start: Awaited<ReturnType<typeof recoverAgent>>;
    let activation: Activation;
    try {
      start = await recoverAgent(this.#options, key);
      activation = new Activation(start, this.#ports);
    } catch (error) {
      this.#residences.apply(agentId, { type: "activation.failed" });
      throw error;
    }
    this.#residences.apply(agentId, { type: "activated", activation });
    this.#options.onActivated(activation);
    activation.start();
    carryOn(activation);
    for (const item of start.aborts) this.take(activation, item);
    try {
      await this.drainInbox(activation);
    } finally {
      this.#notifyChildren(activation);
    }
    this.passivation.look(activation);
    return activation;
  }

  /** Children that lived in a process that is gone have nobody else to activate them, where nobody looks for such. */
  #notifyChildren({ key, openChildIds, backgroundChildren }: Activation): void {
    if (!this.isOthers(key)) this.notify([...openChildIds, ...backgroundChildren.map(({ childId }) => childId)]);
  }

  /** Changes an agent between two turns, and begins nothing (`changeAtRest`). */
  async change(key: AgentKey, change: (activation: Activation) => void): Promise<void> {
    const place = { ...this.#options, residences: this.#residences, handover: this.#handover, ports: this.#ports };
    const isAtRest = await this.passivation.during(key, () => changeAtRest(place, key, change));
    if (!isAtRest) this.notify([key.agentId]);
  }

  /** Somebody posted to these agents: those that are here look, the others are activated, or woken elsewhere. */
  notify(agentIds: readonly string[]): void {
    for (const agentId of agentIds) {
      if (!this.#residences.of(agentId).isRetrying) this.watch(agentId, this.#attend(agentId));
    }
  }

  /** Has some process activate the agent. */
  wake(key: AgentKey): Promise<void> {
    return this.#options.part.queues.wake(key, activeTrace());
  }

  /** Activates the agent here, unless it is here or elsewhere; false then. */
  async rescue(agentId: string): Promise<boolean> {
    const key = this.#keyOf(agentId);
    if (this.isShutDown(key)) return false;
    // An attempt that is under way was begun before, and may have met an owner that has gone since.
    if (await this.present(key)) return false;
    try {
      await this.#activateForPost(key);
      return true;
    } catch (error) {
      this.#report(agentId, error);
      return false;
    }
  }

  /** Reports what goes wrong with work that nobody waits for. */
  watch(agentId: string, work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#report(agentId, error));
  }

  async #attend(agentId: string): Promise<void> {
    const { clock, random } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attendOnce(this.#keyOf(agentId));
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
      }
      // Another call has failed meanwhile, and tries again.
      if (this.#residences.of(agentId).isRetrying) return;
      this.#residences.apply(agentId, { type: "retry" });
      await clock.sleep(backoffDelay(attempt, random(), PAUSES));
      this.#residences.apply(agentId, { type: "retry.over" });
    }
  }

  async #attendOnce(key: AgentKey): Promise<void> {
    if (this.isClosing) return;
    const live = await this.present(key);
    if (live) await this.drainInbox(live);
    if (live && !live.isLost) return;
    if (this.isOthers(key)) {
      if (!(await this.#isHeldByOthers(key))) await this.wake(key);
    } else if (!live && !this.isLeaving) await this.#activateForPost(key);
  }

  /** Only for what came: where no turn is open afterwards, the agent is released again. */
  async #activateForPost(key: AgentKey): Promise<void> {
    const activation = await this.activateUnlessShutDown(key);
    if (activation && activation.openTurnId === null) await this.#releaseAtRest(activation);
  }

  /** False where it is known that the process which has the agent is dead: on this machine that shows at once. */
  async #isHeldByOthers(key: AgentKey): Promise<boolean> {
    const { stores, process: self } = this.#options;
    const holder = (await stores.holder(key))?.process;
    if (!holder || holder.processId === self.processId) return false;
    return holder.bootId !== self.bootId || isRunning({ pid: holder.pid, startTime: null });
  }

  /** Takes what the inbox holds; gives how many items. */
  async drainInbox(activation: Activation): Promise<number> {
    return await this.#inbox.drain(activation);
  }

  take(activation: Activation, item: InboxItem): void {
    this.#inbox.take(activation, item);
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
    else if (restores) setImmediate(() => this.#restore(activation));
    this.#look(activation);
  }

  #look(activation: Activation): void {
    this.#handover.look(activation);
    this.passivation.look(activation);
  }

  #afterTurn(activation: Activation, ended: EntryOf<"turn.ended">, accounts: Committed["accounts"]): void {
    this.#options.onTurnEnded(activation, ended, accounts ?? []);
    const isChild = activation.identity.parentAgentId !== null;
    this.passivation.turnEnded(activation);
    // Those that are passivated are looked at by their last commit.
    if (this.passivation.applies(activation.key)) return;
    this.watch(activation.key.agentId, isChild ? this.#releaseAtRest(activation) : this.drainInbox(activation));
  }

  /** An agent that has no open turn leaves memory, unless something came for it meanwhile. */
  async #releaseAtRest(activation: Activation): Promise<void> {
    await this.drainInbox(activation);
    if (activation.openTurnId !== null) return;
    if (!(await this.#handover.release(activation)) && !activation.isLost) await this.drainInbox(activation);
  }

  /**
   * Discards an agent mid-turn and recovers it, once what its commit set going has begun; not where it waits for another
   * commit, which will bring us here again.
   */
  #restore(activation: Activation): void {
    const { key, writer, isLost, openTurnId } = activation;
    if (isLost || this.isClosing || openTurnId === null || !writer.isSettled) return;
    activation.discard(new LeaseLostError(`agent ${key.agentId} is restored`));
    const restored = this.activate(key).then((successor) => this.#succession.follow(activation, successor));
    this.watch(key.agentId, restored);
  }

  /** For a handle: commits what is left, stops the actors, gives the lease back. The inbox waits for the next owner. */
  async leave(activation: Activation): Promise<void> {
    if (!(await this.#handover.settle(activation))) return;
    this.#residences.apply(activation.key.agentId, { type: "unhold" });
    await this.#handover.leave(activation, { isShutDown: activation.openTurnId !== null });
  }

  /** Gives the agent up between two steps; at once when it is cut. True when it was. */
  async leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean> {
    return await this.#handover.leaveAtSafePoint(activation, cut);
  }

  /** Stores what has happened and gives the leases back, as far as there is time. */
  async close(time: LeavingTime): Promise<void> {
    this.#residences.isClosing = true;
    const isStored = await time.spend("store", Promise.all([this.#residences.arrived(), this.#committer.drained()]));
    const left = this.#handover.leaveAll(!isStored);
    this.#committer.close();
    await time.spend("giveBack", left);
    this.#inFlight.abandon();
  }

  #keyOf(agentId: string): AgentKey {
    return { tenant: this.#options.tenant, agentId };
  }

  #report(agentId: string, error: unknown): void {
    // One whose definition is not known here is for a runtime that knows it.
    const isOthers = error instanceof AlreadyOwnedError || error instanceof NotFoundError;
    if (isOthers || error instanceof LeaseLostError || this.isClosing) return;
    // Of damaged records the process is warned once.
    const isDamage = error instanceof CorruptRecordError;
    if (!isDamage) process.emitWarning(`agent ${agentId} could not be taken up: ${String(error)}`);
    this.#options.onFailed(agentId, error);
  }
}
