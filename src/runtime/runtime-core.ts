import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { AgentDefinition } from "../agents/index.ts";
import { type Clock, createDeferred, type Deferred } from "../base/index.ts";
import {
  AlreadyOwnedError,
  InvalidInputError,
  LeaseLostError,
  NotFoundError,
  TurnInterruptedError,
} from "../errors/index.ts";
import { type AgentKey, agentOfTurn, type EntryOf, numberOfTurn, type StopReason, type Timer } from "../state/index.ts";
import { currentProcess, type Stores } from "../stores/index.ts";
import type { Auth } from "../tools/index.ts";
import type { Activation } from "./activation.ts";
import { Alarms } from "./alarms.ts";
import { AuthBook } from "./auth-book.ts";
import type { CoreOptions } from "./core-options.ts";
import { EventBus } from "./event-bus.ts";
import { followTree } from "./follow.ts";
import { LiveAgents } from "./live-agents.ts";
import { RequestDesk } from "./request-desk.ts";
import { requestsAtRest, requestsBelow } from "./rest-watch.ts";
import type { TurnSource } from "./turn-handle.ts";
import { readTurnResult, TurnResults, turnResultOf } from "./turn-results.ts";
import type { TurnRest, TurnResult } from "./types.ts";

const TIMERS_AT_A_TIME = 100;

/**
 * What the handles of one process share.
 * Owns: heartbeats, alarms, the waiters for results, who was spawned by which turn. Does not own: the agents themselves.
 */
export class RuntimeCore implements TurnSource {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Clock;
  readonly bus = new EventBus();
  readonly auth: AuthBook;
  readonly live: LiveAgents;
  readonly desk: RequestDesk;
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly #results = new TurnResults();
  readonly #parentTurns = new Map<string, string | null>();
  readonly #onlookers = new Set<() => void>();
  readonly #pauseWaiters = new Map<string, Deferred<void>>();
  readonly #alarms: Alarms;
  readonly #processId = randomUUID();
  readonly #closing = new AbortController();
  readonly closed: AbortSignal = this.#closing.signal;
  readonly #leaseMs: number;
  #shutdown: Promise<void> | undefined;
  #cancelHeartbeat: (() => void) | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(options: CoreOptions) {
    const { stores, tenant, clock, leaseMs, definitions } = options;
    this.stores = stores;
    this.tenant = tenant;
    this.clock = clock;
    this.definitions = definitions;
    this.#leaseMs = leaseMs;
    // Every stream listens to it; there may be any number.
    setMaxListeners(0, this.closed);
    this.auth = new AuthBook(options.resolveAuth, (agentId) => this.parentTurnOf(agentId));
    this.desk = new RequestDesk({
      stores,
      tenant,
      clock,
      definitions,
      mayDecide: options.mayDecide,
      notify: (agentIds) => this.live.notify(agentIds),
    });
    this.#alarms = new Alarms(stores, clock, (timer) => this.#onTimer(timer));
    this.live = new LiveAgents({
      stores,
      tenant,
      clock,
      random: options.random ?? Math.random,
      leaseMs,
      process: currentProcess(this.#processId),
      definitions,
      bus: this.bus,
      auth: this.auth,
      onInspect: options.onInspect,
      restoreAfterCommit: options.restoreAfterCommit ?? false,
      onTimers: (timers) => this.#alarms.note(timers),
      onActivated: ({ identity }) => this.#parentTurns.set(identity.agentId, identity.parentTurnId),
      onCommitted: (activation, { entries }) => {
        // A turn can only come to rest with one of these, or with a change of accounts alone.
        const mayRest = entries.length === 0 || entries.some(({ type }) => type === "turn.waiting");
        if (mayRest) this.#lookForRests(activation.identity.rootAgentId);
      },
      onTurnEnded: (activation, entry) => this.#onTurnEnded(activation, entry),
      onRest: (activation) => this.#onRest(activation),
      // Whoever waits for the pause waits no longer: it was taken back.
      onResumed: ({ key }) => this.#resolvePause(key.agentId),
    });
  }

