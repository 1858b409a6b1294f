import type { InspectionEvent } from "xstate";
import type { Host } from "../actors/index.ts";
import type { AgentDefinition } from "../agents/index.ts";
import type { Clock } from "../base/index.ts";
import { AlreadyOwnedError, LeaseLostError } from "../errors/index.ts";
import { type AgentKey, type EntryOf, type InboxItem, keyText, type Message, type Timer } from "../state/index.ts";
import type { Committed, ProcessIdentity, Stores } from "../stores/index.ts";
import { createSlots, type Slots } from "../tools/index.ts";
import { Activation } from "./activation.ts";
import type { AuthBook } from "./auth-book.ts";
import { ChildResults } from "./child-results.ts";
import { Committer } from "./committer.ts";
import type { EventBus } from "./event-bus.ts";
import { pauseAgent, takeItem, takeTimer } from "./intake.ts";
import type { Surroundings } from "./surroundings.ts";
import { takeUp } from "./take-up.ts";
import { World } from "./world.ts";

export interface LiveAgentsOptions {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly leaseMs: number;
  readonly process: ProcessIdentity;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly bus: EventBus;
  readonly auth: AuthBook;
  readonly onInspect: ((agentId: string, event: InspectionEvent) => void) | undefined;
  readonly restoreAfterCommit: boolean;
  /** Timers that a commit has set. */
  onTimers(timers: readonly Timer[]): void;
  onActivated(activation: Activation): void;
  onTurnEnded(activation: Activation, entry: EntryOf<"turn.ended">): void;
  onRest(activation: Activation): void;
  onResumed(activation: Activation): void;
}

/**
 * The agents that live in this process.
 * Owns: their activations, what they have out in the world, their slots. Does not own: leases' renewal, timers, handles.
 *
 * Invariants
 * 1. At most one activation of an agent at a time; every one has a new epoch.
 * 2. An inbox item is taken at most once per activation; it leaves the inbox with the commit that holds its entry.
 * 3. A child is released when its turn has ended; a root when its handle says so.
 */
export class LiveAgents {
  readonly #options: LiveAgentsOptions;
  readonly #committer: Committer;
  readonly #world = new World();
  readonly #live = new Map<string, Activation>();
  readonly #coming = new Map<string, Promise<Activation>>();
  readonly #taken = new WeakMap<Activation, Set<string>>();
  readonly #slots = new Map<string, Slots>();
  readonly #children = new ChildResults();
  readonly #around: Surroundings<Activation>;
  #closing = false;

