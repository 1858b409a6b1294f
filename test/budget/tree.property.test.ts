import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Account,
  type Limits,
  openAccount,
  type Reservation,
  type ReservationAsk,
  type ReserveOutcome,
  reserve,
  type Settlement,
  settle,
  withLimits,
} from "../../src/budget/index.ts";
import { amount } from "../support/full.ts";
import { momentAt } from "./budget-fixtures.ts";

/** F14: reservations and settlements over random trees, in random order, against a plain sum. */

interface Tree {
  readonly accounts: Map<string, Account>;
  readonly ids: readonly string[];
}

const limits: fc.Arbitrary<Limits> = fc.record(
  {
    maxTokens: fc.integer({ min: 0, max: 5000 }),
    maxCostMicros: fc.integer({ min: 0, max: 3000 }),
    maxSteps: fc.integer({ min: 0, max: 12 }),
    maxTreeSteps: fc.integer({ min: 0, max: 20 }),
  },
  { requiredKeys: [] },
);

/** Up to 15 accounts, up to 5 levels deep: each one's parent is an earlier account. */
const tree: fc.Arbitrary<Tree> = fc.array(fc.tuple(fc.nat(), limits), { minLength: 1, maxLength: 15 }).map((nodes) => {
  const accounts = new Map<string, Account>();
  const depths: number[] = [];
  for (const [index, [pick, own]] of nodes.entries()) {
    const above = index === 0 ? -1 : pick % index;
    const parent = above >= 0 && (depths[above] ?? 0) < 5 ? above : index === 0 ? -1 : 0;
    depths.push(parent < 0 ? 1 : (depths[parent] ?? 0) + 1);
    const parentId = parent < 0 ? null : `a${parent}`;
    accounts.set(
      `a${index}`,
      openAccount({ id: `a${index}`, agentId: `g${index}`, turnId: null, parentId, limits: own }),
    );
  }
  return { accounts, ids: [...accounts.keys()] };
});

const price = fc.option(
  fc.record({
    inputPerMillion: fc.double({ min: 0, max: 3, noNaN: true }),
    outputPerMillion: fc.double({ min: 0, max: 3, noNaN: true }),
  }),
  { nil: null },
);

const move = fc.record({
  who: fc.nat(),
  promptTokens: fc.integer({ min: 0, max: 600 }),
  outputTokens: fc.integer({ min: 1, max: 900 }),
  price,
  opensStep: fc.boolean(),
  /** The open reservation to settle first, if any, and the share of it that was used. */
  settles: fc.option(
    fc.record({ which: fc.nat(), share: fc.double({ min: 0, max: 1, noNaN: true }), unconfirmed: fc.boolean() }),
  ),
});
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

function chainOf({ accounts }: Tree, id: string): Account[] {
  const chain: Account[] = [];
  for (let next: string | null = id; next !== null; ) {
    const account = accounts.get(next);
    if (!account) throw new Error(`no account ${next}`);
    chain.push(account);
    next = account.parentId;
  }
  return chain;
}

function put(tree: Tree, accounts: readonly Account[]): void {
  for (const account of accounts) tree.accounts.set(account.id, account);
}

function settlementOf(
  reservation: Reservation,
  { share, unconfirmed }: { share: number; unconfirmed: boolean },
): Settlement {
  const part = unconfirmed ? 1 : share;
  return {
    reservation,
    tokens: Math.floor(reservation.tokens * part),
    costMicros: Math.floor(reservation.costMicros * part),
    usage: null,
    unconfirmed,
  };
}

function askOf(tree: Tree, { who, promptTokens, outputTokens, price, opensStep }: Move): ReservationAsk {
  const id = tree.ids[who % tree.ids.length] ?? "a0";
  const minimumOutputTokens = Math.min(outputTokens, 256);
  return {
    accountId: id,
    agentId: `g${id.slice(1)}`,
    key: `${who}`,
    promptTokens,
    promptBound: promptTokens,
    outputTokens,
    minimumOutputTokens,
    price,
    opensStep,
    model: "m",
  };
}

/** Whether `above` is in the chain of account `id`. */
function isAbove(tree: Tree, above: string, id: string): boolean {
  return chainOf(tree, id).some((account) => account.id === above);
}

function over(limit: number | undefined, amount: number): boolean {
  return limit !== undefined && amount > limit;
}

/** The faults of the accounts, given the open reservations. */
function faultsOf(tree: Tree, open: readonly Reservation[]): string[] {
  const faults: string[] = [];
  for (const { id, limits, used, reserved } of tree.accounts.values()) {
    const below = open.filter((one) => isAbove(tree, id, one.accountId));
    const tokens = below.reduce((sum, one) => sum + one.tokens, 0);
    const costMicros = below.reduce((sum, one) => sum + one.costMicros, 0);
    if (reserved.tokens !== tokens || reserved.costMicros !== costMicros) faults.push(`${id}: reserved is not the sum`);
    if (over(limits.maxTokens, used.tokens + reserved.tokens)) faults.push(`${id}: over its tokens`);
    if (over(limits.maxCostMicros, used.costMicros + reserved.costMicros)) faults.push(`${id}: over its cost`);
    if (over(limits.maxSteps, used.steps)) faults.push(`${id}: over its steps`);
    if (over(limits.maxTreeSteps, used.treeSteps)) faults.push(`${id}: over the steps of its tree`);
  }
  return faults;
}

