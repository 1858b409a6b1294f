import { deepFreeze, type Waiting, Waiters } from "../../base/index.ts";
import { StoreRolledBackError, TroupeError } from "../../errors/index.ts";
import { type AgentRecord, agentOfTurn, numberOfTurn, rootOf } from "../../state/index.ts";
import { deletedError, type ForeignWrites, isRecordChanged, isTreeChanged, type Stores } from "../../stores/index.ts";
import { requestsAtRest } from "./rest-watch.ts";
import type { TurnFailures } from "../agent/turn-failures.ts";
import { lookAtTurn, resultWith } from "../agent/turn-results.ts";
import type { TurnNow, TurnRest, TurnResult, WaitingTurn } from "../api/turn-types.ts";

/** How many times to read a turn again that changes during the read. */
const NOW_ATTEMPTS = 5;

export interface TurnWatchOptions {
  readonly stores: Stores;
  readonly tenant: string;
  /** Aborted when the runtime has been shut down. */
  readonly closed: AbortSignal;
  /** The errors that failed turns in this process. */
  readonly failures: Pick<TurnFailures, "take">;
  /** Whether this process is notified of the turn's end without reading the stores. */
  readonly isLocal: (turnId: string) => boolean;
  /** Called with the error of a failed read of a turn. */
  readonly onUnreadable: (agentId: string, error: unknown) => void;
}

/** A record, and the time of the request for it, from `performance.now()`. */
export interface SeenRecord {
  readonly record: AgentRecord;
  readonly at: number;
}

interface Opening {
  readonly agentId: string;
  isMoved: boolean;
}

/** An opened turn; with the stored record if this process does not run its agent. */
interface OpenedElsewhere {
  readonly turnId: string;
  readonly isReplayed: boolean;
  readonly record?: AgentRecord | undefined;
}

/** Waiters for turns to end or to come to rest, in this or another process. */
export class TurnWatch {
  readonly #options: TurnWatchOptions;
  readonly #ends = new Waiters<string, TurnResult>();
  readonly #rests = new Waiters<string, TurnRest>();
  /** The markers of rests already reported to waiters: a rest with the same marker is not reported to them again. */
  readonly #seen = new WeakMap<PromiseWithResolvers<TurnRest>, string>();
  /** By returned rest: the marker that distinguishes it from other rests of the turn. */
  readonly #marks = new WeakMap<TurnRest, string>();
  /** Reads for turn ends: the running one, and the one that starts after it. */
  readonly #looks = new Map<string, { readonly under: Promise<void>; next?: Promise<void> }>();
  /** By awaited turn: the seq of the entry before its first, if the turn was seen open. */
  readonly #begins = new Map<string, number>();
  /** Roots of trees that have lost stored writes, until their turns have been checked. */
  readonly #rolledBack = new Set<string>();
  /** Agents for which a turn is being opened, and whether another process has written their records meanwhile. */
  readonly #openings = new Set<Opening>();
  /** Opened turns whose agent's record no other process has written since, so that the first wait need not read the stores. */
  readonly #fresh = new Set<string>();
  /** By result: the record of its agent, from the read that found the end. */
  readonly #records = new WeakMap<TurnResult, SeenRecord>();

  constructor(options: TurnWatchOptions) {
    this.#options = options;
    options.stores.onRolledBack(({ tenant, rootAgentId }) => {
      if (tenant === options.tenant) this.#rolledBack.add(rootAgentId);
      this.#lookForGone();
    });
  }

  async end(turnId: string): Promise<TurnResult> {
    this.#options.closed.throwIfAborted();
    const ended = this.#ends.wait(turnId);
    // This process reports the end of a turn that is open here itself.
    const isKnown = this.#fresh.delete(turnId) || this.#options.isLocal(turnId);
    if (!isKnown) await this.#looked(turnId, this.#lookForEnd(turnId));
    return await ended;
  }

