import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { AgentDefinition } from "../../agents/index.ts";
import { type Clock, processContext, Waiters, type WorkWatch } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import { LeaseLostError, UnsupportedError } from "../../errors/index.ts";
import type { PriceBook } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type AgentKey, agentOfTurn, type EntryOf, numberOfTurn, rootOf, type Timer } from "../../state/index.ts";
import {
  currentProcess,
  type ForeignWrites,
  isPostedTo,
  type ProcessIdentity,
  type Stores,
} from "../../stores/index.ts";
import type { ScheduleCaller, TurnSchedules } from "../../tools/index.ts";
import type { Activation } from "../agent/activation.ts";
import { Outage } from "../agent/committer.ts";
import { Inspections } from "../agent/inspections.ts";
import { TurnAuth } from "../agent/turn-auth.ts";
import { TurnContexts } from "../agent/turn-contexts.ts";
import { TurnFailures } from "../agent/turn-failures.ts";
import { resultAtEnd } from "../agent/turn-results.ts";
import type { Part } from "../api/roles.ts";
import { shutdownMsOf } from "../api/runtime-options.ts";
import type { DrainReport, LeftBehind, RuntimeSettings } from "../api/runtime-types.ts";
import type { SteerAnswer, TurnNow, TurnRest, TurnResult } from "../api/turn-types.ts";
import { DeletionWatch } from "../deletion/deletion-watch.ts";
import { DamageWatch } from "../follow/damage-watch.ts";
import { EventBus, LiveBroadcast } from "../follow/event-bus.ts";
import { SpawnTrees } from "../follow/spawn-trees.ts";
import { type TurnSource, WaitingHold } from "../follow/turn-handle.ts";
import { SteerWatch } from "../follow/steer-watch.ts";
import { type SeenRecord, TurnWatch } from "../follow/turn-watch.ts";
import { LiveAgents } from "../placement/live-agents.ts";
import type { RuntimeStores } from "../unsaved/unsaved-stores.ts";
import { Worker } from "../work/worker.ts";
import { type AlarmSource, Alarms, fireTimer, timerSource } from "./alarms.ts";
import { Heartbeat } from "./heartbeat.ts";
import { OuterBudgets } from "./outer-budgets.ts";
import { Requests } from "./requests.ts";
import { Shutdown } from "./shutdown.ts";
import { holdToolConnections } from "./tool-connections.ts";

/**
 * The services that all handles of one process share.
 * Owns: heartbeats, alarms, the waiters for results, and which turn spawned which agent. Does not own: the agents
 * themselves.
 */