function judgementFaults(tree: Tree, ask: ReservationAsk, outcome: ReserveOutcome): string[] {
  if (outcome.granted) {
    const { outputTokens } = outcome.reservation;
    const isInBounds = outputTokens >= ask.minimumOutputTokens && outputTokens <= ask.outputTokens;
    return isInBounds ? [] : [`granted ${outputTokens} output tokens`];
  }
  if (outcome.reason === "budget") return [];
  if (outcome.reason === "unpriced") return ask.price === null ? [] : ["a priced call was refused as unpriced"];
  // Another call is open, and without it this one would be granted: no call waits forever.
  const chain = chainOf(tree, ask.accountId);
  const isAlone = chain.find((account) => account.id === outcome.accountId)?.reserved.tokens === 0;
  const free = chain.map((account) => ({ ...account, reserved: { tokens: 0, costMicros: 0 } }));
  const wouldGo = reserve(free, ask, momentAt(0)).granted;
  return isAlone || !wouldGo ? ["told to wait although no wait can help"] : [];
}

function run(tree: Tree, moves: readonly Move[]): { open: Reservation[]; faults: string[] } {
  const open: Reservation[] = [];
  const faults: string[] = [];
  for (const one of moves) {
    if (one.settles && open.length > 0) {
      const [reservation] = open.splice(one.settles.which % open.length, 1);
      if (reservation) put(tree, settle(chainOf(tree, reservation.accountId), settlementOf(reservation, one.settles)));
    }
    const ask = askOf(tree, one);
    const outcome = reserve(chainOf(tree, ask.accountId), ask, momentAt(0));
    faults.push(...judgementFaults(tree, ask, outcome));
    if (outcome.granted) {
      put(tree, outcome.accounts);
      open.push(outcome.reservation);
    }
    faults.push(...faultsOf(tree, open));
  }
  return { open, faults };
}

test("used + reserved never exceeds a limit, on any account, at any moment", () => {
  fc.assert(
    fc.property(tree, fc.array(move, { maxLength: 40 }), (accounts, moves) => {
      expect(run(accounts, moves).faults).toEqual([]);
    }),
    { numRuns: amount(1000, 170), seed: 1 },
  );
});

/** Sets the limits of one account between two moves. */
const change = fc.record({ who: fc.nat(), limits });

test("after any change of limits, no new reservation puts an account of its chain over its limit", () => {
  fc.assert(
    fc.property(tree, fc.array(fc.tuple(move, fc.option(change)), { maxLength: 40 }), (accounts, moves) => {
      const open: Reservation[] = [];
      for (const [one, changed] of moves) {
        const id = changed && accounts.ids[changed.who % accounts.ids.length];
        const account = accounts.accounts.get(id ?? "");
        if (changed && account) put(accounts, [withLimits(account, changed.limits)]);
        if (one.settles && open.length > 0) {
          const [reservation] = open.splice(one.settles.which % open.length, 1);
          if (reservation)
            put(accounts, settle(chainOf(accounts, reservation.accountId), settlementOf(reservation, one.settles)));
        }
        const ask = askOf(accounts, one);
        const outcome = reserve(chainOf(accounts, ask.accountId), ask, momentAt(0));
        if (!outcome.granted) continue;
        put(accounts, outcome.accounts);
        open.push(outcome.reservation);
        // A limit lowered below the current use stays exceeded, so that nothing more is granted under it.
        const { tokens, costMicros } = outcome.reservation;
        for (const { agentId, limits: own, used, reserved } of outcome.accounts) {
          const isOver = [
            tokens > 0 && over(own.maxTokens, used.tokens + reserved.tokens),
            costMicros > 0 && over(own.maxCostMicros, used.costMicros + reserved.costMicros),
            ask.opensStep && over(own.maxTreeSteps, used.treeSteps),
            ask.opensStep && agentId === ask.agentId && over(own.maxSteps, used.steps),
          ];
          expect(isOver).toEqual([false, false, false, false]);
        }
      }
    }),
    { numRuns: amount(3000, 300), seed: 1 },
  );
});

test("once everything is settled nothing is reserved, and unconfirmed use is included in the use", () => {
  fc.assert(
    fc.property(tree, fc.array(move, { maxLength: 20 }), (accounts, moves) => {
      for (const reservation of run(accounts, moves).open) {
        const settlement = settlementOf(reservation, { share: 0.5, unconfirmed: false });
        put(accounts, settle(chainOf(accounts, reservation.accountId), settlement));
      }
      expect(faultsOf(accounts, [])).toEqual([]);
      for (const { used, unconfirmed } of accounts.accounts.values()) {
        expect(unconfirmed.tokens).toBeLessThanOrEqual(used.tokens);
      }
    }),
    { numRuns: amount(9000, 1_500), seed: 1 },
  );
});