  async start(): Promise<void> {
    await this.stores.registerProcess(currentProcess(this.#processId), this.clock.now());
    this.#beat();
    await this.#alarms.start();
    this.#stopWatching = this.stores.onForeignWrite(() => this.#onForeignWrite());
  }

  shutdown(): Promise<void> {
    this.#shutdown ??= this.#close();
    return this.#shutdown;
  }

  /** Throws `LeaseLostError` once the runtime is being shut down: a command must not be refused after it was stored. */
  assertOpen(): void {
    if (this.#shutdown) throw new LeaseLostError("this runtime was shut down; another one may carry on what it had");
  }

  async #close(): Promise<void> {
    this.#alarms.close();
    this.#stopWatching?.();
    await this.live.close();
    this.#cancelHeartbeat?.();
    const error = new TurnInterruptedError("this runtime was shut down; the turn is carried on at the next start");
    this.#results.reject(error);
    this.#closing.abort(error);
    await this.stores.close();
  }

  keyOf(agentId: string): AgentKey {
    return { tenant: this.tenant, agentId };
  }

  // ——— turns ———

  async end(turnId: string): Promise<TurnResult> {
    this.closed.throwIfAborted();
    const ended = this.#results.end(turnId);
    await this.#lookFor(turnId);
    return await ended;
  }

  async rest(turnId: string): Promise<TurnRest> {
    this.closed.throwIfAborted();
    const rested = this.#results.rest(turnId);
    await this.#lookFor(turnId);
    await this.#lookForRest(turnId);
    return await rested;
  }

  /** A turn waits when it and everything below it have come to rest, in whatever process. */
  async #lookForRest(turnId: string): Promise<void> {
    const requests = await requestsAtRest(this.stores, this.tenant, turnId);
    if (requests) this.#results.rested({ status: "waiting", turnId, reason: "request", requests });
  }

  #lookForRests(rootAgentId: string): void {
    for (const turnId of this.#results.restsAwaited(rootAgentId)) {
      this.#lookForRest(turnId).catch((error: unknown) => this.#report(turnId, error));
    }
  }

