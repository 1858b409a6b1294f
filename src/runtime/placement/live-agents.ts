import {
  activeTrace,
  backoffDelay,
  processContext,
  type TraceHeaders,
  Waiters,
  withinTrace,
} from "../../base/index.ts";
import { turnAccountId } from "../../budget/index.ts";
import { LeaseLostError, NotFoundError, StoreUnavailableError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, EntryOf } from "../../state/index.ts";
import type { Committed } from "../../stores/index.ts";
import { Activation, type ActivationStart } from "../agent/activation.ts";
import type { AgentStatusView } from "../agent/actor-tree.ts";
import { Committer } from "../agent/committer.ts";
import { CallsInFlight } from "../agent/calls-in-flight.ts";
import { carryOn } from "../agent/intake.ts";
import type { ActivationPorts } from "../agent/live-view.ts";
import type { LeavingTime } from "../core/shutdown.ts";
import { type LiveAgentsOptions, Succession, activationPortsOf } from "./activation-ports.ts";
import { Handover } from "./handover.ts";
import { type ChildResults, Inbox } from "./inbox.ts";
import { Passivation } from "./passivation.ts";
import { type KeptLease, Placements } from "./placements.ts";
import { changeAtRest, isHeldByOthers, recoverAgent } from "./recovery.ts";
import { PAUSES, type Watch, WatchedWork } from "./watched-work.ts";

/**
 * The agents of this process: activates them, drains their inboxes, passivates them and hands them over.
 * Owns: the placement of each agent (`Placements`), and their calls in flight. Does not own: the renewal of leases (one heartbeat
 * for the process), timers, handles.
 *
 * Invariants
 * 1. Every activation has a lease under a new epoch. When a shared attempt finds no agent, each caller that joined it
 *    tries again, because the agent may have been created since the attempt started.
 * 2. Every post is handled: by the current activation, by one created for it, or by the process that owns the agent or is woken.
 *    Reads are retried until the stores answer, since a post is reported only once.
 * 3. No process is woken for an agent that another process owns: the owner is notified of the post, or finds it before it
 *    releases the agent. If the owner dies first, the reconciler finds the agent.
 * 4. Agents leave memory only by passivation (`Passivation`), or because a handle or the process gives them up.
 * 5. No agent below one that was shut down starts work in this process until that agent is started again, unless a handle starts
 *    it.
 */
export class LiveAgents {
  readonly #options: LiveAgentsOptions;
  readonly #committer: Committer;
  readonly #inFlight: CallsInFlight;
  readonly #placements = new Placements<Activation>();
  /** Agents whose posts could not be read because the stores do not answer; the read is retried after a pause. */
  readonly #retrying = new Set<string>();
  readonly #succession = new Succession();
  /** Agents that were shut down in this process with others below them, and not started since. */
  readonly #shutDown = new Set<string>();
  readonly #work: WatchedWork;
  /** Runs work for an agent that is not awaited, and reports its failure. */
  readonly watch: Watch;
  readonly inbox: Inbox;
  readonly #handover: Handover;
  readonly passivation: Passivation;
  readonly #ports: ActivationPorts<Activation>;