export class RuntimeCore implements TurnSource {
  readonly stores: RuntimeStores;
  readonly tenant: string;
  /** Its `elapsed()` is the stores' monotonic time. */
  readonly clock: StoreClock;
  readonly bus = new EventBus();
  readonly auth: TurnAuth;
  readonly contexts: TurnContexts;
  readonly #failures = new TurnFailures();
  readonly live: LiveAgents;
  readonly broadcast: LiveBroadcast;
  readonly requests: Requests;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** The accounts above the roots. */
  readonly outer: OuterBudgets;
  readonly part: Part;
  readonly queues: Queues;
  readonly work: Worker;
  readonly waiting: WaitingHold;
  readonly outage: Outage;
  readonly damage: DamageWatch;
  readonly #turns: TurnWatch;
  readonly #steers: SteerWatch;
  readonly trees = new SpawnTrees();
  readonly inspections = new Inspections();
  readonly #writeListeners = new Set<(writes: ForeignWrites) => void>();
  /** Waiters for agents to come to rest. */
  readonly #pauses = new Waiters<string>();
  readonly #alarms: Alarms;
  /** `undefined` in a process that opens no turns of schedules. */
  readonly #scheduleAlarms: Alarms | undefined;
  readonly processId = randomUUID();
  readonly random: () => number;
  readonly #closing = new AbortController();
  readonly closed: AbortSignal = this.#closing.signal;
  readonly leaseMs: number;
  readonly #shutdown: Shutdown;
  readonly #beforeForgetting: CoreOptions["onTurnEnded"];
  readonly #onTreeForgotten: CoreOptions["onTreeForgotten"];
  readonly #shownRoots: CoreOptions["shownRoots"];
  readonly #deletions: DeletionWatch;
  #turnsEnded = 0;
  #isTidying = false;
  #heartbeat: Heartbeat | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(options: CoreOptions) {
    const { stores, tenant, leaseMs, definitions, onCommitted, onClosing } = options;
    const clock = new StoreClock(options.clock);
    this.stores = stores;
    this.tenant = tenant;
    this.clock = clock;
    this.definitions = definitions;
    this.outer = new OuterBudgets({ tenant, clock, options: options.accounts });
    this.part = options.part;
    this.queues = options.part.queues;
    this.leaseMs = leaseMs;
    this.random = options.random ?? Math.random;
    this.#beforeForgetting = options.onTurnEnded;
    this.#onTreeForgotten = options.onTreeForgotten;
    this.#shownRoots = options.shownRoots;
    this.#deletions = new DeletionWatch({
      stores,
      tenant,
      clock,
      roots: () => this.knownRoots,
      forget: (rootAgentId, deletedAt) => this.forgetTree(rootAgentId, deletedAt),
    });
    if (options.onInspect) this.inspections.add(options.onInspect);
    // Every stream listens to this signal, so the number of listeners is unlimited.
    setMaxListeners(0, this.closed);
    const parentTurnOf = (agentId: string): string | null => this.trees.parentTurnOf(agentId);
    this.contexts = new TurnContexts(parentTurnOf);
    this.auth = new TurnAuth({ resolve: options.resolveAuth, parentTurnOf, contexts: this.contexts, clock });
    this.requests = new Requests({
      stores,
      tenant,
      clock,
      definitions,
      mayDecide: options.mayDecide,
      notify: (agentIds) => this.live.notify(agentIds),
    });
    this.broadcast = new LiveBroadcast({
      bus: this.bus,
      stores,
      tenant,
      processId: this.processId,
      clock,
      streaming: options.streaming ?? "watched",
    });
    this.outage = new Outage(this.broadcast);
    this.#turns = new TurnWatch({
      stores,
      tenant,
      closed: this.closed,
      failures: this.#failures,
      isLocal: (turnId) => this.isLocal(turnId),
      onUnreadable: (agentId, error) => this.damage.found(agentId, error),
    });
    this.#steers = new SteerWatch({ stores, tenant, closed: this.closed });
    this.damage = new DamageWatch({
      stores,
      tenant,
      clock,
      closed: this.closed,
      awaited: () => this.#turns.awaited,
      onStuck: (turnId, error) => this.#turns.fail(error, (id) => id === turnId),
    });
    this.waiting = new WaitingHold(stores.kind !== "memory");
    this.#alarms = new Alarms(
      timerSource(stores, clock, (timer) => fireTimer(this, timer)),
      clock,
    );
    if (options.schedules) this.#scheduleAlarms = new Alarms(options.schedules, clock);
    this.live = new LiveAgents({
      stores,
      part: this.part,
      tenant,
      clock,
      prices: options.priceBook,
      outer: this.outer,
      random: this.random,
      closed: this.closed,
      leaseMs,
      present: () => this.present(),
      process: currentProcess(this.processId),
      definitions,
      bus: this.bus,
      broadcast: this.broadcast,
      trees: this.trees,
      auth: this.auth,
      contexts: this.contexts,
      failures: this.#failures,
      inspections: this.inspections,
      schedulesOf: options.schedulesOf ?? (() => noSchedules),
      restoreAfterCommit: options.restoreAfterCommit ?? false,
      onTimers: (timers) => this.#alarms.note(timers),
      onRefused: (activation, error) => this.outage.refused(activation, error),
      onFailed: (agentId, cause) => {
        this.damage.found(agentId, cause);
        this.#turns.fail(cause, (turnId) => this.trees.awaits(turnId, agentId));
      },
      guardsRequests: options.mayDecide !== undefined,
      onCommitted: (activation, { entries }) => {
        if (entries.length > 0 && !stores.isUnsaved(activation.key)) onCommitted?.(activation.identity.rootAgentId);
        this.outage.taken(activation);
        this.#steers.committed(activation.key.agentId);
        if (activation.isAtRest) this.#turns.lookForRests(activation.identity.rootAgentId);
      },
      onTurnEnded: (activation, entry, accounts) => this.#onTurnEnded(activation, entry, accounts),
      onRest: (activation) => this.#onRest(activation),
      // Resolves the waiters of the pause, because the pause was cancelled.
      onResumed: ({ key }) => this.#pauses.resolve(key.agentId),
    });
    this.work = new Worker(this);
    const { work, live, queues } = this;
    const releaseConnections = holdToolConnections(definitions);
    this.#shutdown = new Shutdown({
      clock,
      work,
      live,
      queues: {
        close: async () => {
          try {
            await queues.close();
          } finally {
            // Until now jobs may have used the connections.
            await releaseConnections();
          }
        },
      },
      stores: {
        close: async () => {
          await onClosing?.();
          await stores.close();
        },
      },
      stop: () => this.#stop(),
      reject: (error) => this.#reject(error),
    });
  }

  #stop(): void {
    this.work.stop();
    this.#alarms.close();
    this.#scheduleAlarms?.close();
    this.#stopWatching?.();
  }

  #reject(error: Error): void {
    this.broadcast.close();
    this.#heartbeat?.stop();
    this.#turns.reject(error);
    this.#steers.reject(error);
    this.#closing.abort(error);
  }

  /** Its timers, jobs and subscriptions serve all callers, so they do not inherit the caller's async context. */
  start(): Promise<void> {
    return processContext.run(() => this.#start());
  }

  async #start(): Promise<void> {
    const { stores, clock } = this;
    const self = currentProcess(this.processId);
    await clock.register(stores, self);
    this.#heartbeat = new Heartbeat({
      stores,
      clock,
      giveSign: () => clock.giveSign(stores, self),
      leaseMs: this.leaseMs,
      leases: () => this.live.passivation.leases(),
      isAtWork: () => this.live.isAtWork || this.work.running > 0,
      // An owner is notified of posted items, and otherwise finds them at its next heartbeat.
      onBeat: () => {
        this.#onForeignWrite("any");
        this.damage.beat();
        this.#deletions.look();
        this.#tidyAccounts();
      },
    });
    this.#heartbeat.start();
    await this.#alarms.start();
    await this.#scheduleAlarms?.start();
    this.#stopWatching = this.stores.onForeignWrite((writes) => {
      this.damage.heard(writes);
      this.#onForeignWrite(writes);
    });
    await this.work.start();
  }

  /** Drops everything that this process has of a tree that was deleted. */
  forgetTree(rootAgentId: string, deletedAt: number): void {
    for (const { identity, openTurnId } of this.live.all()) {
      if (identity.rootAgentId !== rootAgentId || openTurnId === null) continue;
      this.auth.forget(openTurnId);
      this.contexts.forget(openTurnId);
    }
    this.stores.forgetTree({ tenant: this.tenant, rootAgentId, hadAt: deletedAt, foundAt: null, deletedAt });
    this.trees.forget(rootAgentId);
    this.#onTreeForgotten?.(rootAgentId);
  }

  /** The roots of the trees of which this process has something in memory. */
  get knownRoots(): ReadonlySet<string> {
    const agentIds = [
      ...this.live.passivation.keys().map(({ agentId }) => agentId),
      ...[...this.#turns.awaited].map(agentOfTurn),
    ];
    const shown = this.#shownRoots?.() ?? [];
    return new Set([...agentIds.map(rootOf), ...this.bus.followedRoots, ...this.stores.unsavedRoots, ...shown]);
  }

  /** Returns what dead processes have reserved above the roots, and wakes calls that wait there. */
  #tidyAccounts(): void {
    if (!this.outer.isUsed || this.#isTidying) return;
    this.#isTidying = true;
    const { stores, tenant, clock } = this;
    stores.outer
      .tidy(tenant, { now: clock.now(), steady: clock.elapsed() })
      .then((posted) => this.notify(posted))
      // The next beat tries again.
      .catch(() => undefined)
      .finally(() => {
        this.#isTidying = false;
      });
  }

  lookAtTimers(): void {
    this.#alarms.look();
  }

  /** Resolves when other processes consider this one alive. */
  async present(): Promise<void> {
    await this.#heartbeat?.present();
  }

  shutdown(timeoutMs: number = shutdownMsOf()): Promise<readonly LeftBehind[]> {
    return this.#shutdown.close(timeoutMs);
  }

  /** Throws `LeaseLostError` once shutdown has started, so that a command is refused before it is stored. */
  assertOpen(): void {
    if (!this.isOpen) throw new LeaseLostError("this runtime was shut down; its agents can continue in another one");
  }

  get isOpen(): boolean {
    return !this.live.isClosing && !this.live.isLeaving;
  }

  drain(timeoutMs: number): Promise<DrainReport> {
    return this.#shutdown.drain(timeoutMs);
  }

  keyOf(agentId: string): AgentKey {
    return { tenant: this.tenant, agentId };
  }

  notify(agentIds: readonly string[]): void {
    this.live.notify(agentIds);
  }

  end(turnId: string): Promise<TurnResult> {
    return this.#turns.end(turnId);
  }

  /** Runs the code that opens a turn if other processes run the turns (`TurnWatch.opening`). */
  opening: TurnWatch["opening"] = (agentId, open) => this.#turns.opening(agentId, open);

  /** Resolves when an accepted input is part of a turn. */
  async steered(agentId: string, keyOrId: string): Promise<SteerAnswer> {
    const answer = this.#steers.answer(agentId, keyOrId);
    this.waiting.until(answer);
    return await answer;
  }

  recordAt(result: TurnResult): SeenRecord | undefined {
    return this.#turns.recordAt(result);
  }

  rest(turnId: string, seen?: TurnRest): Promise<TurnRest> {
    return this.#turns.rest(turnId, seen);
  }

  now(turnId: string): Promise<TurnNow> {
    return this.#turns.now(turnId);
  }

  async abort(turnId: string, reason: string): Promise<void> {
    await abortAgent(this, agentOfTurn(turnId), turnId, reason);
  }

  /** Arms the timers that a command has set, as for a commit. */
  noteTimers(timers: readonly Timer[]): void {
    this.#alarms.note(timers);
  }

  /** Opens the turns of a schedule at that time, which this process has stored. */
  noteSchedule(at: number): void {
    this.#scheduleAlarms?.noteTime(at);
  }

  isLocal(turnId: string): boolean {
    const live = this.live.get(this.keyOf(agentOfTurn(turnId)));
    // A queued turn, or one whose item is just being read, is not open in the machine yet.
    return live !== undefined && numberOfTurn(turnId) > live.owned.turnCount;
  }

  /** Counters for `metrics()`. */
  get counted() {
    return { turnsEnded: this.#turnsEnded, ...this.work.counted };
  }

  /** Resolves when the agent has come to rest. */
  async paused(activation: Activation): Promise<void> {
    if (activation.lifecycle !== "busy") return;
    await this.#pauses.wait(activation.key.agentId);
  }

  #onTurnEnded(activation: Activation, entry: EntryOf<"turn.ended">, accounts: readonly Account[]): void {
    const { turnId } = entry;
    this.#turnsEnded += 1;
    const heirs = activation.turn(turnId)?.backgroundIds;
    this.#beforeForgetting?.(turnId);
    this.auth.forget(turnId, heirs);
    this.contexts.forget(turnId, heirs);
    this.#pauses.resolve(activation.key.agentId);
    if (!this.#turns.isAwaited(turnId)) return void this.#failures.take(turnId);
    const result = resultAtEnd(activation, entry, accounts);
    if (result) this.#turns.ended(result);
    else this.#turns.lookForAll();
  }

  #onRest(activation: Activation): void {
    this.#pauses.resolve(activation.key.agentId);
    this.#turns.lookForRests(activation.identity.rootAgentId);
  }

  /**
   * Called when another process has written, or may have: it may have posted items to agents of this process, or ended an awaited
   * turn.
   */
  #onForeignWrite(writes: ForeignWrites): void {
    this.#attendPosts(writes);
    this.#alarms.heard(writes);
    this.#scheduleAlarms?.heard(writes);
    this.#turns.lookForAll(writes);
    this.#steers.lookForAll(writes);
    for (const listener of this.#writeListeners) listener(writes);
  }

  /** An agent named in the write certainly has new items, so its inbox is read without checking first. */
  #attendPosts(writes: ForeignWrites): void {
    const posted = this.live.passivation.keys().filter((key) => isPostedTo(writes, key));
    const named = new Set(writes === "any" ? [] : writes.all.flatMap((write) => write.posted ?? []));
    const [certain, possible] = [
      posted.filter(({ agentId }) => named.has(agentId)),
      posted.filter(({ agentId }) => !named.has(agentId)),
    ];
    if (certain.length > 0) this.live.notify(certain.map(({ agentId }) => agentId));
    if (possible.length > 0) this.#lookIntoInboxes(possible);
  }

  /** One query for all of them: at each heartbeat these are all agents of this process, and most of them have no items. */
  #lookIntoInboxes(keys: readonly AgentKey[]): void {
    const attend = (posted: readonly AgentKey[]): void => this.live.notify(posted.map(({ agentId }) => agentId));
    // If the stores do not answer now, each agent tries again until they do.
    this.stores.posted(keys).then(attend, () => attend(keys));
  }

  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void {
    this.#writeListeners.add(listener);
    return () => this.#writeListeners.delete(listener);
  }
}

