import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Account,
  limitsOf,
  openAccount,
  type Reservation,
  reserveInTurn,
  settle,
  type Waiter,
  type Woken,
  wakeNext,
} from "../../src/budget/index.ts";
import { ask } from "./budget-fixtures.ts";

/** A tree of accounts with one line, played in random order; every wake is looked at with and without the short way. */
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

  ask(who: number, promptTokens: number, outputTokens: number, now: number): Woken[] {
    const id = `a${who % this.accounts.size}`;
    this.#asked += 1;
    // Some of the asks are those of a call that waits already.
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
    const { outcome, accounts, line, mayWake } = reserveInTurn(
      this.#chain(id),
      asked,
      { line: this.line, find: this.find },
      now,
    );
    this.#put(accounts);
    this.line = line;
    if (outcome.granted) this.out.push(outcome.reservation);
    return mayWake ? this.#wake(now) : [];
  }

  settle(which: number, share: number, now: number): Woken[] {
    const [reservation] = this.out.splice(which % Math.max(1, this.out.length), 1);
    if (!reservation) return [];
    const tokens = Math.floor(reservation.tokens * share);
    const costMicros = Math.floor(reservation.costMicros * share);
    const settlement = { reservation, tokens, costMicros, usage: null, unconfirmed: false };
    this.#put(settle(this.#chain(reservation.accountId), settlement));
    return this.#wake(now);
  }

  /** Gives what was found, and what is found by looking at everybody. */
  #wake(now: number): Woken[] {
    const changed = [...this.#changed].flatMap((id) => this.find(id) ?? []);
    this.#changed.clear();
    const woken = wakeNext(this.line, { topId: "a0", find: this.find, changed }, now);
    const all = wakeNext(this.line, { topId: "no short way", find: this.find, changed }, now);
    this.line = woken.line;
    return [woken, all];
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

test("whoever is told is who would be told by looking at everybody in the line", () => {
  let longest = 0;
  fc.assert(
    fc.property(top, others, moves, (first, rest, played) => {
      const line = new Line([first, ...rest]);
      for (const [step, one] of played.entries()) {
        // Some of those who were told are late.
        const now = 1_000 + step * 900;
        const [woken, all] =
          "who" in one ? line.ask(one.who, one.prompt, one.output, now) : line.settle(one.which, one.share, now);
        expect(woken).toEqual(all);
        longest = Math.max(longest, line.line.length);
      }
    }),
    { numRuns: 500, seed: 4 },
  );
  expect(longest).toBeGreaterThan(10);
});
