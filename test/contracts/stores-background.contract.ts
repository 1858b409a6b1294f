import { expect, test } from "vitest";
import { turnIdOf } from "../../src/state/index.ts";
import type { MarkOutcome, Stores } from "../../src/stores/index.ts";
import { note, starting } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { accountOf, agentKey, Owner, openAgent, ready } from "./stores-fixtures.ts";
import { openChild, spawning } from "./tree-fixtures.ts";

/** A background child of the root's first turn, acquired and started. */
async function openBackground(parent: Owner, name: string): Promise<Owner> {
  const { entry, order } = spawning(parent, name);
  const identity = { ...order.identity, background: { onEnd: "wake" } } as const;
  await parent.commit({ entries: [entry], spawns: [{ ...order, identity }] });
  const child = await new Owner(parent.stores, agentKey(identity.agentId)).acquire();
  const { turnId } = order.turn;
  const turn = accountOf(`turn:${turnId}`, {}, { agentId: child.key.agentId, turnId, parentId: order.account.id });
  await child.commit({
    entries: [starting],
    owned: ready,
    acknowledged: [order.turn.key],
    moves: [{ type: "open", account: turn }],
  });
  return child;
}

function postedBy(outcome: MarkOutcome): readonly string[] {
  return outcome.type === "notFound" ? [] : outcome.posted;
}

const byPerson = { by: "ann", reason: "enough", stopReason: "user_requested" } as const;

