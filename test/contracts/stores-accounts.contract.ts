import { expect, test } from "vitest";
import type { Account } from "../../src/budget/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { modelRequested, note, reservationIn, settled, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { accountOf, identityOf, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

async function accountsOf(stores: Stores): Promise<Record<string, Account>> {
  const accounts = await stores.accounts(TENANT, ROOT);
  return Object.fromEntries(accounts.map((account) => [account.id, account]));
}

export function accountsContract(subject: () => Stores): void {
  test("a tree's accounts are listed with their limits, without those of another tree", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1000 } });
    await openChild(owner, "kid", { maxSteps: 3 });
    await openAgent(subject(), { agentId: "other" });
    const accounts = await accountsOf(subject());
    expect(Object.keys(accounts).toSorted()).toEqual(
      [`agent:${ROOT}`, `turn:${TURN}`, `agent:${ROOT}~kid`, `turn:${ROOT}~kid#1`].toSorted(),
    );
    expect(accounts[`agent:${ROOT}~kid`]).toMatchObject({ parentId: `turn:${TURN}`, limits: { maxSteps: 3 } });
    expect(await subject().accounts("nobody", ROOT)).toEqual([]);
  });

  test("opening an existing account changes nothing", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxTokens: 1000 } });
    await owner.commit({ entries: [modelRequested()] });
    const again = accountOf(`turn:${TURN}`, { maxTokens: 9 }, { turnId: TURN });
    await owner.commit({ entries: [note("again")], moves: [{ type: "open", account: again }] });
    expect((await accountsOf(subject()))[`turn:${TURN}`]).toMatchObject({
      limits: { maxTokens: 1000 },
      reserved: { tokens: 500 },
    });
  });

  test("a settlement replaces the reservation by the real usage, on the account and its ancestors", async () => {
    const owner = await openAgent(subject());
    const reservation = reservationIn(await owner.commit({ entries: [modelRequested()] }));
    await owner.commit(settled(reservation, { tokens: 120, costMicros: 7 }));
    for (const account of Object.values(await accountsOf(subject()))) {
      expect(account).toMatchObject({
        used: { steps: 1, treeSteps: 1, tokens: 120, costMicros: 7 },
        reserved: { tokens: 0, costMicros: 0 },
        unconfirmed: { tokens: 0, costMicros: 0 },
      });
    }
  });

  test("a settlement counts for its model, on the account and its ancestors", async () => {
    const owner = await openAgent(subject());
    const first = reservationIn(await owner.commit({ entries: [modelRequested()] }));
    const usage = {
      inputTokens: 100,
      outputTokens: 20,
      cachedInputTokens: 40,
      cacheWriteTokens: 30,
      reasoningTokens: 5,
    };
    await owner.commit(settled(first, { tokens: 120, costMicros: 7, usage }));
    const second = reservationIn(await owner.commit({ entries: [modelRequested({ model: "other" })] }));
    await owner.commit(settled(second, { tokens: 500, unconfirmed: true }));
    for (const { models } of Object.values(await accountsOf(subject()))) {
      expect(models).toMatchObject({
        m: { calls: 1, ...usage, costMicros: 7, estimatedCalls: 0, unconfirmedCalls: 0 },
        other: { calls: 1, inputTokens: 100, outputTokens: 400, unconfirmedCalls: 1 },
      });
    }
  });

  test("a call of unknown usage is settled in full and marked as unconfirmed", async () => {
    const owner = await openAgent(subject());
    const reservation = reservationIn(await owner.commit({ entries: [modelRequested()] }));
    await owner.commit(settled(reservation, { tokens: reservation.tokens, unconfirmed: true }));
    expect((await accountsOf(subject()))[`agent:${ROOT}`]).toMatchObject({
      used: { tokens: 500 },
      unconfirmed: { tokens: 500 },
    });
  });

  test("a provider that reports more usage than reserved is recorded, and the next call is refused", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1000 } });
    const reservation = reservationIn(await owner.commit({ entries: [modelRequested()] }));
    await owner.commit(settled(reservation, { tokens: 5000 }));
    expect((await accountsOf(subject()))[`turn:${TURN}`]).toMatchObject({ used: { tokens: 5000 } });
    const next = await owner.commit({ entries: [modelRequested()] });
    expect(next.entries).toMatchObject([
      { type: "intent.refused", reason: "budget", limit: "maxTokens", used: 5000, max: 1000 },
    ]);
  });

  test("calls count for their own agent, and in the tree's amounts of all ancestors", async () => {
    const owner = await openAgent(subject());
    const child = await openChild(owner, "kid");
    const { agentId } = child.key;
    await child.commit({ entries: [toolStarted({ turnId: `${agentId}#1`, accountId: `turn:${agentId}#1` })] });
    const accounts = await accountsOf(subject());
    expect(accounts[`agent:${agentId}`]).toMatchObject({ used: { toolCalls: 1, treeToolCalls: 1 } });
    // Spawning the child was one of the parent's calls.
    expect(accounts[`turn:${TURN}`]).toMatchObject({ used: { toolCalls: 1, treeToolCalls: 2 } });
  });

  test("a warning is issued once, when four fifths of a limit are used", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxTokens: 1000 } });
    const use = async (tokens: number) => {
      const reservation = reservationIn(
        await owner.commit({
          entries: [modelRequested({ promptTokens: 1, outputTokens: 10, minimumOutputTokens: 1 })],
        }),
      );
      return (await owner.commit(settled(reservation, { tokens }))).warnings;
    };
    expect(await use(799)).toEqual([]);
    expect(await use(1)).toMatchObject([{ accountId: `turn:${TURN}`, limit: "maxTokens", used: 800, max: 1000 }]);
    expect(await use(50)).toEqual([]);
  });

  test("an agent can be created with a lifetime account, once", async () => {
    const account = accountOf(`agent:${ROOT}`, { maxCost: 1 });
    const identity = identityOf(ROOT, { accountId: account.id });
    expect(await subject().createAgent(identity, account)).toMatchObject({ created: true, record: { agentId: ROOT } });
    const again = accountOf(`agent:${ROOT}`, { maxCost: 9 });
    const changed = identityOf(ROOT, { accountId: account.id, createdAt: NOW + 1 });
    expect(await subject().createAgent(changed, again)).toMatchObject({ created: false, record: { createdAt: NOW } });
    expect((await accountsOf(subject()))[account.id]).toMatchObject({ limits: { maxCostMicros: 1_000_000 } });
  });
}