  /**
   * Runs `open`, which opens a turn for another process. The first wait for the turn starts without reading the stores, unless
   * another process has written the agent's record since this call: waiters are notified of all later writes.
   */
  async opening<T extends OpenedElsewhere>(agentId: string, open: () => Promise<T>): Promise<T> {
    const opening: Opening = { agentId, isMoved: false };
    this.#openings.add(opening);
    try {
      const opened = await open();
      const { turnId, isReplayed, record } = opened;
      if (record && !isReplayed && !opening.isMoved) {
        this.#begins.set(turnId, record.checkpoint?.seq ?? 0);
        this.#fresh.add(turnId);
      }
      return opened;
    } finally {
      this.#openings.delete(opening);
    }
  }

  /** The record that was read with the result, if the turn has ended in another process. */
  recordAt(result: TurnResult): SeenRecord | undefined {
    return this.#records.get(result);
  }

  /** Resolves when the turn rests or has ended. `seen`: a rest already returned; the turn must have changed since. */
  async rest(turnId: string, seen?: TurnRest): Promise<TurnRest> {
    this.#options.closed.throwIfAborted();
    const waiter = this.#rests.join(turnId);
    const mark = seen && this.#marks.get(seen);
    if (mark !== undefined) this.#seen.set(waiter, mark);
    await this.#looked(
      turnId,
      this.#lookForEnd(turnId).then(() => this.#lookForRest(turnId)),
    );
    return await waiter.promise;
  }

  /** The current state. Reads the turn again if it changes during the read. */
  async now(turnId: string): Promise<TurnNow> {
    const { stores, tenant, closed } = this.#options;
    closed.throwIfAborted();
    const key = { tenant, agentId: agentOfTurn(turnId) };
    for (let attempt = 1; ; attempt += 1) {
      const record = await stores.readAgent(key);
      if (record?.openTurnId === turnId) {
        const rest = await this.#restNow(turnId);
        if (rest) return rest;
        const rows = await stores.readJournal(key, (record.checkpoint?.seq ?? 0) + 1);
        const entries = rows
          .flatMap((row) => row.entries)
          .filter((entry) => "turnId" in entry && entry.turnId === turnId);
        const steps = entries.map((entry) => ("step" in entry ? entry.step : 0));
        const hasEnded = entries.at(-1)?.type === "turn.ended" && attempt < NOW_ATTEMPTS;
        if (!hasEnded) return { status: "running", turnId, step: Math.max(0, ...steps) };
        continue;
      }
      const { result } = await lookAtTurn(stores, tenant, turnId);
      if (result) return result;
      // Another process has added the turn to the saved copy of a tree that is held in this process's memory.
      const isToCome = !record || numberOfTurn(turnId) >= record.nextTurnNumber;
      if (isToCome || record.queuedTurnIds.includes(turnId) || attempt === NOW_ATTEMPTS) {
        return { status: "queued", turnId, step: 0 };
      }
    }
  }

  /** Once the stores are closed with their runtime, the caller gets the runtime's error instead of a failed read. */
  async #looked(turnId: string, look: Promise<void>): Promise<void> {
    try {
      await look;
    } catch (error) {
      this.#options.closed.throwIfAborted();
      this.#options.onUnreadable(agentOfTurn(turnId), error);
      throw error;
    }
  }

  isAwaited(turnId: string): boolean {
    return this.#ends.has(turnId) || this.#rests.has(turnId);
  }

  /** `seen`: the record that was read with the result. */
  ended(result: TurnResult, seen?: SeenRecord): void {
    const failure = this.#options.failures.take(result.turnId);
    const given = failure ? resultWith(result, failure) : result;
    if (seen) this.#records.set(given, seen);
    this.#ends.resolve(given.turnId, given);
    this.#settle(given);
  }

  #settle(rest: TurnRest, waiting?: Waiting<TurnRest>): void {
    this.#rests.resolve(rest.turnId, deepFreeze(rest), waiting);
    if (!this.isAwaited(rest.turnId)) this.#begins.delete(rest.turnId);
  }

  get awaited(): Set<string> {
    return new Set([...this.#ends.keys(), ...this.#rests.keys()]);
  }

  /** Rejects all waiters, because they cannot be resolved any more. */
  reject(error: Error): void {
    this.fail(error, () => true);
  }

  /** Rejects the waiters of these turns with the cause; a caller that asks again starts a new wait. */
  fail(cause: unknown, concerns: (turnId: string) => boolean): void {
    for (const turnId of this.awaited) {
      if (concerns(turnId)) this.#rejectOne(turnId, cause);
    }
  }

  #rejectOne(turnId: string, cause: unknown): void {
    this.#begins.delete(turnId);
    this.#ends.reject(turnId, cause);
    this.#rests.reject(turnId, cause);
  }

  /** Checks the turns of a tree after an agent of it came to rest: a turn rests when all agents below it do too. */
  lookForRests(rootAgentId: string): void {
    for (const turnId of this.#rests.keys()) {
      if (rootOf(agentOfTurn(turnId)) === rootAgentId) this.#watch(turnId, this.#lookForRest(turnId));
    }
  }

  /** Another process has written, so it may have ended awaited turns or brought them to rest. */
  lookForAll(writes: ForeignWrites = "any"): void {
    const { tenant } = this.#options;
    this.#lookForGone();
    for (const opening of this.#openings) {
      if (isRecordChanged(writes, { tenant, agentId: opening.agentId })) opening.isMoved = true;
    }
    for (const turnId of this.#fresh) {
      if (isRecordChanged(writes, { tenant, agentId: agentOfTurn(turnId) })) this.#fresh.delete(turnId);
    }
    for (const turnId of this.awaited) {
      const key = { tenant, agentId: agentOfTurn(turnId) };
      const mayHaveMoved = this.#rests.has(turnId) ? isTreeChanged(writes, key) : isRecordChanged(writes, key);
      if (!mayHaveMoved) continue;
      const look = this.#lookForEnd(turnId).then(() =>
        this.#rests.has(turnId) ? this.#lookForRest(turnId) : undefined,
      );
      this.#watch(turnId, look);
    }
  }

  /**
   * Reads the journal, which contains the end of a turn that ended earlier. Concurrent requests share reads, which run one after
   * the other.
   */
  #lookForEnd(turnId: string): Promise<void> {
    const known = this.#looks.get(turnId);
    if (!known) return this.#lookOnce(turnId);
    // The running read may miss the latest change; a read that has not started serves all further requests.
    known.next ??= known.under.then(
      () => this.#lookOnce(turnId),
      () => this.#lookOnce(turnId),
    );
    return known.next;
  }

  #lookOnce(turnId: string): Promise<void> {
    const under = this.#readEnd(turnId).finally(() => {
      // If another read follows, it has already replaced this one.
      if (this.#looks.get(turnId)?.next === undefined) this.#looks.delete(turnId);
    });
    this.#looks.set(turnId, { under });
    return under;
  }

  async #readEnd(turnId: string): Promise<void> {
    const { stores, tenant, isLocal } = this.#options;
    if (isLocal(turnId) || !this.isAwaited(turnId)) return;
    const known = this.#begins.get(turnId);
    const at = performance.now();
    const { result, record, after, isUnknown } = await lookAtTurn(stores, tenant, turnId, known);
    if (result) this.ended(result, record && { record, at });
    // The turn existed at the last read, and an open turn is never deleted.
    else if (isUnknown && known !== undefined) this.#rejectOne(turnId, await this.#lost(turnId));
    else if (after !== undefined && this.isAwaited(turnId)) this.#begins.set(turnId, after);
  }

  async #lookForRest(turnId: string): Promise<void> {
    // Waiters that join during the read may know of a later change, for instance their own decision.
    const waiting = this.#rests.of(turnId);
    const rest = await this.#restNow(turnId);
    if (!rest) return;
    const mark = this.#marks.get(rest);
    const told = waiting.filter((waiter) => this.#seen.get(waiter) !== mark);
    if (told.length > 0) this.#settle(rest, told);
  }

  async #restNow(turnId: string): Promise<WaitingTurn | undefined> {
    const { stores, tenant } = this.#options;
    const requests = await requestsAtRest(stores, tenant, turnId);
    if (requests) return await this.#marked({ status: "waiting", turnId, reason: "request", requests });
    return (await this.#isPaused(turnId))
      ? await this.#marked({ status: "waiting", turnId, reason: "paused" })
      : undefined;
  }

  /** The marker changes with the requests, and when the same requests are open before and after a pause or its end. */
  async #marked(rest: WaitingTurn): Promise<WaitingTurn> {
    const { stores, tenant } = this.#options;
    const key = { tenant, agentId: agentOfTurn(rest.turnId) };
    const record = await stores.readAgent(key);
    const rows = await stores.readJournal(key, (record?.checkpoint?.seq ?? 0) + 1);
    const pause = rows
      .flatMap(({ entries }) => entries)
      .findLast(({ type }) => type === "agent.paused" || type === "agent.resumed");
    const ids = rest.reason === "request" ? rest.requests.map(({ requestId }) => requestId).toSorted() : [];
    this.#marks.set(rest, [rest.reason, pause?.seq ?? 0, ...ids].join(" "));
    return rest;
  }

  /**
   * A resumed turn is not at rest, even before its agent has read the command: the pause flags on the agent and its ancestors
   * decide. A pause also holds queued turns.
   */
  async #isPaused(turnId: string): Promise<boolean> {
    const { stores, tenant } = this.#options;
    const record = await stores.readAgent({ tenant, agentId: agentOfTurn(turnId) });
    const isHeld = record?.openTurnId === turnId || record?.queuedTurnIds.includes(turnId) === true;
    if (record?.status !== "paused" || !isHeld) return false;
    let at: AgentRecord | undefined = record;
    while (at && !at.pause) {
      at = at.parentAgentId === null ? undefined : await stores.readAgent({ tenant, agentId: at.parentAgentId });
    }
    return at !== undefined;
  }

  /**
   * Rejects waiters of turns that the stores have lost, since they will never end. If the stores do not answer, the next
   * heartbeat retries.
   */
  #lookForGone(): void {
    for (const rootAgentId of this.#rolledBack) {
      const ofTree = [...this.awaited].filter((turnId) => rootOf(agentOfTurn(turnId)) === rootAgentId);
      this.#rolledBack.delete(rootAgentId);
      for (const turnId of ofTree) {
        const look = this.#rejectGone(turnId).catch((error: unknown) => {
          this.#rolledBack.add(rootAgentId);
          throw error;
        });
        this.#watch(turnId, look);
      }
    }
  }

  async #rejectGone(turnId: string): Promise<void> {
    const { stores, tenant } = this.#options;
    const record = await stores.readAgent({ tenant, agentId: agentOfTurn(turnId) });
    if (record && record.nextTurnNumber > numberOfTurn(turnId)) return;
    this.#rejectOne(turnId, await this.#lost(turnId));
  }

  /** The error for a turn that is not stored any more: its tree was deleted, or the stores have lost it. */
  async #lost(turnId: string): Promise<Error> {
    const { stores, tenant } = this.#options;
    const rootAgentId = rootOf(agentOfTurn(turnId));
    const deletion = await stores.deletion(tenant, rootAgentId);
    return deletion ? deletedError(rootAgentId, deletion) : lostTurn(turnId);
  }

  /** Warns about retryable errors, since the next heartbeat retries; rejects the turn's waiters with any other error. */
  #watch(turnId: string, look: Promise<unknown>): void {
    look.catch((error: unknown) => {
      if (this.#options.closed.aborted) return;
      if (error instanceof TroupeError && error.retryable) process.emitWarning(`turn ${turnId}: ${String(error)}`);
      else this.#rejectOne(turnId, error);
      this.#options.onUnreadable(agentOfTurn(turnId), error);
    });
  }
}

function lostTurn(turnId: string): StoreRolledBackError {
  return new StoreRolledBackError(
    `the stores have lost the acknowledged turn ${turnId}; request its work again if it is still needed`,
    { details: { turnId } },
  );
}
