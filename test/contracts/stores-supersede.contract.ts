import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TURN } from "./names.ts";
import { agentKey, openAgent, ready } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const first = { input: "go", actorId: null, limits: null, ifBusy: "refuse" } as const;
const superseding = { input: "no, this", actorId: "ann", limits: null, ifBusy: "supersede" } as const;
const reason = "superseded by a new message";

export function supersedeContract(subject: () => Stores): void {
  test("a new message aborts the open turn and is queued behind it", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const item = { kind: "turn", key: `turn:${ROOT}#2`, turnId: `${ROOT}#2`, number: 2, input: "no, this" };
    expect(await subject().openTurn(agentKey(), superseding, NOW + 5)).toMatchObject({
      type: "queued",
      turnId: `${ROOT}#2`,
      number: 2,
      item,
      posted: [ROOT],
    });
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: TURN,
      queuedTurnIds: [`${ROOT}#2`],
      abort: { turnId: TURN, by: "ann", reason, at: NOW + 5 },
    });
    const stop = { kind: "abort", turnId: TURN, by: "ann", reason, stopReason: "user_requested", isSuperseded: true };
    expect(await subject().inbox(agentKey())).toMatchObject([{ turnId: TURN }, stop, item]);
    const intents = [toolStarted(), toolStarted({ turnId: `${ROOT}#2` })];
    expect((await owner.commit({ entries: intents })).entries).toMatchObject([
      { type: "intent.refused", reason: "aborted", message: reason },
      { type: "tool.started" },
    ]);
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: `${ROOT}#2`,
      queuedTurnIds: [],
      abort: null,
    });
  });

  test("a superseding message to a free agent opens an ordinary turn", async () => {
    await openAgent(subject());
    const outcome = await subject().openTurn(agentKey(), superseding, NOW);
    expect(outcome).toMatchObject({ type: "opened", turnId: TURN, posted: [ROOT] });
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: TURN, abort: null });
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "turn" }]);
  });

  test("turns that are already queued stay ahead of it", async () => {
    await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await subject().openTurn(agentKey(), { ...first, ifBusy: "queue" }, NOW);
    await subject().openTurn(agentKey(), superseding, NOW);
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: TURN,
      queuedTurnIds: [`${ROOT}#2`, `${ROOT}#3`],
    });
    // A turn that has already ended is not ended again.
    const again = await subject().openTurn(agentKey(), { ...superseding, actorId: null }, NOW + 9);
    expect(again).toMatchObject({ type: "queued", turnId: `${ROOT}#4`, posted: [ROOT] });
    expect(await subject().readAgent(agentKey())).toMatchObject({ abort: { by: "ann", at: NOW } });
    const kinds = (await subject().inbox(agentKey())).map((item) => item.kind);
    expect(kinds).toEqual(["turn", "turn", "abort", "turn", "turn"]);
  });

  test("work below the turn is aborted with it, in the name of the user if no actor is given", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const kid = await openChild(owner, "kid");
    const grand = await openChild(kid, "grand");
    const outcome = await subject().openTurn(agentKey(), { ...superseding, actorId: null }, NOW);
    expect(outcome).toMatchObject({ posted: [ROOT, kid.key.agentId, grand.key.agentId] });
    for (const { key } of [kid, grand]) {
      const stop = { kind: "abort", turnId: `${key.agentId}#1`, by: "user", reason, stopReason: "user_requested" };
      expect(await subject().inbox(key)).toMatchObject([stop]);
      expect((await subject().inbox(key))[0]).not.toHaveProperty("isSuperseded");
    }
    const start = toolStarted({ turnId: `${grand.key.agentId}#1`, accountId: `turn:${grand.key.agentId}#1` });
    expect((await grand.commit({ entries: [start] })).entries).toMatchObject([{ reason: "aborted" }]);
  });

  test("a refused superseding message aborts nothing", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await owner.commit({ entries: [note("gone")], owned: { ...ready, status: "shutdown" } });
    expect(await subject().openTurn(agentKey(), superseding, NOW)).toEqual({ type: "refused", status: "shutdown" });
    expect(await subject().readAgent(agentKey())).toMatchObject({ abort: null, queuedTurnIds: [], nextTurnNumber: 2 });
  });

  test("a plain abort is not flagged as superseding", async () => {
    await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    const abort = { turnId: null, by: "ann", reason: "enough", stopReason: "user_requested" } as const;
    await subject().abort(agentKey(), abort, NOW);
    expect((await subject().inbox(agentKey())).at(-1)).not.toHaveProperty("isSuperseded");
  });
}

export function queuedAbortContract(subject: () => Stores): void {
  const abort = { turnId: `${ROOT}#2`, by: "ann", reason: "not needed", stopReason: "user_requested" } as const;

  test("an aborted queued turn keeps its position, and its abort waits behind it for the owner", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await subject().openTurn(agentKey(), { ...first, ifBusy: "queue" }, NOW);
    expect(await subject().abort(agentKey(), abort, NOW + 3)).toEqual({ type: "marked", posted: [ROOT] });
    expect(await subject().readAgent(agentKey())).toMatchObject({
      openTurnId: TURN,
      queuedTurnIds: [`${ROOT}#2`],
      abort: null,
    });
    const item = { kind: "abort", key: `abort:${ROOT}:${ROOT}#2`, at: NOW + 3, ...abort };
    expect(await subject().inbox(agentKey())).toMatchObject([{ turnId: TURN }, { turnId: `${ROOT}#2` }, item]);

    await owner.commit({ entries: [note("ended")], closedTurnId: TURN, acknowledged: [`turn:${TURN}`] });
    expect(await subject().readAgent(agentKey())).toMatchObject({ openTurnId: `${ROOT}#2`, abort: null });
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "turn", turnId: `${ROOT}#2` }, item]);
    expect(await subject().release(agentKey(), owner.epoch)).toBe(false);
  });

  test("a queued turn is aborted alone: the open turn and its descendants are not notified", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await subject().openTurn(agentKey(), { ...first, ifBusy: "queue" }, NOW);
    const kid = await openChild(owner, "kid");
    await subject().abort(agentKey(), abort, NOW);
    expect(await subject().inbox(kid.key)).toEqual([]);
    const start = toolStarted({ turnId: `${kid.key.agentId}#1`, accountId: `turn:${kid.key.agentId}#1` });
    expect((await kid.commit({ entries: [start] })).entries).toMatchObject([{ type: "tool.started" }]);
  });

  test("once it is open it can be aborted like other turns, and the item is not duplicated", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), first, NOW);
    await subject().openTurn(agentKey(), { ...first, ifBusy: "queue" }, NOW);
    await subject().abort(agentKey(), abort, NOW);
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await subject().abort(agentKey(), abort, NOW)).toEqual({ type: "marked", posted: [] });
    expect(await subject().readAgent(agentKey())).toMatchObject({ abort: { turnId: `${ROOT}#2` } });
    expect((await subject().inbox(agentKey())).filter((item) => item.kind === "abort")).toHaveLength(1);
  });
}