const refuseToSchedule = async (): Promise<never> => {
  throw new UnsupportedError("a stateless turn cannot schedule later turns; use an agent of a runtime");
};
const noSchedules: TurnSchedules = { add: refuseToSchedule, list: refuseToSchedule, cancel: refuseToSchedule };

/** The options of a runtime with all defaults filled in. */
export interface CoreOptions extends RuntimeSettings {
  readonly stores: RuntimeStores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly priceBook: PriceBook;
  readonly part: Part;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** Called after each commit of this process that added rows to a saved tree. */
  readonly onCommitted?: ((rootAgentId: string) => void) | undefined;
  /** Called when a turn has ended in this process, before its credentials are dropped. */
  readonly onTurnEnded?: ((turnId: string) => void) | undefined;
  /** The schedules whose turns this process opens. Default: none. */
  readonly schedules?: AlarmSource | undefined;
  /** The schedules that a tool call may set. Default: none. */
  readonly schedulesOf?: ((caller: ScheduleCaller) => TurnSchedules) | undefined;
  /** Called when this process drops a tree that was deleted. */
  readonly onTreeForgotten?: ((rootAgentId: string) => void) | undefined;
  /** The roots of the trees that the overview shows. */
  readonly shownRoots?: (() => Iterable<string>) | undefined;
  /** Called before the stores are closed. */
  readonly onClosing?: (() => Promise<void>) | undefined;
}