  #report(turnId: string, error: unknown): void {
    if (!this.closed.aborted) process.emitWarning(`turn ${turnId}: ${String(error)}`);
  }

  /** A turn that ended before anybody asked is in the journal. */
  async #lookFor(turnId: string): Promise<void> {
    if (this.isLocal(turnId)) return;
    const result = await readTurnResult(this.stores, this.tenant, turnId);
    if (result) this.#results.ended(result);
  }

  async abort(turnId: string, reason: string): Promise<void> {
    await this.abortAgent(agentOfTurn(turnId), turnId, reason);
  }

  async abortAgent(agentId: string, turnId: string | null, reason: string): Promise<readonly string[]> {
    this.assertOpen();
    const stopReason: StopReason = "user_requested";
    const command = { turnId, by: "user", reason, stopReason };
    const outcome = await this.stores.abort(this.keyOf(agentId), command, this.clock.now());
    const posted = outcome.type === "notFound" ? [] : outcome.posted;
    this.live.notify(posted);
    return posted;
  }

  /**
   * Credentials for every turn of the agent's tree that asks for them. They stay in this process (row L9), so the turn has to
   * be carried on here.
   */
  async provideAuth(agentId: string, auth: Auth): Promise<void> {
    const requests = await requestsBelow(this.stores, this.tenant, agentId);
    for (const request of requests.filter(({ kind }) => kind === "auth")) {
      if (request.actorId !== null && request.actorId !== auth.actorId) {
        throw new InvalidInputError(
          `turn ${request.turnId} runs for "${request.actorId}"; credentials of "${auth.actorId}" are not its own`,
        );
      }
      this.auth.keep(request.turnId, auth);
      await this.desk.decide(request.requestId, { verdict: "provided", by: auth.actorId });
    }
  }

  parentTurnOf(agentId: string): string | null {
    return this.#parentTurns.get(agentId) ?? null;
  }

  isLocal(turnId: string): boolean {
    const live = this.live.get(this.keyOf(agentOfTurn(turnId)));
    // A turn that waits in line, or whose item is just being taken, is not open in the machine yet.
    return live !== undefined && numberOfTurn(turnId) > live.owned.turnCount;
  }

  async *replay(rootAgentId: string, signal: AbortSignal) {
    await this.#learnTree(rootAgentId);
    for await (const event of followTree(this, rootAgentId, { signal })) {
      if (event.type === "subagent.spawned" && event.turnId) this.#parentTurns.set(event.childId, event.turnId);
      yield event;
    }
  }

  async #learnTree(rootAgentId: string): Promise<void> {
    const agents = await this.stores.listAgents({ tenant: this.tenant, rootAgentId, limit: 10_000 });
    for (const { agentId, parentTurnId } of agents) this.#parentTurns.set(agentId, parentTurnId);
  }

  /** Resolves when the agent has come to rest. */
  async paused(activation: Activation): Promise<void> {
    if (activation.lifecycle !== "busy") return;
    const { agentId } = activation.key;
    const waiter = this.#pauseWaiters.get(agentId) ?? createDeferred();
    this.#pauseWaiters.set(agentId, waiter);
    await waiter.promise;
  }

  #onTurnEnded(activation: Activation, entry: EntryOf<"turn.ended">): void {
    const { turnId, outputMessageId } = entry;
    this.auth.forget(turnId);
    this.#resolvePause(activation.key.agentId);
    if (!this.#results.isAwaited(turnId)) return;
    const text = outputMessageId === null ? "" : activation.conversation.text(outputMessageId);
    const { entries } = activation.memory(turnId);
    this.#results.ended(turnResultOf(entry, activation.turn(turnId)?.execution ?? null, text, entries));
  }

  #onRest(activation: Activation): void {
    this.#resolvePause(activation.key.agentId);
    const turnId = activation.openTurnId;
    if (turnId !== null) this.#results.rested({ status: "waiting", turnId, reason: "paused" });
  }

  #resolvePause(agentId: string): void {
    this.#pauseWaiters.get(agentId)?.resolve();
    this.#pauseWaiters.delete(agentId);
  }

  // ——— what comes from outside ———

  /** Another process wrote, or may have while nobody told us: it may have posted to agents that live here, or ended a turn that is awaited here. */
  #onForeignWrite(): void {
    this.live.notify(this.live.all().map(({ key }) => key.agentId));
    for (const turnId of this.#results.awaited()) {
      const look = this.#lookFor(turnId).then(() => this.#lookForRest(turnId));
      look.catch((error: unknown) => this.#report(turnId, error));
    }
    for (const onlooker of this.#onlookers) onlooker();
  }

  onForeignWrite(listener: () => void): () => void {
    const entry = (): void => listener();
    this.#onlookers.add(entry);
    return () => this.#onlookers.delete(entry);
  }

  async #onTimer(timer: Timer): Promise<void> {
    if (timer.tenant !== this.tenant) return;
    if (timer.kind === "request") return await this.desk.expire(timer.requestId);
    try {
      const activation = await this.live.activateUnlessShutDown(this.keyOf(timer.agentId));
      if (!activation) return;
      // Taking the agent up leaves out the time in which nobody worked, and so may have put the alarm off.
      const due = await this.stores.dueTimers(this.clock.now(), TIMERS_AT_A_TIME);
      if (due.some(({ agentId, id }) => agentId === timer.agentId && id === timer.id)) {
        this.live.takeTimer(activation, timer);
      }
    } catch (error) {
      // Its owner, or a runtime that knows its definition, sees to it.
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError || error instanceof NotFoundError)
        return;
      throw error;
    }
  }

  #beat(): void {
    this.#cancelHeartbeat = this.clock.setTimer(this.clock.now() + Math.ceil(this.#leaseMs / 3), () => {
      this.stores.heartbeat(this.#processId, this.clock.now()).catch((error: unknown) => {
        process.emitWarning(`the heartbeat could not be written: ${String(error)}`);
      });
      // An owner hears of a post by notification, and at the latest at its next heartbeat (design, Inbox).
      this.#onForeignWrite();
      this.#beat();
    });
  }
}
