import type { FactParts } from "../../actors/index.ts";
import { faultPoint } from "../../base/index.ts";
import type { OuterLimits } from "../../budget/index.ts";
import { LeaseLostError, type StoreUnavailableError } from "../../errors/index.ts";
import {
  type AgentKey,
  type Entry,
  type FactBody,
  type IntentBody,
  isIntent,
  type OwnedFields,
  type SteerItem,
} from "../../state/index.ts";
import type { Batch, BudgetMove, CommitOutcome, Committed, SpawnOrder } from "../../stores/index.ts";
import { type CommitSource, type Committer, staleError } from "./committer.ts";
import { PendingBatch } from "./pending-batch.ts";

/**
 * Writes one agent's entries to the journal on behalf of its owner.
 * Owns: the order of entries, the batch being filled and the batch in flight, and the entry bodies passed to it. Does not own:
 * the meaning of entries.
 *
 * Invariants
 * 1. Entries are delivered in the order of their seq, live as in the fold. A fact is delivered immediately, unless an intent
 *    before it still awaits its commit.
 * 2. At most one batch is in flight; entries appended meanwhile go into the next.
 * 3. After `close` nothing is appended, delivered or sent; after a batch that released the lease nothing is sent.
 */
export class JournalWriter implements CommitSource {
  readonly #start: WriterStart;
  readonly #committer: Committer;
  readonly #events: WriterEvents;
  readonly #undecided = new Map<number, PromiseWithResolvers<Entry>>();
  #commitWaiters: { readonly seq: number; readonly deferred: PromiseWithResolvers<void> }[] = [];
  #pending = new PendingBatch();
  #underWay: Batch | undefined;
  #hasLeft = false;
  /** Whether the batch in flight was refused, and whether the next refusal gives it up. */
  #refused: "no" | "again" | "given up" = "no";
  /** Entries not delivered yet; the first is an intent that awaits its commit. */
  #waiting: Entry[] = [];
  #delivering = false;
  #seq: number;
  #committedSeq: number;
  #at: number;
  #closed: LossReason | undefined;

  constructor(start: WriterStart, committer: Committer, events: WriterEvents) {
    this.#start = start;
    this.#committer = committer;
    this.#events = events;
    this.#seq = start.seq;
    this.#committedSeq = start.seq;
    this.#at = start.at;
  }

