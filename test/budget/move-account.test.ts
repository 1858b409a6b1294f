import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Account, type Limits, moveToBackground } from "../../src/budget/index.ts";
import { amount } from "../support/full.ts";
import { AccountFamily, firstBackground } from "./account-family.ts";
import { account } from "./budget-fixtures.ts";

const limits: fc.Arbitrary<Limits> = fc.record(
  {
    maxTokens: fc.integer({ min: 0, max: 4000 }),
    maxCostMicros: fc.integer({ min: 0, max: 6000 }),
    maxSteps: fc.integer({ min: 0, max: 9 }),
    maxTreeSteps: fc.integer({ min: 0, max: 14 }),
  },
  { requiredKeys: [] },
);

const operation = fc.oneof(
  fc.record({ do: fc.constant("call"), who: fc.nat(), prompt: fc.nat(400), output: fc.integer({ min: 1, max: 500 }) }),
  fc.record({ do: fc.constant("settle"), which: fc.nat(), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  fc.record({ do: fc.constant("work"), who: fc.nat(), isActive: fc.boolean() }),
  fc.record({ do: fc.constant("time"), passes: fc.nat(5_000) }),
  fc.record({ do: fc.constant("end"), goesOn: fc.nat() }),
  fc.record({ do: fc.constant("wake"), who: fc.nat(), limits }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function apply(family: AccountFamily, step: Operation): void {
  const { children } = family;
  const holders = [...children, ...(family.openTurn ? [family.openTurn] : [])];
  if (holders.length === 0) return;
  const who = "who" in step ? (holders[step.who % holders.length] ?? "") : "";
  if ("prompt" in step) family.call(who, step.prompt, step.output);
  else if ("which" in step) family.settle(step.which, step.share);
  else if ("isActive" in step) family.work(who, step.isActive);
  else if ("passes" in step) family.now += step.passes;
  else if ("goesOn" in step) family.endTurn(children.filter((_, index) => ((step.goesOn >> index) & 1) === 1));
  else if (children.length > 0) family.wake(children[step.who % children.length] ?? "", step.limits);
}

function isUnder(family: AccountFamily, id: string, above: string): boolean {
  return family.chain(id).some((one) => one.id === above);
}

function checkEach(family: AccountFamily): void {
  for (const { id, reserved, used, limits: own, activeCount, activeSince } of family.accounts.values()) {
    const open = family.calls.filter(({ who }) => isUnder(family, who, id)).map(({ reservation }) => reservation);
    const tokens = open.reduce((sum, one) => sum + one.tokens, 0);
    const costMicros = open.reduce((sum, one) => sum + one.costMicros, 0);
    expect(reserved, id).toEqual({ tokens, costMicros });
    expect(used.tokens + tokens, id).toBeLessThanOrEqual(own.maxTokens ?? Number.POSITIVE_INFINITY);
    expect(used.costMicros + costMicros, id).toBeLessThanOrEqual(own.maxCostMicros ?? Number.POSITIVE_INFINITY);
    expect(used.treeSteps, id).toBeLessThanOrEqual(own.maxTreeSteps ?? Number.POSITIVE_INFINITY);
    expect(activeCount, id).toBe([...family.active].filter((who) => isUnder(family, who, id)).length);
    expect(activeSince !== null, id).toBe(activeCount > 0);
  }
}

/** The first turn, its children and all later turns together stay within the first turn's limits. */
function checkAll({ sum, calls }: AccountFamily, first: Limits): void {
  const tokens = calls.reduce((all, { reservation }) => all + reservation.tokens, sum.tokens);
  const costMicros = calls.reduce((all, { reservation }) => all + reservation.costMicros, sum.costMicros);
  expect(tokens).toBeLessThanOrEqual(first.maxTokens ?? Number.POSITIVE_INFINITY);
  expect(costMicros).toBeLessThanOrEqual(first.maxCostMicros ?? Number.POSITIVE_INFINITY);
  expect(sum.steps).toBeLessThanOrEqual(first.maxTreeSteps ?? Number.POSITIVE_INFINITY);
  expect(sum.ownSteps).toBeLessThanOrEqual(first.maxSteps ?? Number.POSITIVE_INFINITY);
}

test("no account gains room by a move, and reservations and workers are counted correctly, in any order", () => {
  let moves = 0;
  let wakes = 0;
  fc.assert(
    fc.property(
      fc.tuple(limits, limits, fc.array(limits, { minLength: 1, maxLength: 5 })),
      fc.array(operation, { maxLength: 60 }),
      ([life, turn, children], steps) => {
        const family = new AccountFamily(life, turn, children);
        for (const step of steps) {
          apply(family, step);
          checkEach(family);
          checkAll(family, turn);
        }
        if (family.accounts.has(firstBackground)) moves += 1;
        if (family.turns > 1) wakes += 1;
      },
    ),
    { numRuns: amount(1_500, 250), seed: 4 },
  );
  expect(moves).toBeGreaterThan(amount(300, 30));
  expect(wakes).toBeGreaterThan(amount(150, 15));
});

const spent = (changes: Partial<Account>): Account => ({
  ...account(
    { maxTokens: 1_000, maxSeconds: 60, maxSteps: 5, maxToolCalls: 9 },
    { id: "turn:desk#1", turnId: "desk#1" },
  ),
  ...changes,
});
const child = (changes: Partial<Account> = {}): Account => ({
  ...account({}, { id: "agent:desk~0", agentId: "desk~0", parentId: "turn:desk#1" }),
  ...changes,
});

describe("the background account that a turn leaves to its children", () => {
  const used = { ...account().used, tokens: 300, steps: 2, toolCalls: 1, activeMs: 10_000 };

  test("has the turn's limits minus its use and minus the reservations of those that stay", () => {
    const turn = spent({
      used,
      reserved: { tokens: 250, costMicros: 0 },
      isActive: true,
      activeCount: 2,
      activeSince: 5_000,
    });
    const moved = child({ reserved: { tokens: 200, costMicros: 0 }, activeCount: 1, activeSince: 6_000 });
    const { turn: rest, background, children } = moveToBackground(turn, [moved], undefined, 9_000);
    expect(background).toMatchObject({
      id: "background:desk#1",
      parentId: null,
      limits: { maxTokens: 650, maxActiveMs: 46_000, maxSteps: 3, maxToolCalls: 8 },
      used: { tokens: 0, activeMs: 0 },
      reserved: { tokens: 200 },
      activeCount: 1,
      activeSince: 9_000,
    });
    expect(rest).toMatchObject({ used, reserved: { tokens: 50 }, activeCount: 1, activeSince: 5_000 });
    expect(children).toEqual([{ ...moved, parentId: "background:desk#1" }]);
  });

  test("the turn's working time ends with the last one that works for it", () => {
    const turn = spent({ used, activeCount: 1, activeSince: 5_000 });
    const moved = child({ activeCount: 1, activeSince: 5_000 });
    const { turn: rest } = moveToBackground(turn, [moved], undefined, 9_000);
    expect(rest).toMatchObject({ activeCount: 0, activeSince: null, used: { activeMs: 14_000 } });
  });

  test("keeps a deadline and the flags of the limits", () => {
    const turn = account({ deadline: 99_000, strict: true }, { turnId: "desk#1" });
    expect(moveToBackground(turn, [child()], undefined, 0).background?.limits).toEqual({
      deadlineAt: 99_000,
      strict: true,
    });
  });

  test("is not created if nothing is limited, or if the account above leaves no more", () => {
    const free = account({}, { id: "turn:desk#1", turnId: "desk#1", parentId: "agent:desk" });
    const life = account({ maxTokens: 100 }, { id: "agent:desk", agentId: "agent" });
    expect(moveToBackground(free, [child()], life, 0)).toMatchObject({
      background: undefined,
      children: [{ parentId: "agent:desk" }],
    });
    const wide = { ...free, limits: { maxTokens: 100, maxSteps: 10 } };
    const narrow = account({ maxTokens: 100, maxSteps: 3 }, { id: "agent:desk", agentId: "agent" });
    expect(moveToBackground(wide, [child()], narrow, 0).background).toBeUndefined();
    expect(moveToBackground(wide, [child()], life, 0).background?.limits).toEqual(wide.limits);
    const others = { ...narrow, agentId: "another agent" };
    expect(moveToBackground(wide, [child()], others, 0).background?.limits).toEqual(wide.limits);
  });
});
