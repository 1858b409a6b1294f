import * as fc from "fast-check";
import { expect, it, test } from "vitest";
import type { AccountAt } from "../../src/inspector/run-model/account-at.ts";
import { AccountFold } from "../../src/inspector/run-model/account-fold.ts";
import type { Account } from "../../src/budget/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { scenarios } from "../machines/scenarios.ts";
import { every, randomCases, rows } from "../support/full.ts";
import { RandomPlay } from "../support/random-play.ts";
import { turnPlan } from "../support/random-turns.ts";
import { emptyTally } from "../support/random-world.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { rowsOf } from "../support/stored-programs.ts";

/** The fields that a stored account and one of the fold must have in common. */
function exactOf({ id, agentId, turnId, parentId, limits, used, reserved, unconfirmed }: Account | AccountAt) {
  const { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros } = used;
  const amounts = { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros };
  return { id, agentId, turnId, parentId, limits, used: amounts, reserved, unconfirmed };
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number => (one.id < other.id ? -1 : 1);

async function foldOf(stores: Stores, rootAgentId: string): Promise<AccountFold> {
  const fold = new AccountFold();
  fold.learn((await stores.accounts("default", rootAgentId)).filter(({ id }) => id.startsWith("agent:")));
  for (const { agentId, entries } of await rowsOf(stores, rootAgentId)) {
    for (const entry of entries) fold.apply(agentId, entry);
  }
  return fold;
}

/** At the newest row the fold equals the stored accounts, whether or not the tree is at rest. Returns the number of accounts. */
async function expectStored(stores: Stores, rootAgentId: string): Promise<number> {
  const stored = await stores.accounts("default", rootAgentId);
  const fold = await foldOf(stores, rootAgentId);
  expect(fold.accounts.map(exactOf).toSorted(byId)).toEqual(stored.map(exactOf).toSorted(byId));
  const waiters = await stores.waiters("default", rootAgentId);
  const waiting = fold.waiting.map(({ agentId }) => agentId);
  for (const { ask } of waiters) expect(waiting).toContain(ask.agentId);
  return stored.length;
}

describeRuntimes("accounts of stored programs", (stage) => {
  test.each(rows(scenarios, every(5)))("$name", async ({ run }) => {
    const runtime = await run(stage(), {});
    for (const { agentId } of await runtime.list({ rootsOnly: true })) {
      expect(await expectStored(runtime.stores, agentId)).toBeGreaterThan(0);
    }
  });
});

/** Few cases per test, so that even a busy machine completes them within the timeout. */
const casesOfPart = 15;
const cases = randomCases(300, 20);
const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => part);

describeRuntimes(
  "accounts of random programs",
  (stage) => {
    it.each(parts)("at the newest row the fold equals the stored accounts: part %i", async (part) => {
      const stores = stage().look();
      let number = 0;
      let accounts = 0;
      const property = fc.asyncProperty(turnPlan, async (plan) => {
        const agentId = `root-${number}`;
        number += 1;
        expect(await new RandomPlay(stage(), stores, plan, { agentId, tally: emptyTally() }).play()).toEqual([]);
        accounts += await expectStored(stores, agentId);
      });
      const seed = Number(process.env["TROUPE_SEED"] ?? 20_261_123) + part;
      await fc.assert(property, { numRuns: casesOfPart, seed });
      expect(accounts).toBeGreaterThan(2 * casesOfPart);
    });
  },
  ["memory"],
);