  /** Seq of the last committed entry, and time of the last appended one. */
  get place(): { readonly seq: number; readonly at: number } {
    return { seq: this.#committedSeq, at: this.#at };
  }

  /** Whether no entry waits for a commit. */
  get isSettled(): boolean {
    return this.#hasLeft || (this.#pending.isEmpty && !this.#underWay);
  }

  /** Whether a batch has released the lease; nothing is sent any more. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Entries not yet delivered to the machines: an intent that awaits its commit, and all entries after it. */
  get undelivered(): readonly Entry[] {
    return this.#waiting;
  }

  append(body: FactBody, parts?: FactParts): Entry {
    const entry = this.#envelope(body);
    this.#pending.add(entry, parts);
    this.#waiting.push(entry);
    this.#drain();
    this.#committer.schedule(this);
    return entry;
  }

  /** Resolves with the entry as decided by the commit: granted, or `intent.refused`. */
  propose(body: IntentBody, orderFor?: (seq: number) => SpawnOrder): Promise<Entry> {
    const entry = this.#envelope(body);
    const deferred = Promise.withResolvers<Entry>();
    if (orderFor) this.#pending.spawns.push(orderFor(entry.seq));
    this.#undecided.set(entry.seq, deferred);
    this.#pending.add(entry);
    this.#waiting.push(entry);
    this.#committer.schedule(this);
    return deferred.promise;
  }

  /** Adds the owner's fields of the record to the batch being filled. */
  setOwned(owned: OwnedFields): void {
    this.#pending.owned = owned;
    this.#committer.schedule(this);
  }

  /** A batch can close only one turn. Until it is sent, no other turn may start, since that turn might end in the same batch. */
  get isClosingTurn(): boolean {
    return this.#pending.closedTurnId !== null;
  }

  closeTurn(turnId: string): void {
    this.#pending.closedTurnId = turnId;
    this.#committer.schedule(this);
  }

  acknowledge(itemKey: string): void {
    this.#pending.acknowledged.push(itemKey);
    this.#committer.schedule(this);
  }

  /** Opens a turn with an input that the open turn does not take in. The caller acknowledges the item. */
  defer(item: SteerItem): void {
    this.#pending.deferred.push(item);
    this.#committer.schedule(this);
  }

  /** Adds a change of accounts that has no entry. */
  move(move: BudgetMove): void {
    this.#pending.moves.push(move);
    this.#committer.schedule(this);
  }

  /** Deletes the stored messages with the batch being filled. */
  clear(scope: NonNullable<Batch["cleared"]>): void {
    this.#pending.cleared = scope;
    this.#committer.schedule(this);
  }

  clearTimer(timerId: string): void {
    this.#pending.clearTimer(timerId);
    this.#committer.schedule(this);
  }

  /** Whether an uncommitted batch clears the timer: it is still stored, and may therefore be found due once more. */
  isClearing(timerId: string): boolean {
    return [this.#pending, this.#underWay].some((batch) => batch?.clearedTimers.includes(timerId));
  }

  /** Releases the lease with the batch being filled, because the owner has nothing more to do. */
  leave(): void {
    this.#pending.leaves = true;
    this.#committer.schedule(this);
  }

  committed(): Promise<void> {
    return this.#closed || this.#committedSeq < this.#seq ? this.#commitOf(this.#seq) : nothingLeft;
  }

  async #commitOf(seq: number): Promise<void> {
    if (this.#closed) throw lossOf(this.#closed);
    const deferred = Promise.withResolvers<void>();
    this.#commitWaiters.push({ seq, deferred });
    await deferred.promise;
  }

  /** Resolves when all entries so far have been delivered. */
  async delivered(): Promise<void> {
    const last = this.#waiting.at(-1);
    if (last) await this.#commitOf(last.seq);
  }

  close(why: LossReason): void {
    if (this.#closed) return;
    this.#closed = why;
    const left = [...this.#undecided.values(), ...this.#commitWaiters.map(({ deferred }) => deferred)];
    if (left.length === 0) return;
    const error = lossOf(why);
    this.#undecided.clear();
    this.#commitWaiters = [];
    for (const deferred of left) {
      deferred.promise.catch(() => undefined);
      deferred.reject(error);
    }
  }

  takeBatch(): Batch | undefined {
    if (this.#closed || this.#underWay || this.#hasLeft || this.#pending.isEmpty) return undefined;
    const batch = this.#pending.toBatch(this.#start, this.#committedSeq);
    const above = this.#events.above();
    const asking = this.#events.asking();
    this.#underWay = above.length > 0 ? { ...batch, asking, above } : { ...batch, asking };
    this.#pending = new PendingBatch();
    return this.#underWay;
  }

  onOutcome(batch: Batch, outcome: CommitOutcome): void {
    if (this.#closed) return;
    this.#underWay = undefined;
    this.#refused = "no";
    if (outcome.type === "stale") {
      const { key, epoch } = this.#start;
      return this.#events.onStale(staleError(key, { epoch, seq: this.#committedSeq }, outcome));
    }
    this.#hasLeft = batch.leaves === true;
    this.#committedSeq = batch.entries.at(-1)?.seq ?? this.#committedSeq;
    const decided = this.#decide(outcome.entries);
    this.#drain();
    for (const { deferred, entry } of decided) deferred.resolve(entry);
    this.#resolveWaiters();
    this.#events.onCommitted(outcome);
    if (!this.#pending.isEmpty) this.#committer.schedule(this);
    faultPoint("commit.acknowledged");
  }

  onRefused(error: StoreUnavailableError): boolean {
    if (this.#closed) return false;
    const isGivenUp = this.#refused === "given up";
    if (!isGivenUp) this.#refused = "again";
    this.#events.onRefused(error, isGivenUp);
    return !isGivenUp;
  }

  /** A refused batch is sent once more, and then given up. */
  giveUpRefused(): void {
    if (this.#refused === "again") this.#refused = "given up";
  }

  onFailure(error: unknown): void {
    if (!this.#closed) this.#events.onFailure(error);
  }

  /** The body itself becomes the entry: copying objects of so many shapes is slow, and the caller does not keep it. */
  #envelope(body: FactBody | IntentBody): Entry {
    if (this.#closed) throw lossOf(this.#closed);
    this.#at = Math.max(this.#events.now(), this.#at);
    this.#seq += 1;
    const entry = body as { -readonly [Field in keyof Entry]: Entry[Field] };
    entry.seq = this.#seq;
    entry.at = this.#at;
    entry.epoch = this.#start.epoch;
    return entry as Entry;
  }

  #decide(entries: readonly Entry[]): { deferred: PromiseWithResolvers<Entry>; entry: Entry }[] {
    const decided: { deferred: PromiseWithResolvers<Entry>; entry: Entry }[] = [];
    for (const entry of entries) {
      const deferred = this.#undecided.get(entry.seq);
      if (!deferred) continue;
      this.#undecided.delete(entry.seq);
      decided.push({ deferred, entry });
      const place = this.#waiting.findIndex(({ seq }) => seq === entry.seq);
      if (place >= 0) this.#waiting[place] = entry;
    }
    return decided;
  }

  /** Delivers the entries that do not wait for a commit, in order. */
  #drain(): void {
    if (this.#delivering) return;
    this.#delivering = true;
    try {
      for (let next = this.#waiting[0]; next && !this.#awaitsCommit(next); next = this.#waiting[0]) {
        this.#waiting.shift();
        this.#events.deliver(next);
      }
    } finally {
      this.#delivering = false;
    }
  }

  #awaitsCommit(entry: Entry): boolean {
    return isIntent(entry) && this.#undecided.has(entry.seq);
  }

  #resolveWaiters(): void {
    const waiters = this.#commitWaiters;
    this.#commitWaiters = waiters.filter(({ seq }) => seq > this.#committedSeq);
    for (const { seq, deferred } of waiters) if (seq <= this.#committedSeq) deferred.resolve();
  }
}

const nothingLeft = Promise.resolve();

/** Why this process lost an agent. A text becomes an error only when it is thrown, because most losses are never reported. */
export type LossReason = LeaseLostError | string;

export function lossOf(why: LossReason): LeaseLostError {
  return typeof why === "string" ? new LeaseLostError(why) : why;
}

interface WriterStart {
  readonly key: AgentKey;
  readonly epoch: number;
  /** The process that holds the lease. */
  readonly processId: string;
  /** Seq and time of the last committed entry. */
  readonly seq: number;
  readonly at: number;
}

interface WriterEvents {
  now(): number;
  /** The accounts above the agent's root at this moment. */
  above(): readonly OuterLimits[];
  /** For requests that the commit opens. */
  asking(): NonNullable<Batch["asking"]>;
  /** Delivers the entry to the machines. */
  deliver(entry: Entry): void;
  onCommitted(outcome: Committed): void;
  onStale(error: LeaseLostError): void;
  /** Called when the stores temporarily refuse a batch; it is sent again, unless it was given up. */
  onRefused(error: StoreUnavailableError, isGivenUp: boolean): void;
  onFailure(error: unknown): void;
}