export function backgroundContract(subject: () => Stores): void {
  const account = async (id: string) => (await subject().accounts(TENANT, ROOT)).find((one) => one.id === id);

  test("an abort of the turn reaches its own children and no background children; an abort of the agent reaches all", async () => {
    const root = await openAgent(subject());
    const opened = await subject().openTurn(
      root.key,
      { input: "go", actorId: null, limits: null, ifBusy: "refuse" },
      NOW,
    );
    expect(opened).toMatchObject({ type: "opened", turnId: TURN });
    const bound = await openChild(root, "bound");
    const free = await openBackground(root, "free");
    const posted = postedBy(await subject().abort(root.key, { turnId: TURN, ...byPerson }, NOW));
    expect(posted.toSorted()).toEqual([ROOT, bound.key.agentId].toSorted());
    expect((await subject().readAgent(free.key))?.abort).toBeNull();
    const { entry, order } = spawning(free, "below");
    const granted = await free.commit({ entries: [entry], spawns: [order] });
    expect(granted.entries).toMatchObject([{ type: "child.spawned" }]);
    await subject().abort(root.key, { turnId: null, ...byPerson }, NOW);
    expect((await subject().readAgent(free.key))?.abort).toMatchObject({ turnId: `${free.key.agentId}#1` });
  });

  test("the accounts of children that go on leave the turn's account with their descendants, and share its remaining budget", async () => {
    const root = await openAgent(subject(), { turnBudget: { maxTokens: 1_000, maxSeconds: 60 } });
    const free = await openBackground(root, "free");
    const accountId = `turn:${free.key.agentId}#1`;
    await free.commit({ moves: [{ type: "activity", accountId, isActive: true }] });
    const childAccountIds = [`agent:${free.key.agentId}`];
    const { timers } = await root.commit({
      entries: [note("the end")],
      moves: [{ type: "background", accountId: `turn:${TURN}`, childAccountIds }],
    });
    expect(await account(`turn:${TURN}`)).toMatchObject({ activeCount: 0, activeSince: null });
    expect(await account(`background:${TURN}`)).toMatchObject({
      parentId: `agent:${ROOT}`,
      limits: { maxTokens: 1_000, maxActiveMs: 60_000 },
      activeCount: 1,
    });
    expect(await account(`agent:${ROOT}`)).toMatchObject({ activeCount: 1 });
    expect(await account(`agent:${free.key.agentId}`)).toMatchObject({ parentId: `background:${TURN}` });
    expect(timers).toMatchObject([
      { kind: "limit", limit: "maxActiveMs", accountId: `background:${TURN}`, agentId: ROOT },
    ]);
  });

  test("an abort of an account ends only the turns that spend under it, not the open turn's children or other accounts", async () => {
    const root = await openAgent(subject(), { turnBudget: { maxTokens: 1_000 } });
    await subject().openTurn(root.key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const bound = await openChild(root, "bound");
    const moved = await openBackground(root, "moved");
    const other = await openBackground(root, "other");
    const below = await openChild(moved, "below");
    const childAccountIds = [`agent:${moved.key.agentId}`];
    const move = { type: "background", accountId: `turn:${TURN}`, childAccountIds } as const;
    await root.commit({ entries: [note("the end")], moves: [move] });
    const command = {
      turnId: null,
      accountId: `background:${TURN}`,
      by: ROOT,
      reason: "time",
      stopReason: "time_limit",
    } as const;
    const outcome = await subject().abort(root.key, command, NOW);
    expect(outcome).toMatchObject({ type: "marked" });
    expect(postedBy(outcome).toSorted()).toEqual([moved.key.agentId, below.key.agentId].toSorted());
    for (const { key } of [bound, other]) expect((await subject().readAgent(key))?.abort).toBeNull();
    expect(await subject().inbox(moved.key)).toMatchObject([{ kind: "abort", stopReason: "time_limit" }]);
    expect(await subject().abort(root.key, command, NOW)).toEqual({ type: "unchanged", posted: [] });
  });

  test("a commit that requests a turn opens one where none is open, under the remaining budget of the child's turn", async () => {
    const root = await openAgent(subject(), { turnBudget: { maxTokens: 1_000 } });
    const free = await openBackground(root, "free");
    const childAccountIds = [`agent:${free.key.agentId}`];
    await root.commit({
      entries: [note("the end")],
      moves: [{ type: "background", accountId: `turn:${TURN}`, childAccountIds }],
    });
    const wake = { childId: free.key.agentId, actorId: "ann" };
    const { nextTurnNumber = 1 } = (await subject().readAgent(root.key)) ?? {};
    expect((await root.commit({ entries: [note("told")], wake })).posted).toEqual([ROOT]);
    const turnId = turnIdOf(ROOT, nextTurnNumber);
    expect(await subject().readAgent(root.key)).toMatchObject({
      openTurnId: turnId,
      nextTurnNumber: nextTurnNumber + 1,
    });
    expect(await subject().inbox(root.key)).toMatchObject([
      {
        kind: "turn",
        turnId,
        input: null,
        actorId: "ann",
        wokenBy: free.key.agentId,
        parentAccountId: `background:${TURN}`,
      },
    ]);
    // An open turn already sees the item that a new turn would be opened for.
    expect((await root.commit({ entries: [note("told again")], wake })).posted).toEqual([]);
    expect(await subject().inbox(root.key)).toHaveLength(1);
  });

  test("a timer in a batch is set with the batch", async () => {
    const root = await openAgent(subject());
    const timer = {
      kind: "wait",
      tenant: TENANT,
      agentId: ROOT,
      id: "wait:c",
      dueAt: NOW + 5,
      turnId: TURN,
      callId: "c",
    } as const;
    expect((await root.commit({ entries: [note("waits")], timers: [timer] })).timers).toEqual([timer]);
    expect(await subject().dueTimers(NOW + 4, 10)).toEqual([]);
    expect(await subject().dueTimers(NOW + 5, 10)).toEqual([timer]);
    await root.commit({ clearedTimers: [timer.id] });
    expect(await subject().dueTimers(NOW + 5, 10)).toEqual([]);
  });

  test("a first turn that is requested twice is opened once", async () => {
    const root = await openAgent(subject(), {});
    const command = { input: "go", actorId: null, limits: null, ifBusy: "refuse", isFirst: true } as const;
    expect(await subject().openTurn(root.key, command, NOW)).toMatchObject({ type: "opened", turnId: TURN });
    expect(await subject().openTurn(root.key, command, NOW)).toEqual({ type: "given", turnId: TURN });
    expect(await subject().inbox(root.key)).toHaveLength(1);
  });

  test("an item posted to an agent that was shut down wakes no process; the agent sees it when it starts again", async () => {
    const root = await openAgent(subject());
    const free = await openBackground(root, "free");
    await root.commit({ entries: [note("sleeps")], owned: { ...ready, status: "shutdown" } });
    const item = { kind: "resume", key: "resume:desk", at: NOW, by: "ann" } as const;
    expect((await free.commit({ posts: [{ agentId: ROOT, item }], entries: [note("ended")] })).posted).toEqual([]);
    expect(await subject().inbox(root.key)).toEqual([item]);
  });
}
