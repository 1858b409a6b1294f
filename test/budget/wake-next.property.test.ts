import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Account,
  limitsOf,
  openAccount,
  type Reservation,
  reserveQueued,
  settle,
  type Waiter,
  wakeNext,
} from "../../src/budget/index.ts";
import { amount } from "../support/full.ts";
import { ask, momentAt } from "./budget-fixtures.ts";

/** A tree of accounts with one queue, played in random order. Every wake is computed with and without the shortcut. */
class Line {
  readonly accounts = new Map<string, Account>();
  readonly out: Reservation[] = [];
  line: readonly Waiter[] = [];
  readonly #changed = new Set<string>();
  #asked = 0;

  constructor(limits: readonly { maxTokens?: number; maxSteps?: number; maxCost?: number }[]) {
    for (const [index, budget] of limits.entries()) {
      const parentId = index === 0 ? null : index % 3 === 0 ? "a1" : "a0";
      const id = `a${index}`;
      this.accounts.set(
        id,
        openAccount({ id, agentId: `g${index}`, turnId: null, parentId, limits: limitsOf(budget) }),
      );
    }
  }

  ask(who: number, promptTokens: number, outputTokens: number, now: number): readonly (readonly string[])[] {
    const id = `a${who % this.accounts.size}`;
    this.#asked += 1;
    // Some calls ask again while they are queued.
    const waiting = this.line.find((one) => one.ask.accountId === id);
    const asked = ask({
      key: waiting && this.#asked % 2 === 0 ? waiting.ask.key : `call-${this.#asked}`,
      accountId: id,
      agentId: `g${id.slice(1)}`,
      promptTokens,
      promptBound: promptTokens,
      outputTokens,
      minimumOutputTokens: Math.min(outputTokens, 64),
      price: { inputPerMillion: 1, outputPerMillion: 2 },
    });
    const {
      outcome,
      accounts,
      queue: line,
      mayWake,
    } = reserveQueued(this.#chain(id), asked, { queue: this.line, find: this.find }, momentAt(now));
    this.#put(accounts);
    this.line = line;
    if (outcome.granted) this.out.push(outcome.reservation);
    return mayWake ? this.#wake(now) : [];
  }

  settle(which: number, share: number, now: number): readonly (readonly string[])[] {
    const [reservation] = this.out.splice(which % Math.max(1, this.out.length), 1);
    if (!reservation) return [];
    const tokens = Math.floor(reservation.tokens * share);
    const costMicros = Math.floor(reservation.costMicros * share);
    const settlement = { reservation, tokens, costMicros, usage: null, unconfirmed: false };
    this.#put(settle(this.#chain(reservation.accountId), settlement));
    return this.#wake(now);
  }

  /** The woken calls, and those woken when all queued calls are checked again. */
  #wake(now: number): readonly (readonly string[])[] {
    const changed = [...this.#changed].flatMap((id) => this.find(id) ?? []);
    this.#changed.clear();
    const { queue: line, agentIds } = wakeNext(this.line, { topId: "a0", find: this.find, changed }, momentAt(now));
    // The same queue with only the least need of each call known.
    const unknown = this.line.map((waiter) => ({ ...waiter, need: waiter.least }));
    const all = wakeNext(unknown, { topId: "no shortcut", find: this.find, changed: [] }, momentAt(now));
    this.line = line;
    return [keysOf(line), keysOf(all.queue), agentIds, all.agentIds];
  }

  readonly find = (id: string): Account | undefined => this.accounts.get(id);

  #chain(id: string): Account[] {
    const account = this.accounts.get(id);
    return account ? [account, ...(account.parentId === null ? [] : this.#chain(account.parentId))] : [];
  }

  #put(accounts: readonly Account[]): void {
    for (const account of accounts) {
      this.accounts.set(account.id, account);
      this.#changed.add(account.id);
    }
  }
}

/** Keys of the waiting calls, with the time each was woken at. */
function keysOf(line: readonly Waiter[]): string[] {
  return line.map(({ ask: { key }, wokenAt }) => `${key} ${wokenAt ?? ""}`);
}

const budget = fc.record(
  {
    maxTokens: fc.integer({ min: 200, max: 6000 }),
    maxSteps: fc.integer({ min: 1, max: 8 }),
    maxCost: fc.integer({ min: 300, max: 9000 }).map((micros) => micros / 1_000_000),
  },
  { requiredKeys: [] },
);
const top = fc.record({ maxTokens: fc.integer({ min: 800, max: 9000 }) });
const call = fc.record({
  who: fc.nat(),
  prompt: fc.integer({ min: 1, max: 100 }),
  output: fc.integer({ min: 200, max: 900 }),
});
const end = fc.record({ which: fc.nat(), share: fc.double({ min: 0, max: 0.3, noNaN: true }) });
const move = fc.oneof({ weight: 3, arbitrary: call }, { weight: 2, arbitrary: end });
const moves = fc.array(move, { minLength: 20, maxLength: 90, size: "max" });
const others = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant({}) }, budget), {
  minLength: 3,
  maxLength: 12,
  size: "max",
});

test("the woken calls are those that a check of the whole queue would wake", () => {
  let longest = 0;
  fc.assert(
    fc.property(top, others, moves, (first, rest, played) => {
      const tree = new Line([first, ...rest]);
      for (const [step, one] of played.entries()) {
        // Some woken calls are late.
        const now = 1_000 + step * 900;
        const [line, all, told, toldOfAll] =
          "who" in one ? tree.ask(one.who, one.prompt, one.output, now) : tree.settle(one.which, one.share, now);
        expect([line, told]).toEqual([all, toldOfAll]);
        longest = Math.max(longest, tree.line.length);
      }
    }),
    { numRuns: amount(500, 83), seed: 4 },
  );
  expect(longest).toBeGreaterThan(10);
});
