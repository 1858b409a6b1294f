import { expect, it } from "vitest";
import { systemClock } from "../../src/base/index.ts";
import { InvariantError, StoreUnavailableError } from "../../src/errors/index.ts";
import { memoryStores } from "../../src/index.ts";
import { Committer, type CommitSource } from "../../src/runtime/agent/committer.ts";
import type { Batch, CommitOutcome } from "../../src/stores/index.ts";

function batchOf(id: string): Batch {
  return {
    id,
    key: { tenant: "default", agentId: id },
    epoch: 1,
    expectedSeq: 0,
    entries: [],
    messages: [],
    artifacts: [],
    owned: null,
    closedTurnId: null,
    moves: [],
    spawns: [],
    posts: [],
    acknowledged: [],
    clearedTimers: [],
    requests: [],
    closedRequests: [],
    cleared: null,
  };
}

class Source implements CommitSource {
  readonly batch: Batch;
  outcome: CommitOutcome | undefined;
  failure: unknown;
  readonly refusals: unknown[] = [];
  isGivenUp = false;
  #taken = false;

  constructor(id: string) {
    this.batch = batchOf(id);
  }

  takeBatch(): Batch | undefined {
    if (this.#taken) return undefined;
    this.#taken = true;
    return this.batch;
  }

  onOutcome(_batch: Batch, outcome: CommitOutcome): void {
    this.outcome = outcome;
  }

  onRefused(error: unknown): boolean {
    this.refusals.push(error);
    return !this.isGivenUp;
  }

  onFailure(error: unknown): void {
    this.failure = error;
  }
}

it("a batch that breaks its transaction does not affect the other batches", async () => {
  const broken = new InvariantError("this batch is broken");
  const sent: string[][] = [];
  const stores = {
    ...memoryStores(),
    commit: async (batches: readonly Batch[]): Promise<CommitOutcome[]> => {
      sent.push(batches.map(({ id }) => id));
      if (batches.some(({ id }) => id === "bad")) throw broken;
      return batches.map(() => ({ type: "stale", epoch: 2, seq: 0 }));
    },
  };
  const committer = new Committer(stores, systemClock, () => 0);
  const [good, bad] = [new Source("good"), new Source("bad")];
  committer.schedule(good);
  committer.schedule(bad);
  await committer.drained();

  expect(sent).toEqual([["good", "bad"], ["good"], ["bad"]]);
  expect(good).toMatchObject({ outcome: { type: "stale" }, failure: undefined });
  expect(bad).toMatchObject({ outcome: undefined, failure: broken });
});

it("a refused batch does not affect the others, and is retried until it is accepted or given up", async () => {
  const full = new StoreUnavailableError("there is no room");
  const sent: string[][] = [];
  const stores = {
    ...memoryStores(),
    commit: async (batches: readonly Batch[]): Promise<CommitOutcome[]> => {
      sent.push(batches.map(({ id }) => id));
      const isRefused = batches.some(({ id }) => id === "given up" || (id === "large" && sent.length < 4));
      if (isRefused) throw full;
      return batches.map(() => ({ type: "stale", epoch: 2, seq: 0 }));
    },
  };
  const committer = new Committer(stores, systemClock, () => 0);
  const [small, large, givenUp] = [new Source("small"), new Source("large"), new Source("given up")];
  givenUp.isGivenUp = true;
  for (const source of [small, large, givenUp]) committer.schedule(source);
  await committer.drained();

  expect(sent).toEqual([["small", "large", "given up"], ["small"], ["large"], ["large"]]);
  expect(small).toMatchObject({ outcome: { type: "stale" }, refusals: [full] });
  expect(large).toMatchObject({ outcome: { type: "stale" }, refusals: [full, full] });
  expect(givenUp).toMatchObject({ outcome: undefined, failure: undefined, refusals: [full] });
});
