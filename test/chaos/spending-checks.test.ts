// A check must be seen to find a planted fault before an empty result means anything.
import { beforeAll, expect, it } from "vitest";
import { billedBelow, type Spent, spendingViolations } from "../../chaos/checks/spending-checks.ts";
import type { TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { sidePrefix } from "../../chaos/model/script.ts";
import type { Account } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { calmTree, renumbered, rootOf } from "./calm-tree.ts";

let tree: TreeEvidence;
let billed: Spent;
beforeAll(async () => {
  ({ tree } = await calmTree());
  const [root] = tree.accounts.filter(({ parentId }) => parentId === null);
  billed = { tokens: root?.used.tokens ?? 0, costMicros: root?.used.costMicros ?? 0 };
});

const withAccounts = (change: (account: Account) => Partial<Account>): TreeEvidence => ({
  ...tree,
  accounts: tree.accounts.map((account) => ({ ...account, ...change(account) })),
});

it("finds nothing in an undisturbed run", () => {
  expect(billed.tokens).toBeGreaterThan(0);
  expect(spendingViolations(tree, billed)).toEqual([]);
});

it("finds a refund, and a call that was charged twice", () => {
  const refunded = withAccounts(({ used }) => ({ used: { ...used, tokens: used.tokens - 5 } }));
  expect(spendingViolations(refunded, billed).join("\n")).toMatch(/settlements.*\n.*used, \d+ billed/);
  const doubled = withAccounts(({ used }) => ({ used: { ...used, tokens: used.tokens * 2 } }));
  expect(spendingViolations(doubled, billed).join("\n")).toMatch(/billed or unconfirmed/);
  expect(spendingViolations(tree, { ...billed, tokens: billed.tokens + 1 })).toHaveLength(1);
});

it("finds a missing or duplicate settlement, and one that the accounts do not count as unconfirmed", () => {
  const root = rootOf(tree);
  const withEntries = (entries: readonly Entry[]): TreeEvidence => ({
    ...tree,
    agents: [{ ...root, entries }, ...tree.agents.slice(1)],
  });
  const twice = root.entries.flatMap((entry): Entry[] => (entry.type === "model.responded" ? [entry, entry] : [entry]));
  expect(spendingViolations(withEntries(renumbered(twice)), billed).join("\n")).toMatch(/granted, \d+ settled/);
  const unknown = root.entries.map(
    (entry): Entry =>
      entry.type === "model.responded" ? { ...entry, settlement: { ...entry.settlement, unconfirmed: true } } : entry,
  );
  expect(spendingViolations(withEntries(unknown), billed).join("\n")).toMatch(/what the journal does not know/);
});

it("finds an exceeded limit", () => {
  const over = withAccounts(() => ({ limits: { maxTokens: 1 } }));
  expect(spendingViolations(over, billed).join("\n")).toMatch(/used \d+ tokens/);
});

it("adds up the bill of a tree, including side calls, and of no other tree", () => {
  const line = { at: 1, model: "lead", step: 1, told: [], isLegal: true, inputTokens: 10, outputTokens: 1 };
  const tasks = ["a-1", "a-1/2.0", `${sidePrefix}a-1#1:2:beforeLlm`, `${sidePrefix}a-1~ff#1`, "a-11", "a-1x/2"];
  const log = tasks.map((task) => ({ ...line, task }));
  const price = { inputPerMillion: 1, outputPerMillion: 4 };
  expect(billedBelow(["a-1"], log, price)).toEqual({ tokens: 44, costMicros: 56 });
});
