import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { agentKey, openAgent } from "./stores-fixtures.ts";
import { spawning } from "./tree-fixtures.ts";

const childKey = agentKey(`${ROOT}~kid`);

export function spawnContract(subject: () => Stores): void {
  test("a granted spawn creates the child, its account and its first turn", async () => {
    const owner = await openAgent(subject());
    const { entry, order } = spawning(owner, "kid", { maxTokens: 500 });
    const outcome = await owner.commit({ entries: [entry], spawns: [order] });
    expect(outcome).toMatchObject({ entries: [{ type: "child.spawned" }], posted: [childKey.agentId] });
    expect(await subject().readAgent(childKey)).toMatchObject({
      parentAgentId: ROOT,
      status: "created",
      openTurnId: `${childKey.agentId}#1`,
      nextTurnNumber: 2,
    });
    expect(await subject().inbox(childKey)).toEqual([order.turn]);
    const accounts = await subject().accounts(TENANT, ROOT);
    expect(accounts.find((account) => account.agentId === childKey.agentId)).toMatchObject({
      parentId: `turn:${TURN}`,
    });
  });

  test("spawning twice counts as one spawn, even if no further call is allowed", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxToolCalls: 1 } });
    const first = spawning(owner, "kid");
    await owner.commit({ entries: [first.entry], spawns: [first.order] });
    const second = spawning(owner, "kid");
    const again = await owner.commit({ entries: [second.entry], spawns: [second.order] });
    expect(again.entries).toMatchObject([{ type: "child.spawned" }]);
    expect(await subject().inbox(childKey)).toHaveLength(1);
    expect(await subject().listAgents({ tenant: TENANT })).toHaveLength(2);
    const third = spawning(owner, "other");
    const refused = await owner.commit({ entries: [third.entry], spawns: [third.order] });
    expect(refused.entries).toMatchObject([{ reason: "budget", limit: "maxToolCalls" }]);
  });

  test("a refused spawn creates nothing, and the facts in its batch are stored", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    const { entry, order } = spawning(owner, "kid");
    const outcome = await owner.commit({ entries: [entry, note("fact")], spawns: [order] });
    expect(outcome.entries).toMatchObject([
      { type: "intent.refused", intent: "child.spawned", reason: "paused" },
      { type: "warning", message: "fact" },
    ]);
    expect(outcome.posted).toEqual([]);
    expect(await subject().readAgent(childKey)).toBeUndefined();
    expect(await subject().accounts(TENANT, ROOT)).toHaveLength(2);
  });

  test("an item that a child posts to its parent arrives in the parent's inbox", async () => {
    const owner = await openAgent(subject());
    const { entry, order } = spawning(owner, "kid");
    await owner.commit({ entries: [entry], spawns: [order] });
    const child = await subject().acquire(childKey, "here", 1000, NOW);
    if (child.type !== "acquired") throw new Error("the child is free");
    const item = {
      kind: "child.ended",
      key: `child.ended:${order.turn.turnId}`,
      at: NOW,
      parentTurnId: TURN,
      step: 1,
      callId: null,
      childId: childKey.agentId,
      childTurnId: order.turn.turnId,
      outcome: "completed",
      stopReason: "completed",
      text: "done",
      error: null,
    } as const;
    const batch = { ...owner.batch(), id: "c1", key: childKey, epoch: child.epoch, expectedSeq: 0 };
    const posts = [{ agentId: ROOT, item }];
    expect(await subject().commit([{ ...batch, posts }], NOW)).toMatchObject([{ type: "committed", posted: [ROOT] }]);
    expect(await subject().inbox(agentKey())).toEqual([item]);
  });
}
