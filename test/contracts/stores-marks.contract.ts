import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { note, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TURN } from "./names.ts";
import { agentKey, type Owner, openAgent, ready } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const abort = { turnId: null, by: "ann", reason: "enough", stopReason: "user_requested" } as const;

interface Family {
  readonly root: Owner;
  readonly kid: Owner;
  readonly grand: Owner;
}

/** Three generations, each with an open turn. */
async function openFamily(stores: Stores): Promise<Family> {
  const root = await openAgent(stores);
  await stores.openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
  const kid = await openChild(root, "kid");
  const grand = await openChild(kid, "grand");
  return { root, kid, grand };
}

async function kindsIn(stores: Stores, owner: Owner): Promise<string[]> {
  return (await stores.inbox(owner.key)).map((item) => item.kind).filter((kind) => kind !== "turn");
}

export function marksContract(subject: () => Stores): void {
  test("pause and resume reach the agent and every descendant that is not shut down", async () => {
    const { root, kid, grand } = await openFamily(subject());
    const everyone = [root, kid, grand].map((owner) => owner.key.agentId);
    expect(await subject().pause(agentKey(), "ann", NOW)).toEqual({ type: "marked", posted: everyone });
    for (const owner of [root, kid, grand]) expect(await kindsIn(subject(), owner)).toEqual(["pause"]);
    await kid.commit({ entries: [note("gone")], owned: { ...ready, status: "shutdown" } });
    const resumed = await subject().resume(agentKey(), "ann", NOW);
    expect(resumed).toEqual({ type: "marked", posted: [ROOT, grand.key.agentId] });
    expect(await kindsIn(subject(), grand)).toEqual(["pause", "resume"]);
    expect(await kindsIn(subject(), kid)).toEqual(["pause"]);
    expect(await subject().readAgent(agentKey())).toMatchObject({ pause: null });
  });

  test("a second pause, resume or abort changes nothing and posts nothing", async () => {
    await openFamily(subject());
    expect(await subject().resume(agentKey(), "ann", NOW)).toEqual({ type: "unchanged", posted: [] });
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().pause(agentKey(), "bob", NOW + 1)).toEqual({ type: "unchanged", posted: [] });
    expect(await subject().readAgent(agentKey())).toMatchObject({ pause: { by: "ann", at: NOW } });
    await subject().abort(agentKey(), abort, NOW);
    expect(await subject().abort(agentKey(), abort, NOW)).toEqual({ type: "unchanged", posted: [] });
    expect(await subject().abort(agentKey(), { ...abort, turnId: TURN }, NOW)).toEqual({
      type: "unchanged",
      posted: [],
    });
  });

  test("pause, resume and pause within one millisecond are three items, in that order", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    await subject().resume(agentKey(), "ann", NOW);
    await subject().pause(agentKey(), "ann", NOW);
    expect(await kindsIn(subject(), owner)).toEqual(["pause", "resume", "pause"]);
  });

  test("an abort of a turn names it to its agent, and reaches only the work below that turn", async () => {
    const { root, kid, grand } = await openFamily(subject());
    const turnId = TURN;
    const posted = [root, kid, grand].map((owner) => owner.key.agentId);
    expect(await subject().abort(kid.key, { ...abort, turnId: `${kid.key.agentId}#9` }, NOW)).toEqual({
      type: "unchanged",
      posted: [],
    });
    expect(await subject().abort(agentKey(), { ...abort, turnId }, NOW)).toEqual({ type: "marked", posted });
    const item = { kind: "abort", by: "ann", reason: "enough", stopReason: "user_requested" };
    expect(await subject().inbox(agentKey())).toMatchObject([{ kind: "turn" }, { ...item, turnId }]);
    expect(await subject().inbox(grand.key)).toMatchObject([{ ...item, turnId: `${grand.key.agentId}#1` }]);
  });

  test("the abort flag of a turn is removed with the turn, and the next turn is not aborted", async () => {
    const { root, kid } = await openFamily(subject());
    await subject().openTurn(agentKey(), { input: "next", actorId: null, limits: null, ifBusy: "queue" }, NOW);
    await subject().abort(agentKey(), { ...abort, turnId: TURN }, NOW);
    await root.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await subject().readAgent(agentKey())).toMatchObject({ abort: null, openTurnId: `${ROOT}#2` });
    // The child belongs to the first turn: the second turn's abort does not concern it.
    await kid.commit({ entries: [note("took the abort")], acknowledged: [`abort:${ROOT}:${kid.key.agentId}#1`] });
    const second = await subject().abort(agentKey(), { ...abort, turnId: `${ROOT}#2` }, NOW);
    expect(second).toEqual({ type: "marked", posted: [ROOT] });
  });

  test("an abort of an agent reaches all work below it and leaves agents at rest alone", async () => {
    const { root, kid, grand } = await openFamily(subject());
    await kid.commit({ entries: [note("ended")], closedTurnId: `${kid.key.agentId}#1` });
    const outcome = await subject().abort(agentKey(), abort, NOW);
    expect(outcome).toEqual({ type: "marked", posted: [root.key.agentId, grand.key.agentId] });
    expect(await kindsIn(subject(), kid)).toEqual([]);
    expect(await subject().inbox(grand.key)).toMatchObject([{ kind: "abort", turnId: `${grand.key.agentId}#1` }]);
    expect(await subject().abort(agentKey(), abort, NOW)).toEqual({ type: "unchanged", posted: [] });
  });

  test("an abort of an agent also stops work that its earlier turns left running", async () => {
    const { root, kid } = await openFamily(subject());
    await root.commit({ entries: [note("ended")], closedTurnId: TURN });
    const start = toolStarted({ turnId: `${kid.key.agentId}#1`, accountId: `turn:${kid.key.agentId}#1` });
    expect((await kid.commit({ entries: [start] })).entries).toMatchObject([{ type: "tool.started" }]);
    await subject().abort(agentKey(), abort, NOW);
    expect((await kid.commit({ entries: [start] })).entries).toMatchObject([{ reason: "aborted" }]);
  });

  test("an abort removes a pause of the same agent so that its turn can end", async () => {
    await openFamily(subject());
    await subject().pause(agentKey(), "ann", NOW);
    await subject().abort(agentKey(), abort, NOW);
    expect(await subject().readAgent(agentKey())).toMatchObject({ pause: null, abort: { turnId: TURN } });
  });

  test("an abort that removes a pause resumes every agent that the pause held, whether or not it ends their turns", async () => {
    const { root, kid, grand } = await openFamily(subject());
    const idle = await openChild(root, "idle");
    const own = await openChild(root, "own");
    await idle.commit({ entries: [note("ended")], closedTurnId: `${idle.key.agentId}#1` });
    await own.commit({ entries: [note("ended")], closedTurnId: `${own.key.agentId}#1` });
    await subject().pause(own.key, "bob", NOW);
    await subject().pause(agentKey(), "ann", NOW);
    await subject().abort(agentKey(), { ...abort, turnId: TURN }, NOW);
    for (const owner of [root, kid, grand])
      expect(await kindsIn(subject(), owner)).toEqual(["pause", "abort", "resume"]);
    expect(await kindsIn(subject(), idle)).toEqual(["pause", "resume"]);
    expect(await kindsIn(subject(), own)).toEqual(["pause", "pause"]);
    expect(await subject().readAgent(own.key)).toMatchObject({ pause: { by: "bob" } });
  });

  test("an agent's own pause outlasts that of an ancestor, and vice versa", async () => {
    const { kid, grand } = await openFamily(subject());
    await subject().pause(agentKey(), "ann", NOW);
    await subject().pause(kid.key, "bob", NOW);
    expect(await subject().resume(kid.key, "bob", NOW)).toEqual({ type: "marked", posted: [] });
    await subject().pause(kid.key, "bob", NOW);
    expect(await subject().resume(agentKey(), "ann", NOW)).toEqual({ type: "marked", posted: [ROOT] });
    expect(await subject().resume(kid.key, "bob", NOW)).toEqual({
      type: "marked",
      posted: [kid.key.agentId, grand.key.agentId],
    });
  });

  test("an abort of an agent without an open turn changes nothing and posts nothing", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    expect(await subject().abort(agentKey(), abort, NOW)).toEqual({ type: "unchanged", posted: [] });
    expect(await kindsIn(subject(), owner)).toEqual(["pause"]);
    expect(await subject().readAgent(agentKey())).toMatchObject({ pause: { by: "ann" } });
  });

  test("an agent that was shut down with an open turn finds its abort at the next start, and no process is woken for it", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    await owner.commit({ entries: [note("gone")], owned: { ...ready, status: "shutdown" } });
    expect(await subject().abort(agentKey(), abort, NOW)).toEqual({ type: "marked", posted: [] });
    expect(await kindsIn(subject(), owner)).toEqual(["pause", "abort"]);
  });

  test("a queued turn is aborted in the queue, and the open one goes on", async () => {
    const { root } = await openFamily(subject());
    await subject().openTurn(agentKey(), { input: "next", actorId: null, limits: null, ifBusy: "queue" }, NOW);
    const turnId = `${ROOT}#2`;
    expect(await subject().abort(agentKey(), { ...abort, turnId }, NOW)).toEqual({ type: "marked", posted: [ROOT] });
    expect(await subject().abort(agentKey(), { ...abort, turnId }, NOW)).toEqual({ type: "unchanged", posted: [] });
    expect((await subject().inbox(agentKey())).at(-1)).toMatchObject({ kind: "abort", turnId });
    expect((await root.commit({ entries: [toolStarted()] })).entries).toMatchObject([{ type: "tool.started" }]);
  });

  test("an unknown agent is not found", async () => {
    for (const outcome of [
      await subject().pause(agentKey("nobody"), "ann", NOW),
      await subject().resume(agentKey("nobody"), "ann", NOW),
      await subject().abort(agentKey("nobody"), abort, NOW),
    ]) {
      expect(outcome).toEqual({ type: "notFound" });
    }
  });
}