interface AbortDependencies {
  readonly stores: Stores;
  readonly clock: { now(): number };
  keyOf(agentId: string): AgentKey;
  /** Called with the agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
  assertOpen(): void;
}

/** Ends a turn of an agent for a user, or the open one if `turnId` is null, and notifies its owner. */
export async function abortAgent(
  dependencies: AbortDependencies,
  agentId: string,
  turnId: string | null,
  reason: string,
): Promise<void> {
  dependencies.assertOpen();
  const command = { turnId, by: "user", reason, stopReason: "user_requested" } as const;
  const outcome = await dependencies.stores.abort(dependencies.keyOf(agentId), command, dependencies.clock.now());
  if (outcome.type !== "notFound") dependencies.notify(outcome.posted);
}

/**
 * A process's clock whose `elapsed()` is the monotonic time of the stores, once the process is registered with them: all
 * processes share it, and setting a clock does not change it. It measures leases and working time.
 */
export class StoreClock implements Clock {
  readonly #clock: Clock;
  #offset = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async register(stores: Stores, process: ProcessIdentity): Promise<void> {
    this.#offset = await stores.registerProcess(process, this.#clock.now(), this.#clock.elapsed());
  }

  /** Writes a heartbeat; a process that was forgotten after a long silence is registered again. */
  async giveSign(stores: Stores, process: ProcessIdentity): Promise<void> {
    if (!(await stores.heartbeat(process.processId, this.elapsed()))) await this.register(stores, process);
  }

  now(): number {
    return this.#clock.now();
  }

  elapsed(): number {
    return this.#clock.elapsed() + this.#offset;
  }

  setTimer(at: number, callback: () => void): () => void {
    return this.#clock.setTimer(at, callback);
  }

  setDelay(ms: number, callback: () => void): () => void {
    return this.#clock.setDelay(ms, callback);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(ms, signal);
  }

  get work(): WorkWatch | undefined {
    return this.#clock.work;
  }
}