  constructor(options: LiveAgentsOptions) {
    this.#options = options;
    this.#committer = new Committer(options.stores, options.clock, options.random);
    const { clock, random, bus, auth } = options;
    this.#around = {
      clock,
      committer: this.#committer,
      random,
      inspect: options.onInspect,
      world: this.#world,
      slots: (name, limit) => this.#slotsOf(name, limit),
      auth: (turnId) => auth.of(turnId),
      hasListeners: (rootAgentId) => bus.hasListeners(rootAgentId),
      onCommitted: (activation, outcome) => this.#onCommitted(activation, outcome),
      emit: ({ identity }, turnId, step, event) =>
        bus.publishEphemeral(event, identity, { turnId, step, at: clock.now() }),
      childResult: (activation, childId) => this.#children.of(childId, activation.turnEntries),
      onLost: (activation) => this.#forget(activation),
      successor: (activation): Promise<Host> => this.activate(activation.key),
    };
  }

  get(key: AgentKey): Activation | undefined {
    return this.#live.get(keyText(key));
  }

  all(): Activation[] {
    return [...this.#live.values()];
  }

  /** The agent's activation; takes the lease and recovers it where it does not live here yet. */
  async activate(key: AgentKey): Promise<Activation> {
    const text = keyText(key);
    const live = this.#live.get(text);
    if (live) return live;
    const coming = this.#coming.get(text);
    if (coming) return await coming;
    const started = this.#activate(key).finally(() => this.#coming.delete(text));
    this.#coming.set(text, started);
    return await started;
  }

  async #activate(key: AgentKey): Promise<Activation> {
    if (this.#closing) throw new LeaseLostError("this runtime is shutting down");
    const start = await takeUp(this.#options, key);
    const { record, definition } = start;
    const activation = new Activation(start, this.#around);
    this.#live.set(keyText(key), activation);
    this.#taken.set(activation, new Set());
    this.#options.onActivated(activation);
    activation.start();
    if (activation.lifecycle === "starting") activation.append({ type: "agent.started", definition: definition.ref });
    const turnId = activation.openTurnId;
    if (record.definition.hash !== definition.ref.hash && turnId !== null) {
      const message = `definition "${definition.name}" has changed since agent "${key.agentId}" was made`;
      activation.append({ type: "warning", turnId, code: "definition_changed", message });
    }
    await this.intake(activation);
    // Children that lived in a process that is gone have nobody else to take them up.
    this.notify(activation.openChildIds);
    return activation;
  }

  /** Brings a created or shut down agent to `ready`, or `paused`; a new one may be given a conversation to begin with. */
  wakeUp(activation: Activation, conversation: readonly Message[] = []): void {
    const { lifecycle, definition, identity } = activation;
    if (lifecycle !== "created" && lifecycle !== "shutdown") return;
    activation.append({ type: "agent.starting" });
    activation.append({ type: "agent.started", definition: definition.ref }, { messages: conversation });
    if (identity.pause) pauseAgent(activation, identity.pause.by);
  }

  /** Takes in what the inbox holds. */
  async intake(activation: Activation): Promise<void> {
    const items = await this.#options.stores.inbox(activation.key);
    if (items.length === 0 || activation.isLost) return;
    if (activation.identity.parentAgentId !== null) this.wakeUp(activation);
    // What comes later may be what an earlier one waits for: the end of a pause lets a turn begin.
    for (let isMoving = true; isMoving; ) {
      isMoving = items.filter((item) => this.take(activation, item)).length > 0;
    }
  }

  /** Takes one item; false when it was taken already or is not its turn yet. */
  take(activation: Activation, item: InboxItem): boolean {
    const taken = this.#taken.get(activation);
    if (!taken || taken.has(item.key) || activation.isLost) return false;
    if (!takeItem(activation, item)) return false;
    taken.add(item.key);
    if (item.kind === "child.ended") this.#children.settle(item.childId, { status: item.outcome, text: item.text });
    return true;
  }

  takeTimer(activation: Activation, timer: Timer): void {
    takeTimer(activation, timer);
  }

  /** Somebody posted to these agents: those that live here look, the others are taken up if nobody has them. */
  notify(agentIds: readonly string[]): void {
    for (const agentId of agentIds) {
      const key = { tenant: this.#options.tenant, agentId };
      this.#attend(key).catch((error: unknown) => this.#reportAttendance(agentId, error));
    }
  }

  /** Takes the agent up, unless it lives here or elsewhere; false then. */
  async rescue(agentId: string): Promise<boolean> {
    const key = { tenant: this.#options.tenant, agentId };
    if (this.get(key)) return false;
    try {
      await this.#attend(key);
      return true;
    } catch (error) {
      this.#reportAttendance(agentId, error);
      return false;
    }
  }

  async #attend(key: AgentKey): Promise<void> {
    if (this.#closing) return;
    const live = this.get(key);
    if (live) return await this.intake(live);
    const activation = await this.activate(key);
    const isIdleChild = activation.identity.parentAgentId !== null && activation.openTurnId === null;
    if (isIdleChild) await this.#rest(activation);
  }

  #reportAttendance(agentId: string, error: unknown): void {
    const expected = error instanceof AlreadyOwnedError || error instanceof LeaseLostError || this.#closing;
    if (!expected) process.emitWarning(`agent ${agentId} could not be taken up: ${String(error)}`);
  }

  /** Commits what is left, gives the lease back, and stops the actors. What the inbox holds waits for the next owner. */
  async leave(activation: Activation): Promise<void> {
    if (!(await this.#settle(activation))) return;
    this.#stop(activation);
    await this.#options.stores.release(activation.key, activation.epoch, { isLeaving: true });
  }

  /** As `leave`, unless the inbox holds something new: then false, and the agent lives on. */
  async #release(activation: Activation): Promise<boolean> {
    if (!(await this.#settle(activation))) return true;
    const released = await this.#options.stores.release(activation.key, activation.epoch);
    if (released) this.#stop(activation);
    return released;
  }

  /** Waits until everything that was appended is committed; false when the lease was lost meanwhile. */
  async #settle(activation: Activation): Promise<boolean> {
    while (!activation.isLost && !activation.writer.isSettled) await this.#committer.drained();
    return !activation.isLost;
  }

  #stop(activation: Activation): void {
    activation.discard(new LeaseLostError(`agent ${activation.key.agentId} was released`));
    this.#world.abandon(activation.key.agentId);
  }

  async close(): Promise<void> {
    this.#closing = true;
    await Promise.allSettled(this.#coming.values());
    await this.#committer.drained();
    for (const activation of this.all()) {
      activation.discard(new LeaseLostError("this runtime was shut down"));
      await this.#options.stores.release(activation.key, activation.epoch, { isLeaving: true });
    }
    this.#world.abandon();
    this.#committer.close();
  }

  #forget(activation: Activation): void {
    const text = keyText(activation.key);
    if (this.#live.get(text) === activation) this.#live.delete(text);
  }

  #onCommitted(activation: Activation, outcome: Committed): void {
    const { bus } = this.#options;
    bus.publishEntries(outcome.entries, activation.identity, outcome.cursor, (id) => activation.conversation.text(id));
    if (outcome.timers.length > 0) this.#options.onTimers(outcome.timers);
    if (outcome.posted.length > 0) this.notify(outcome.posted);
    let ended: EntryOf<"turn.ended"> | undefined;
    for (const entry of outcome.entries) {
      if (entry.type === "turn.ended") ended = entry;
      if (entry.type === "agent.paused") this.#options.onRest(activation);
      if (entry.type === "agent.resumed") this.#options.onResumed(activation);
    }
    if (ended) this.#afterTurn(activation, ended);
    else if (this.#options.restoreAfterCommit && outcome.entries.length > 0) this.#restore(activation);
  }

  #afterTurn(activation: Activation, ended: EntryOf<"turn.ended">): void {
    this.#options.onTurnEnded(activation, ended);
    const isChild = activation.identity.parentAgentId !== null;
    const rest = isChild ? this.#rest(activation) : this.intake(activation);
    rest.catch((error: unknown) => this.#reportAttendance(activation.key.agentId, error));
  }

  /** A child that has ended its turn leaves memory, unless something came for it meanwhile. */
  async #rest(activation: Activation): Promise<void> {
    await this.intake(activation);
    if (activation.openTurnId !== null) return;
    if (!(await this.#release(activation)) && !activation.isLost) await this.intake(activation);
  }

  /** Once what the commit set going has begun, and nothing waits for another commit that will bring us here again. */
  #restore(activation: Activation): void {
    setImmediate(() => {
      const { key, writer, isLost, openTurnId } = activation;
      if (isLost || this.#closing || openTurnId === null || !writer.isSettled) return;
      activation.discard(new LeaseLostError(`agent ${key.agentId} is restored`));
      this.activate(key).catch((error: unknown) => this.#reportAttendance(key.agentId, error));
    });
  }

  #slotsOf(name: string, limit: number): Slots {
    const known = this.#slots.get(name) ?? createSlots(limit);
    this.#slots.set(name, known);
    return known;
  }
}
