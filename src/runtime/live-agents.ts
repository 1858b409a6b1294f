import type { Host } from "../actors/index.ts";
import { LeaseLostError } from "../errors/index.ts";
import { type AgentKey, type EntryOf, type InboxItem, keyText, type Timer } from "../state/index.ts";
import type { Committed } from "../stores/index.ts";
import { createSlots, type Slots } from "../tools/index.ts";
import { Activation } from "./activation.ts";
import { Attendance, type Attended } from "./attendance.ts";
import { ChildResults } from "./child-results.ts";
import { Committer } from "./committer.ts";
import { InboxIntake } from "./inbox-intake.ts";
import type { LiveAgentsOptions } from "./live-agents-options.ts";
import { lostToOthers, Succession } from "./succession.ts";
import type { Surroundings } from "./surroundings.ts";
import { takeTimer } from "./take-timer.ts";
import { takeUp } from "./take-up.ts";
import { wakeUp } from "./wake-up.ts";
import { World } from "./world.ts";

/**
 * The agents that live in this process.
 * Owns: their activations, what they have out in the world, their slots. Does not own: leases' renewal, timers, handles.
 *
 * Invariants
 * 1. At most one activation of an agent at a time; every one has a new epoch.
 * 2. A child is released when its turn has ended; a root when its handle says so.
 */
export class LiveAgents implements Attended {
  readonly #options: LiveAgentsOptions;
  readonly #committer: Committer;
  readonly #world = new World();
  readonly #live = new Map<string, Activation>();
  readonly #coming = new Map<string, Promise<Activation>>();
  /** Shut down mid-turn: only `start()` brings them back (row L6). */
  readonly #dormant = new Set<string>();
  readonly #succession = new Succession<Activation>();
  readonly #slots = new Map<string, Slots>();
  readonly #children = new ChildResults();
  readonly #inboxes: InboxIntake;
  readonly #attendance: Attendance;
  readonly #around: Surroundings<Activation>;
  isClosing = false;

