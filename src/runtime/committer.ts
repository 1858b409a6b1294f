import { backoffDelay, type Clock, createDeferred, faultPoint, holdProcess } from "../base/index.ts";
import { StoreUnavailableError } from "../errors/index.ts";
import type { Batch, CommitOutcome, Stores } from "../stores/index.ts";

/** Somebody who has things to commit. */
export interface CommitSource {
  /** The next batch, or undefined when there is nothing to commit or one is under way. */
  takeBatch(): Batch | undefined;
  onOutcome(batch: Batch, outcome: CommitOutcome): void;
  onFailure(error: unknown): void;
}

interface Order {
  readonly source: CommitSource;
  readonly batch: Batch;
}

/**
 * Brings batches to the store: all that became ready within one event-loop turn go in one transaction.
 * Owns: which sources are due. Does not own: the batches, or what their outcomes mean.
 *
 * Invariants
 * 1. A source is asked once per event-loop turn at the most, whether or not anybody awaits the result.
 * 2. A transport failure is no outcome: the same batches are sent again, under their ids, until they are answered.
 */
export class Committer {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #due = new Set<CommitSource>();
  #scheduled = false;
  #underWay = 0;
  #closed = false;
  #idle = createDeferred();

  constructor(stores: Stores, clock: Clock, random: () => number) {
    this.#stores = stores;
    this.#clock = clock;
    this.#random = random;
    this.#idle.resolve();
  }

  schedule(source: CommitSource): void {
    this.#due.add(source);
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.#idle.isSettled) this.#idle = createDeferred();
    setImmediate(() => this.#flush());
  }

  /** Resolves when nothing is due or under way. */
  async drained(): Promise<void> {
    await this.#idle.promise;
  }

  close(): void {
    this.#closed = true;
  }

  #flush(): void {
    this.#scheduled = false;
    const orders: Order[] = [];
    for (const source of this.#due) {
      const batch = source.takeBatch();
      if (batch) orders.push({ source, batch });
    }
    this.#due.clear();
    if (orders.length === 0) return this.#settleIdle();
    this.#underWay += 1;
    faultPoint("commit.before");
    void this.#send(orders).then(() => {
      this.#underWay -= 1;
      this.#settleIdle();
    });
  }

  /** One transaction for all; when one batch breaks it, each is sent again alone, so that it takes nobody with it. */
  async #send(orders: readonly Order[]): Promise<void> {
    let outcomes: readonly CommitOutcome[];
    try {
      outcomes = await this.#commit(orders.map(({ batch }) => batch));
    } catch (error) {
      const [only, ...others] = orders;
      if (only && others.length === 0) return only.source.onFailure(error);
      await Promise.all(orders.map((order) => this.#send([order])));
      return;
    }
    faultPoint("commit.after");
    for (const [index, { source, batch }] of orders.entries()) {
      const outcome = outcomes[index];
      try {
        if (outcome) source.onOutcome(batch, outcome);
      } catch (error) {
        // A defect while it took in what is committed: its agent is given up here and recovered from the journal.
        source.onFailure(error);
      }
    }
  }

  async #commit(batches: readonly Batch[]): Promise<CommitOutcome[]> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#stores.commit(batches, this.#clock.now(), this.#clock.elapsed());
      } catch (error) {
        if (!(error instanceof StoreUnavailableError) || this.#closed) throw error;
        await this.#pause(backoffDelay(attempt, this.#random(), { baseMs: 50, capMs: 2_000 }));
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    const over = createDeferred();
    const letGo = holdProcess();
    this.#clock.setDelay(ms, () => over.resolve());
    await over.promise;
    letGo();
  }

  #settleIdle(): void {
    if (this.#underWay === 0 && this.#due.size === 0) this.#idle.resolve();
  }
}
