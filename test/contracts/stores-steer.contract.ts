import { expect, test } from "vitest";
import type { SteerItem } from "../../src/state/index.ts";
import type { SteerCommand, SteerOutcome, Stores } from "../../src/stores/index.ts";
import { type MakeEntry, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { agentKey, here, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const first = { input: "go", actorId: null, limits: null, ifBusy: "refuse" } as const;
const key = { text: "k", hash: "h" } as const;

function steering(more: Partial<SteerCommand> = {}): SteerCommand {
  return { steerId: "one", turn: { input: "use blue", actorId: "ann", limits: null }, ...more };
}

const keyed = steering({ steerId: "k", turn: { input: "use blue", actorId: null, limits: null, key } });

function steered(): MakeEntry {
  const message = { messageId: `${TURN}:in:1`, content: "use blue", actorId: null } as const;
  return (envelope) => ({
    type: "turn.steered",
    ...envelope,
    turnId: TURN,
    step: 2,
    steerId: "k",
    inputKey: key,
    ...message,
  });
}

function itemOf(outcome: SteerOutcome): SteerItem {
  if (outcome.type !== "posted") throw new Error(`expected a posted input, not ${outcome.type}`);
  return outcome.item;
}

/** Inputs for an open turn: invariants of `steer.ts`. */
export function steerContract(subject: () => Stores): void {
  test("an input is posted to the open turn and changes nothing else", async () => {
    await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const before = await subject().readAgent(agentKey());
    const outcome = await subject().steer(agentKey(), steering(), NOW + 1);
    expect(outcome).toMatchObject({ type: "posted", turnId: TURN, posted: [ROOT] });
    expect(await subject().inbox(agentKey())).toMatchObject([
      { kind: "turn" },
      { kind: "steer", turnId: TURN, steerId: "one", input: "use blue", actorId: "ann", at: NOW + 1 },
    ]);
    expect(await subject().readAgent(agentKey())).toEqual(before);
    const posted = { steer: "posted", turnId: TURN, step: null };
    expect(await subject().readSteer(agentKey(), "one")).toMatchObject(posted);
    expect(await subject().readSteer(agentKey(), "two")).toBeUndefined();
  });

  test("without an open turn, and for another turn than the open one, an input opens a turn", async () => {
    await openAgent(subject());
    expect(await subject().steer(agentKey(), steering(), NOW)).toMatchObject({ type: "opened", turnId: TURN });
    const other = await subject().steer(agentKey(), steering({ turnId: `${ROOT}#7` }), NOW);
    expect(other).toMatchObject({ type: "queued", turnId: `${ROOT}#2`, item: { kind: "turn", input: "use blue" } });
    const own = await subject().steer(agentKey(), steering({ turnId: TURN }), NOW);
    expect(own).toMatchObject({ type: "posted", turnId: TURN });
  });

  test("the commit that takes an input in records where it went", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const item = itemOf(await subject().steer(agentKey(), keyed, NOW));
    await owner.commit({ entries: [steered()], acknowledged: [item.key] });
    expect(await subject().readSteer(agentKey(), "k")).toMatchObject({ steer: "taken", turnId: TURN, step: 2 });
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "turn" }]);
  });

  test("the commit that defers an input opens its turn behind the queued ones, once", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await subject().openTurn(agentKey(), { ...first, ifBusy: "queue" }, NOW);
    const item = itemOf(await subject().steer(agentKey(), keyed, NOW));
    const commit = await owner.commit({ entries: [], acknowledged: [item.key], deferred: [item] });
    expect(commit.posted).toContain(ROOT);
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: TURN,
      queuedTurnIds: [`${ROOT}#2`, `${ROOT}#3`],
      nextTurnNumber: 4,
    });
    const turn = { kind: "turn", turnId: `${ROOT}#3`, input: "use blue", steerId: "k", turnKey: key };
    expect((await subject().inbox(agentKey())).at(-1)).toMatchObject(turn);
    expect(await subject().readSteer(agentKey(), "k")).toMatchObject({ turnId: `${ROOT}#3` });
    expect(await subject().turns({ tenant: TENANT })).toContainEqual(
      expect.objectContaining({ turnId: `${ROOT}#3`, key: "k", status: "queued" }),
    );
  });

  test("an input that is deferred with the turn's end opens the next turn", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const item = itemOf(await subject().steer(agentKey(), steering(), NOW));
    await owner.commit({
      entries: [note("ended")],
      closedTurnId: TURN,
      acknowledged: [`turn:${TURN}`, item.key],
      deferred: [item],
    });
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: `${ROOT}#2`, queuedTurnIds: [] });
    expect(await subject().readSteer(agentKey(), "one")).toMatchObject({ steer: "deferred", turnId: `${ROOT}#2` });
  });

  test("a key is one input, whether it was posted, taken in or has opened a turn", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { ...first, key: { text: "t", hash: "t" } }, NOW);
    const item = itemOf(await subject().steer(agentKey(), keyed, NOW));
    const other = { ...keyed, turn: { ...keyed.turn, input: "use red", key: { text: "k", hash: "other" } } };
    const again = async (): Promise<void> => {
      expect(await subject().steer(agentKey(), keyed, NOW)).toMatchObject({ type: "known", turnId: TURN });
      expect(await subject().steer(agentKey(), other, NOW)).toMatchObject({ type: "conflict", turnId: TURN });
      const turn = { ...first, key } as const;
      expect(await subject().openTurn(agentKey(), turn, NOW)).toMatchObject({ type: "known", turnId: TURN });
    };
    await again();
    await owner.commit({ entries: [steered()], acknowledged: [item.key] });
    await again();
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN, acknowledged: [`turn:${TURN}`] });
    await again();
    const ofTurn = { ...keyed, steerId: "t", turn: { ...keyed.turn, key: { text: "t", hash: "other" } } };
    expect(await subject().steer(agentKey(), ofTurn, NOW)).toMatchObject({ type: "conflict", turnId: TURN });
    expect(await subject().inbox(agentKey())).toEqual([]);
  });

  test("a process that has lost the lease neither takes an input in nor defers it", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const item = itemOf(await subject().steer(agentKey(), steering(), NOW));
    const late = {
      ...owner.batch({ entries: [], acknowledged: [item.key], deferred: [item] }),
      epoch: owner.epoch - 1,
    };
    expect(await subject().commit([late], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await subject().readSteer(agentKey(), "one")).toMatchObject({ steer: "posted" });
    expect(await subject().inbox(agentKey())).toHaveLength(2);
  });

  test("a subagent's turn takes an input without a key", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const kid = await openChild(owner, "kid");
    const outcome = await subject().steer(kid.key, steering(), NOW);
    expect(outcome).toMatchObject({ type: "posted", turnId: `${kid.key.agentId}#1` });
    await expect(subject().steer(kid.key, keyed, NOW)).rejects.toMatchObject({ code: "unsupported" });
  });

  test("unknown agents, and those that were not started, are refused", async () => {
    expect(await subject().steer(agentKey("nobody"), steering(), NOW)).toMatchObject({ type: "notFound" });
    expect(await subject().readSteer(agentKey("nobody"), "one")).toBeUndefined();
  });

  test("an exported tree keeps its inputs and their keys", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const item = itemOf(await subject().steer(agentKey(), keyed, NOW));
    await owner.commit({ entries: [steered()], acknowledged: [item.key] });
    await subject().steer(agentKey(), steering(), NOW);
    const tree = await subject().exportTree(TENANT, ROOT);
    if (!tree) throw new Error("the tree is stored");
    await subject().importTree(tree, here.processId);
    expect(await subject().readSteer(agentKey(), "k")).toMatchObject({ steer: "taken", step: 2 });
    expect(await subject().readSteer(agentKey(), "one")).toMatchObject({ steer: "posted" });
  });
}