  constructor(options: LiveAgentsOptions) {
    this.#options = options;
    this.#attendance = new Attendance(this, options);
    this.#inboxes = new InboxIntake(options.stores, this.#children);
    this.#committer = new Committer(options.stores, options.clock, options.random);
    const { clock, prices, random, auth } = options;
    this.#around = {
      clock,
      prices,
      stores: options.stores,
      queues: options.queues,
      notify: (agentIds) => this.notify(agentIds),
      committer: this.#committer,
      random,
      inspect: options.onInspect,
      world: this.#world,
      slots: (name, limit) => this.#slotsOf(name, limit),
      auth: (turnId) => auth.of(turnId),
      redactorOf: (turnId) => auth.redactorOf(turnId),
      resolveAuth: (identity, turnId, actorId) => auth.resolve(identity, turnId, actorId),
      onCommitted: (activation, outcome) => this.#onCommitted(activation, outcome),
      viewersOf: (identity) => options.liveDesk.viewersOf(identity),
      childResult: (activation, childId) => this.#children.of(childId, activation.turnEntries),
      onLost: (activation) => this.#forget(activation),
      successor: async (activation): Promise<Host> => {
        this.#succession.assertGoesOn(activation);
        return await this.activate(activation.key).catch(lostToOthers);
      },
    };
  }

  get tenant(): string {
    return this.#options.tenant;
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

  /** The agent's activation, if it lives here or is just coming to life. */
  async present(key: AgentKey): Promise<Activation | undefined> {
    return this.get(key) ?? (await this.#coming.get(keyText(key))?.catch(() => undefined));
  }

  /** Takes the agent up for somebody who did not ask for it by name; undefined while it is shut down. */
  async activateUnlessShutDown(key: AgentKey): Promise<Activation | undefined> {
    return this.isShutDown(key) ? undefined : await this.activate(key);
  }

  isShutDown(key: AgentKey): boolean {
    return this.#dormant.has(keyText(key));
  }

  /** The last activation of this agent here, as one of its earlier ones leads to it. */
  lastOf(activation: Activation): Activation {
    return this.#succession.lastOf(activation);
  }

  async #activate(key: AgentKey): Promise<Activation> {
    if (this.isClosing) throw new LeaseLostError("this runtime is shutting down");
    this.#dormant.delete(keyText(key));
    const start = await takeUp(this.#options, key);
    const { record, definition } = start;
    const activation = new Activation(start, this.#around);
    this.#live.set(keyText(key), activation);
    this.#options.onActivated(activation);
    activation.start();
    if (activation.lifecycle === "starting") activation.append({ type: "agent.started", definition: definition.ref });
    const turnId = activation.openTurnId;
    if (record.definition.hash !== definition.ref.hash && turnId !== null) {
      const message = `definition "${definition.name}" has changed since agent "${key.agentId}" was made`;
      activation.append({ type: "warning", turnId, code: "definition_changed", message });
    }
    const children = [...activation.openChildIds, ...activation.backgroundChildren.map(({ childId }) => childId)];
    // Children that lived in a process that is gone have nobody else to take them up.
    await this.intake(activation).finally(() => this.notify(children));
    return activation;
  }

  /** Brings a created or shut down agent to `ready`, or `paused`; a new one may be given a conversation to begin with. */
  readonly wakeUp = wakeUp;

  /** Takes in what the inbox holds. */
  async intake(activation: Activation): Promise<void> {
    await this.#inboxes.intake(activation, (woken) => this.wakeUp(woken));
  }

  take(activation: Activation, item: InboxItem): void {
    this.#inboxes.take(activation, item);
  }

  async takeTimer(activation: Activation, timer: Exclude<Timer, { kind: "request" | "claim" | "job" }>): Promise<void> {
    this.notify(await takeTimer(this.#options.stores, activation, timer));
  }

  notify(agentIds: readonly string[]): void {
    this.#attendance.notify(agentIds);
  }

  rescue(agentId: string): Promise<boolean> {
    return this.#attendance.rescue(agentId);
  }

  /** Commits what is left, stops the actors, gives the lease back. What the inbox holds waits for the next owner. */
  async leave(activation: Activation): Promise<void> {
    if (!(await this.#settle(activation))) return;
    if (activation.openTurnId !== null) this.#dormant.add(keyText(activation.key));
    this.#stop(activation);
    await this.#giveBack(activation);
  }

  #giveBack({ key, epoch, clock }: Activation): Promise<boolean> {
    return this.#options.stores.release(key, epoch, { as: "leaving", steady: clock.elapsed() });
  }

  /** As `leave`, unless the inbox holds something new: then false, and the agent lives on. */
  async release(activation: Activation): Promise<boolean> {
    if (!(await this.#settle(activation))) return true;
    const { key, epoch, openTurnId } = activation;
    const released = openTurnId === null && (await this.#options.stores.release(key, epoch));
    if (released) this.#stop(activation);
    return released;
  }

  /** Waits until everything that was appended is committed; false when the lease was lost meanwhile. */
  async #settle(activation: Activation): Promise<boolean> {
    while (!activation.isLost && !activation.writer.isSettled) await this.#committer.drained();
    return !activation.isLost;
  }

  #stop(activation: Activation): void {
    this.#succession.release(activation);
    activation.discard(new LeaseLostError(`agent ${activation.key.agentId} was released`));
    this.#world.abandon(activation.key.agentId);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await Promise.allSettled(this.#coming.values());
    await this.#committer.drained();
    for (const activation of this.all()) {
      activation.discard(new LeaseLostError("this runtime was shut down"));
      await this.#giveBack(activation);
    }
    this.#world.abandon();
    this.#committer.close();
  }

  #forget(activation: Activation): void {
    if (this.get(activation.key) === activation) this.#live.delete(keyText(activation.key));
  }

  #onCommitted(activation: Activation, outcome: Committed): void {
    const textOf = (id: string): string => activation.conversation.text(id);
    this.#options.bus.publishCommitted(outcome, activation.identity, textOf);
    if (outcome.timers.length > 0) this.#options.onTimers(outcome.timers);
    if (outcome.posted.length > 0) this.notify(outcome.posted);
    this.#options.onCommitted(activation, outcome);
    let ended: EntryOf<"turn.ended"> | undefined;
    for (const entry of outcome.entries) {
      if (entry.type === "turn.ended") ended = entry;
      if (entry.type === "agent.paused") this.#options.onRest(activation);
      if (entry.type === "agent.resumed") this.#options.onResumed(activation);
    }
    if (ended) this.#afterTurn(activation, ended, outcome.accounts);
    else if (this.#options.restoreAfterCommit && outcome.entries.length > 0) this.#restore(activation);
  }

  #afterTurn(activation: Activation, ended: EntryOf<"turn.ended">, accounts: Committed["accounts"]): void {
    this.#options.onTurnEnded(activation, ended, accounts ?? []);
    const isChild = activation.identity.parentAgentId !== null;
    const rest = isChild ? this.#attendance.rest(activation) : this.intake(activation);
    this.#attendance.watch(activation.key.agentId, rest);
  }

  /** Once what the commit set going has begun, and nothing waits for another commit that will bring us here again. */
  #restore(activation: Activation): void {
    setImmediate(() => {
      const { key, writer, isLost, openTurnId } = activation;
      if (isLost || this.isClosing || openTurnId === null || !writer.isSettled) return;
      activation.discard(new LeaseLostError(`agent ${key.agentId} is restored`));
      const restored = this.activate(key).then((successor) => this.#succession.follow(activation, successor));
      this.#attendance.watch(key.agentId, restored);
    });
  }

  #slotsOf(name: string, limit: number): Slots {
    const known = this.#slots.get(name) ?? createSlots(limit);
    this.#slots.set(name, known);
    return known;
  }
}