  constructor(options: LiveAgentsOptions) {
    const { stores, clock, random } = options;
    const children: ChildResults = new Waiters();
    this.#options = options;
    this.#inFlight = new CallsInFlight(clock);
    this.#committer = new Committer(stores, clock, random);
    const placements = this.#placements;
    this.inbox = new Inbox(stores, placements, children);
    const here = { stores, committer: this.#committer, inFlight: this.#inFlight, succession: this.#succession };
    const notify = (agentIds: readonly string[]): void => this.notify(agentIds);
    this.#work = new WatchedWork({ ...options, placements });
    const { watch } = this.#work;
    this.watch = watch;
    this.#handover = new Handover({ ...options, ...here, placements, notify, watch });
    this.passivation = new Passivation({ ...options, placements, inbox: this.inbox, handover: this.#handover, watch });
    this.#ports = activationPortsOf(options, {
      ...here,
      children,
      notify,
      activate: (key) => this.activate(key),
      onCommitted: (activation, outcome) => this.#onCommitted(activation, outcome),
      onLost: (activation) => {
        placements.report(activation, { type: "lost" });
        this.#handover.look(activation);
      },
      onEffectOver: (activation) => this.#look(activation),
    });
  }

  /** Whether the process is leaving: it activates nothing new, and its agents continue until they rest. */
  get isLeaving(): boolean {
    return this.#placements.isLeaving;
  }

  beginLeaving(): void {
    this.#placements.isLeaving = true;
    this.passivation.close();
  }

  get isClosing(): boolean {
    return this.#placements.isClosing;
  }

  /** Agents that could not be released properly so far. */
  get leftBehind() {
    return this.#handover.leftBehind;
  }

  get({ agentId }: AgentKey): Activation | undefined {
    return this.#placements.get(agentId);
  }

  /** Whether another process would take over an agent of this process if this process seemed dead. */
  get isAtWork(): boolean {
    return this.#placements.isAtWork;
  }

  all(): Activation[] {
    return this.#placements.all();
  }

  isShutDown({ agentId }: AgentKey): boolean {
    const isUnclaimed = this.#placements.isAway(agentId) && !this.#placements.isHeld(agentId);
    return this.#placements.isShutDown(agentId) || (isUnclaimed && this.#isBelowShutDown(agentId));
  }

  /** Whether an agent above this one was shut down in this process. */
  #isBelowShutDown(agentId: string): boolean {
    if (this.#shutDown.size === 0) return false;
    for (const one of this.#options.trees.ancestorsOf(agentId)) if (this.#shutDown.has(one)) return true;
    return false;
  }

  /** Prevents the agent and all agents below it from starting further work, as far as this process runs them. */
  shut(key: AgentKey): void {
    const { agentId } = key;
    const standing = this.standing(key);
    if (!standing) return;
    const below = this.#options.trees.below(agentId);
    // A turn may be spawning now, and children spawned by another process may not be known here yet.
    const hasBackground = (this.#placements.get(agentId)?.backgroundChildren.length ?? 0) > 0;
    if (below.length > 0 || hasBackground || standing.now?.openTurnId !== null) this.#shutDown.add(agentId);
    for (const one of [agentId, ...below]) this.#placements.get(one)?.gate.shut();
  }

  /** Gives up the agents below one that was shut down. Their turns stay open. */
  async leaveBelow({ agentId }: AgentKey): Promise<void> {
    if (!this.#shutDown.has(agentId)) return;
    await Promise.all(this.#options.trees.below(agentId).map((one) => this.#leaveShutDown(this.#keyOf(one))));
  }

  async #leaveShutDown(key: AgentKey): Promise<void> {
    for (;;) {
      const live = await this.#placements.present(key.agentId);
      if (live) await this.leave(live, { isShutDown: false });
      else if (!(await this.passivation.giveBack(key))) return;
    }
  }

  /** For a handle's `start()`: agents that were shut down with the agent may continue. Returns these agents. */
  reopen({ agentId }: AgentKey): readonly string[] {
    return this.#shutDown.delete(agentId) ? this.#options.trees.below(agentId) : [];
  }

  /** Whether another process may activate the agent, and must therefore be notified of posts. */
  isOthers(key: AgentKey): boolean {
    return this.#options.part.isDistributed && !this.#options.stores.isUnsaved(key);
  }

  /** The agent's status, if this process holds its lease. */
  standing({ agentId }: AgentKey): AgentStatusView | undefined {
    return this.#placements.get(agentId)?.standing ?? this.#placements.leaseOf(agentId)?.standing;
  }

  /** The agent's current or starting activation; a passive agent is activated. */
  async present(key: AgentKey): Promise<Activation | undefined> {
    const present = await this.#placements.present(key.agentId);
    const isPassive = !present && this.#placements.leaseOf(key.agentId) !== undefined;
    return isPassive && !this.isClosing && !this.isLeaving ? await this.activate(key) : present;
  }

  /**
   * The agent's activation. If this process has none yet, acquires the lease and recovers the agent's state. Throws
   * `LeaseLostError` once the process is leaving, `NotFoundError` for an unknown agent or definition, `AlreadyOwnedError` while
   * another process owns the agent.
   */
  async activate(key: AgentKey): Promise<Activation> {
    for (;;) {
      const { activation, attempt, over } = this.#placements.of(key.agentId);
      if (over) await over;
      else if (activation) {
        activation.isUsed = true;
        return activation;
      } else if (!attempt) return await this.#begin(key);
      else {
        try {
          return await attempt;
        } catch (error) {
          if (!(error instanceof NotFoundError)) throw error;
        }
      }
    }
  }

  /** Like `activate`, for a handle: the lease stays in this process when the agent is passivated. */
  async own(key: AgentKey): Promise<Activation> {
    const activation = this.activate(key);
    this.#placements.send(key.agentId, { type: "handle.opened" });
    activation.catch(() => this.disown(key));
    return await activation;
  }

  /** Like `activate`, for a post; `undefined` while the agent is shut down. */
  async activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined> {
    return this.isShutDown(key) ? undefined : await this.activate(key);
  }

  #begin(key: AgentKey): Promise<Activation> {
    if (this.isClosing || this.isLeaving) throw new LeaseLostError("this runtime is shutting down");
    const kept = this.#placements.leaseOf(key.agentId);
    // Other callers join the attempt, and it continues what they have started, so it runs in no caller's context.
    const attempt = processContext.run(() => Promise.resolve().then(() => this.#arrive(key, kept)));
    this.#placements.send(key.agentId, { type: "activation.started" }, { attempt });
    return attempt;
  }

  async #arrive(key: AgentKey, kept?: KeptLease): Promise<Activation> {
    const { agentId } = key;
    let start: ActivationStart;
    let activation: Activation;
    try {
      await this.#options.present();
      start = { ...(await recoverAgent(this.#options, key, this.#handover)), standing: kept?.standing };
      await this.#assertMayArrive(start);
      activation = new Activation(start, this.#ports);
    } catch (error) {
      const keepsLease = kept !== undefined && error instanceof StoreUnavailableError;
      this.#placements.send(agentId, { type: "activation.failed", keepsLease });
      throw error;
    }
    this.#placements.send(agentId, { type: "activation.succeeded" }, { activation });
    if (this.isClosing) activation.gate.shut();
    activation.start();
    this.passivation.begin();
    carryOn(activation);
    for (const item of start.aborts) this.inbox.take(activation, item);
    try {
      await this.drainInbox(activation);
    } finally {
      if (!kept) this.#notifyChildren(activation);
    }
    this.passivation.look(activation);
    return activation;
  }

  /** Releases the lease of an agent below one that was shut down in this process, and throws `LeaseLostError`. */
  async #assertMayArrive({ key, record, epoch }: ActivationStart): Promise<void> {
    try {
      await this.#noteAncestors(record);
      if (this.#placements.isHeld(key.agentId) || !this.#isBelowShutDown(key.agentId)) return;
      throw new LeaseLostError(`an agent above "${key.agentId}" was shut down`);
    } catch (error) {
      await this.#handover.giveUp(key, epoch);
      throw error;
    }
  }

  /** Only the records contain the parents of agents spawned by another process. */
  async #noteAncestors(record: AgentRecord): Promise<void> {
    const { stores, trees } = this.#options;
    trees.note(record);
    if (this.#shutDown.size === 0) return;
    for (let above: string | null = record.parentAgentId; above !== null; ) {
      const parent = await stores.readAgent(this.#keyOf(above));
      if (parent) trees.note(parent);
      above = parent?.parentAgentId ?? null;
    }
  }

  /** Activates children that ran in a dead process; only needed if no reconciler searches for them. */
  #notifyChildren({ key, openChildIds, backgroundChildren }: Activation): void {
    if (!this.isOthers(key)) this.notify([...openChildIds, ...backgroundChildren.map(({ childId }) => childId)]);
  }

  /** Changes an agent between two turns without starting anything (`changeAtRest`). */
  async change(key: AgentKey, change: (activation: Activation) => void): Promise<void> {
    const parts = { ...this.#options, placements: this.#placements, handover: this.#handover, ports: this.#ports };
    const isAtRest = await this.passivation.during(key, () => changeAtRest(parts, key, change));
    if (!isAtRest) this.notify([key.agentId]);
  }

  /**
   * Handles posts to these agents: agents in this process drain their inboxes, others are activated here or woken in another
   * process.
   */
  notify(agentIds: readonly string[]): void {
    const trace = activeTrace();
    // Keeps the caller's trace but not its async context, because posted items may belong to other callers.
    const attend = (agentId: string): Promise<void> =>
      withinTrace(trace, () => this.watch(agentId, "take its inbox items", () => this.#attend(agentId)));
    for (const agentId of agentIds) {
      if (!this.#retrying.has(agentId)) void processContext.run(() => attend(agentId));
    }
  }

  /** Wakes the agent in some process. */
  wake(key: AgentKey): Promise<void> {
    return this.#options.part.queues.wake(key, activeTrace());
  }

  /** Activates the agent in this process; returns false if it is already active here or another process owns it. */
  async tryActivate(agentId: string): Promise<boolean> {
    const key = this.#keyOf(agentId);
    if (this.isShutDown(key)) return false;
    // An attempt that was already running may have failed because of an owner that has left since.
    if ((await this.#placements.present(agentId)) || this.#placements.leaseOf(agentId)) return false;
    try {
      await this.#activateForPost(key);
      return true;
    } catch (error) {
      this.#work.report(agentId, "be activated", error);
      return false;
    }
  }

  /**
   * Continues an agent that the stores list as unattended, in this or another process. Returns false if it is active here,
   * another process was faster, or the stores do not answer; the next check then tries again. An agent that is passive here is
   * dropped first, because its lease was lost.
   */
  async takeOver(key: AgentKey): Promise<boolean> {
    if (this.isClosing || this.isLeaving || this.isShutDown(key)) return false;
    if (await this.#placements.present(key.agentId)) return false;
    this.passivation.forget(key);
    try {
      await (this.isOthers(key) ? this.wake(key) : this.#activateForPost(key));
      return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) this.#work.report(key.agentId, "be activated", error);
      return false;
    }
  }

  async #attend(agentId: string): Promise<void> {
    const { clock, random } = this.#options;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attendOnce(this.#keyOf(agentId));
      } catch (error) {
        if (!(error instanceof StoreUnavailableError)) throw error;
      }
      // Another call has failed meanwhile, and retries.
      if (this.#retrying.has(agentId)) return;
      this.#retrying.add(agentId);
      await clock.sleep(backoffDelay(attempt, random(), PAUSES));
      this.#retrying.delete(agentId);
    }
  }

  async #attendOnce(key: AgentKey): Promise<void> {
    if (this.isClosing) return;
    const live = await this.#placements.present(key.agentId);
    if (live) await this.drainInbox(live);
    if (live && !live.isLost) return;
    const kept = this.#placements.leaseOf(key.agentId);
    if (kept) {
      // While this process is leaving, the agent is released and woken in another process.
      const isMoved = (await this.passivation.hasMore(kept)) && !this.isClosing && !this.isLeaving;
      return void (isMoved && (await this.activate(key)));
    }
    if (this.isOthers(key)) {
      if (!(await isHeldByOthers(this.#options, key))) await this.wake(key);
    } else if (!live && !this.isLeaving) await this.#activateForPost(key);
  }

  /** Activates the agent for a post, which may open its next turn; resolves when that is stored. */
  async #activateForPost(key: AgentKey): Promise<void> {
    const activation = await this.activateUnlessShutDown(key);
    if (activation?.openTurnId === null) await this.#handover.settle(activation);
  }

  /** Takes the items in the inbox; returns how many. The agent is not passivated meanwhile. */
  async drainInbox(activation: Activation): Promise<number> {
    activation.drains += 1;
    try {
      return await this.inbox.drain(activation);
    } finally {
      activation.drains -= 1;
      this.passivation.look(activation);
    }
  }

  #onCommitted(activation: Activation, outcome: Committed): void {
    this.#options.bus.publishCommitted(outcome, activation.identity, (id) => activation.conversation.text(id));
    this.#forecast(activation, outcome);
    if (outcome.timers.length > 0) this.#options.onTimers(outcome.timers);
    this.#noteSpawned(activation, outcome);
    if (outcome.posted.length > 0) withinTrace(traceOfCommit(activation), () => this.notify(outcome.posted));
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

  #forecast(activation: Activation, { entries, accounts = [], above = [] }: Committed): void {
    const turnId = activation.openTurnId ?? activation.lastTurnId;
    const last = entries.at(-1);
    if (turnId === null || !last || accounts.length + above.length === 0) return;
    // The account of a turn that has ended is not spent on any more.
    const over = entries.flatMap((entry) => (entry.type === "turn.ended" ? [turnAccountId(entry.turnId)] : []));
    this.#options.broadcast.forecast(activation.identity, {
      turnId,
      step: activation.turn(turnId)?.step ?? 0,
      at: last.at,
      accounts: [...accounts, ...above].filter(({ id }) => !over.includes(id)),
    });
  }

  /** Recorded before their first activation, which a shutdown of the spawning agent may forbid. */
  #noteSpawned({ key }: Activation, { entries }: Committed): void {
    for (const entry of entries) {
      if (entry.type !== "child.spawned") continue;
      const { childId, turnId, background } = entry;
      this.#options.trees.note({ agentId: childId, parentAgentId: key.agentId, parentTurnId: turnId, background });
    }
  }

  #look(activation: Activation): void {
    this.#handover.look(activation);
    this.passivation.look(activation);
  }

  #afterTurn(activation: Activation, ended: EntryOf<"turn.ended">, accounts: Committed["accounts"]): void {
    this.#options.onTurnEnded(activation, ended, accounts ?? []);
    activation.forgetTurn(ended.turnId);
    activation.hasEndedTurn = true;
    this.passivation.turnEnded(activation);
    // The stores do not take a lease back while the inbox has an item, so the item is taken.
    if (!activation.mayHaveMore || this.passivation.givesBack(activation)) return;
    void this.watch(activation.key.agentId, "take its inbox items", () => this.drainInbox(activation));
  }

  /**
   * Discards an agent mid-turn and recovers it, after the effects of its commit have started: tests that no state exists outside
   * its journal. A further commit calls this function again.
   */
  #restore(activation: Activation): void {
    const { key, writer, isLost, openTurnId } = activation;
    if (isLost || this.isClosing || openTurnId === null || !writer.isSettled) return;
    activation.discard(`agent ${key.agentId} is restored`);
    void this.watch(key.agentId, "be activated", async () => {
      this.#succession.follow(activation, await this.activate(key));
    });
  }

  /** For a handle: the agent may be passivated again, whichever process runs it now. */
  disown({ agentId }: AgentKey): void {
    this.#placements.send(agentId, { type: "handle.closed" });
  }

  /** For a handle: commits open entries, stops the actors, releases the lease. Inbox items wait for the next owner. */
  async leave(activation: Activation, { isShutDown }: { readonly isShutDown?: boolean } = {}): Promise<void> {
    const isHere = await this.#handover.settle(activation);
    this.disown(activation.key);
    if (!isHere) return;
    await this.#handover.leave(activation, { isShutDown: isShutDown ?? activation.openTurnId !== null });
  }

  /** Gives up the agent between two steps, or immediately when `cut` is aborted. Returns whether it was cut. */
  async leaveAtSafePoint(activation: Activation, cut: AbortSignal): Promise<boolean> {
    return await this.#handover.leaveAtSafePoint(activation, cut);
  }

  /** Resolves when no lease is being offered any more. */
  offered(): Promise<void> {
    return this.#handover.offered();
  }

  /** Stores open entries and releases the leases, as far as time allows. */
  async close(time: LeavingTime): Promise<void> {
    this.#placements.isClosing = true;
    this.passivation.close();
    for (const { gate } of this.all()) gate.shut();
    const isStored = await time.spend("store", Promise.all([this.#placements.arrived(), this.#committer.drained()]));
    const left = this.#handover.leaveAll(!isStored);
    this.#committer.close();
    await time.spend("giveBack", left);
    this.#inFlight.abandon();
  }

  #keyOf(agentId: string): AgentKey {
    return { tenant: this.#options.tenant, agentId };
  }
}

/** The trace of the turn that a commit of this agent belongs to. */
function traceOfCommit(activation: Activation): TraceHeaders | undefined {
  const turnId = activation.openTurnId ?? activation.lastTurnId;
  return turnId === null ? undefined : activation.traceOf(turnId);
}
