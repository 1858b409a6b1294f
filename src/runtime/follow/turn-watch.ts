import { deepFreeze, type Waiting, Waiters } from "../../base/index.ts";
import { StoreRolledBackError, TroupeError } from "../../errors/index.ts";
import { type AgentRecord, agentOfTurn, numberOfTurn, rootOf } from "../../state/index.ts";
import { type ForeignWrites, isRecordChanged, isTreeChanged, type Stores } from "../../stores/index.ts";
import { requestsAtRest } from "./rest-watch.ts";
import { lookAtTurn } from "../agent/turn-results.ts";
import type { TurnRest, TurnResult } from "../doors/turn-types.ts";

export interface TurnWatchOptions {
  readonly stores: Stores;
  readonly tenant: string;
  /** Aborted when the runtime has been shut down. */
  readonly closed: AbortSignal;
  /** Whether the turn's end is heard of here without looking for it. */
  readonly isLocal: (turnId: string) => boolean;
  /** Called with what a look at a turn has thrown. */
  readonly onUnreadable: (agentId: string, error: unknown) => void;
}

/** Those who wait for turns to end or to come to rest, in this process or another. */
export class TurnWatch {
  readonly #options: TurnWatchOptions;
  readonly #ends = new Waiters<string, TurnResult>();
  readonly #rests = new Waiters<string, TurnRest>();
  /** Looks for ends: the one that is under way, and the one that begins when it is over. */
  readonly #looks = new Map<string, { readonly under: Promise<void>; next?: Promise<void> }>();
  /** Numbers of entries that came before those of turns that are awaited, as far as they were seen open. */
  readonly #begins = new Map<string, number>();
  /** Roots of trees of which the stores have lost something, until it was looked what is left of their turns. */
  readonly #rolledBack = new Set<string>();

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
    await this.#looked(turnId, this.#lookForEnd(turnId));
    return await ended;
  }

  async rest(turnId: string): Promise<TurnRest> {
    this.#options.closed.throwIfAborted();
    const rested = this.#rests.wait(turnId);
    await this.#looked(
      turnId,
      this.#lookForEnd(turnId).then(() => this.#lookForRest(turnId)),
    );
    return await rested;
  }

  /** The stores go with their runtime: what cannot be read any more is not what whoever waits has to be told. */
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

  ended(result: TurnResult): void {
    this.#ends.resolve(result.turnId, result);
    this.#settle(result);
  }

  #settle(rest: TurnRest, waiting?: Waiting<TurnRest>): void {
    this.#rests.resolve(rest.turnId, deepFreeze(rest), waiting);
    if (!this.isAwaited(rest.turnId)) this.#begins.delete(rest.turnId);
  }

  get awaited(): Set<string> {
    return new Set([...this.#ends.keys(), ...this.#rests.keys()]);
  }

  /** Nobody will end them here any more. */
  reject(error: Error): void {
    this.fail(error, () => true);
  }

  /** Whoever waits for one of these turns is told that it does not end, and why; who asks again waits anew. */
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

  /** Something of a tree has come to rest: a turn waits when it and everything below it have. */
  lookForRests(rootAgentId: string): void {
    for (const turnId of this.#rests.keys()) {
      if (rootOf(agentOfTurn(turnId)) === rootAgentId) this.#watch(turnId, this.#lookForRest(turnId));
    }
  }

  /** Another process wrote: it may have ended what is awaited here, or brought it to rest. */
  lookForAll(writes: ForeignWrites = "any"): void {
    const { tenant } = this.#options;
    this.#lookForGone();
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

  /** A turn that ended before anybody asked is in the journal. However often it is asked for, one look comes after another. */
  #lookForEnd(turnId: string): Promise<void> {
    const known = this.#looks.get(turnId);
    if (!known) return this.#lookOnce(turnId);
    // One that is under way may have read what has changed since; one that has not begun is as good as a further one.
    known.next ??= known.under.then(
      () => this.#lookOnce(turnId),
      () => this.#lookOnce(turnId),
    );
    return known.next;
  }

  #lookOnce(turnId: string): Promise<void> {
    const under = this.#readEnd(turnId).finally(() => {
      // Where another one follows, it takes this one's place.
      if (this.#looks.get(turnId)?.next === undefined) this.#looks.delete(turnId);
    });
    this.#looks.set(turnId, { under });
    return under;
  }

  async #readEnd(turnId: string): Promise<void> {
    const { stores, tenant, isLocal } = this.#options;
    if (isLocal(turnId) || !this.isAwaited(turnId)) return;
    const known = this.#begins.get(turnId);
    const { result, after, isUnknown } = await lookAtTurn(stores, tenant, turnId, known);
    if (result) this.ended(result);
    // It was there when it was looked for last, and nothing takes an open turn away.
    else if (isUnknown && known !== undefined) this.#rejectOne(turnId, lostTurn(turnId));
    else if (after !== undefined && this.isAwaited(turnId)) this.#begins.set(turnId, after);
  }

  async #lookForRest(turnId: string): Promise<void> {
    const { stores, tenant } = this.#options;
    // Whoever begins to wait meanwhile may know of something newer: a decision that it has just made.
    const waiting = this.#rests.of(turnId);
    const requests = await requestsAtRest(stores, tenant, turnId);
    if (requests) return this.#settle({ status: "waiting", turnId, reason: "request", requests }, waiting);
    if (await this.#isPaused(turnId)) this.#settle({ status: "waiting", turnId, reason: "paused" }, waiting);
  }

  /** Who was told to go on is not at rest, though nobody may have heard it yet: the mark on it or above it tells. */
  async #isPaused(turnId: string): Promise<boolean> {
    const { stores, tenant } = this.#options;
    const record = await stores.readAgent({ tenant, agentId: agentOfTurn(turnId) });
    if (record?.status !== "paused" || record.openTurnId !== turnId) return false;
    let at: AgentRecord | undefined = record;
    while (at && !at.pause) {
      at = at.parentAgentId === null ? undefined : await stores.readAgent({ tenant, agentId: at.parentAgentId });
    }
    return at !== undefined;
  }

  /** Turns that the stores have forgotten will never end; where they do not answer now, it is looked again at the next beat. */
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
    this.#rejectOne(turnId, lostTurn(turnId));
  }

  /** Stores that do not answer now are asked again at the next beat; of what can never be read whoever waits is told. */
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
    `the stores have lost turn ${turnId}, though they had acknowledged it; what it was to do may be asked again`,
    { details: { turnId } },
  );
}
