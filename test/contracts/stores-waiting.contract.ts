import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { type MakeEntry, modelRequested, note, reservationIn, settled } from "./entry-fixtures.ts";
import { call, only, openLine, waiting } from "./line-fixtures.ts";
import { NOW } from "./names.ts";
import { agentKey, type Owner } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

/** A side call of a tool of the owner's first turn. */
function sideCall({ key: { agentId } }: Owner, tokens: number): MakeEntry {
  const turnId = `${agentId}#1`;
  const key = `${turnId}:${turnId}:1:0:0`;
  const ask = { accountId: `turn:${turnId}`, agentId, key, promptTokens: 100, promptBound: 100, opensStep: false };
  const asked = modelRequested({ ...ask, outputTokens: tokens - 100 });
  return (envelope) => {
    const entry = asked(envelope);
    if (entry.type !== "model.requested") throw new Error("a model call is asked for");
    const { seq, at, epoch, step, model, promptHash, reservation } = entry;
    const common = { seq, at, epoch, turnId, step, model, promptHash, reservation };
    return { type: "generate.requested", ...common, ask: entry.ask, run: `${turnId}:1:0`, index: 0 };
  };
}

function toolSettled({ key: { agentId } }: Owner): MakeEntry {
  return (envelope) => ({
    type: "tool.settled",
    ...envelope,
    turnId: `${agentId}#1`,
    step: 1,
    callId: `${agentId}#1:1:0`,
    name: "search",
    outcome: "error",
    messageId: "result",
    durationMs: 1,
    error: null,
    artifactId: null,
  });
}

export function waitingContract(subject: () => Stores): void {
  test("waiting agents are notified in order, and only those whose call fits", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b", "c"]);
    expect((await owner.commit(settled(taken, { tokens: 0 }))).posted).toEqual(ids.slice(0, 2));
    expect(await subject().inbox(agentKey(ids[2]))).toEqual([]);
    const [a, b, c] = [only(children, 0), only(children, 1), only(children, 2)];
    const granted = reservationIn(await a.commit({ entries: [call(a, 500)] }));
    expect((await b.commit({ entries: [call(b, 500)] })).entries).toMatchObject([{ type: "model.requested" }]);
    expect((await a.commit(settled(granted, { tokens: 0 }))).posted).toEqual([ids[2]]);
    expect((await c.commit({ entries: [call(c, 500)] })).entries).toMatchObject([{ type: "model.requested" }]);
    expect(await waiting(subject())).toEqual([]);
  });

  test("an agent is notified once, and keeps its position when it asks again", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b"], 900);
    const [a] = [only(children, 0)];
    expect((await a.commit({ entries: [call(a, 950)] })).entries).toMatchObject([{ reason: "mustWait" }]);
    expect(await waiting(subject())).toEqual(ids);
    expect((await owner.commit(settled(taken, { tokens: 0 }))).posted).toEqual([ids[0]]);
    const more = reservationIn(await owner.commit({ entries: [call(owner, 200)] }));
    expect((await owner.commit(settled(more, { tokens: 0 }))).posted).toEqual([]);
  });

  test("an agent whose limit was used up meanwhile is notified too: its call is then refused", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a"]);
    expect((await owner.commit(settled(taken, { tokens: 900 }))).posted).toEqual(ids);
    const a = only(children, 0);
    expect((await a.commit({ entries: [call(a, 500)] })).entries).toMatchObject([
      { type: "intent.refused", reason: "budget", limit: "maxTokens", used: 900, max: 1000 },
    ]);
    expect(await waiting(subject())).toEqual([]);
  });

  test("later calls overtake a large one eight times, then they wait behind it", async () => {
    const { owner, children, taken } = await openLine(subject(), ["large"], 900);
    const small = await openChild(owner, "small");
    for (let pass = 0; pass < 8; pass += 1) {
      const granted = reservationIn(await small.commit({ entries: [call(small, 300)] }));
      expect((await small.commit(settled(granted, { tokens: 0 }))).posted).toEqual([]);
    }
    expect((await small.commit({ entries: [call(small, 300)] })).entries).toMatchObject([{ reason: "mustWait" }]);
    expect((await owner.commit(settled(taken, { tokens: 0 }))).posted).toEqual([only(children, 0).key.agentId]);
  });

  test("a turn that ends leaves the queue, and the agent behind it is notified", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b"], 900);
    await owner.commit(settled(taken, { tokens: 0 }));
    const ended = await only(children, 0).commit({ entries: [note("ended")], closedTurnId: `${ids[0]}#1` });
    expect(ended.posted).toEqual([ids[1]]);
    expect(await waiting(subject())).toEqual([ids[1]]);
  });

  test("an agent that is shut down or paused leaves the queue with all its descendants", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b", "c"], 900);
    await owner.commit(settled(taken, { tokens: 0 }));
    const shutdown = { status: "shutdown", turnCount: 0, lastActivity: NOW, error: null, checkpoint: null } as const;
    expect((await only(children, 0).commit({ entries: [note("off")], owned: shutdown })).posted).toEqual([ids[1]]);
    expect(await subject().pause(agentKey(ids[1]), "ann", NOW)).toEqual({ type: "marked", posted: [ids[1], ids[2]] });
    expect(await waiting(subject())).toEqual([ids[2]]);
    await subject().pause(agentKey(), "ann", NOW);
    expect(await waiting(subject())).toEqual([]);
  });

  test("a side call leaves the queue with its tool call, and when the turn asks for its next step", async () => {
    const { owner, ids, taken } = await openLine(subject(), ["a"], 900);
    const side = await openChild(owner, "side");
    const ask = (): Promise<unknown> => side.commit({ entries: [sideCall(side, 900)] });
    await ask();
    expect(await waiting(subject())).toEqual([ids[0], side.key.agentId]);
    await side.commit({ entries: [toolSettled(side)] });
    expect(await waiting(subject())).toEqual(ids);
    await ask();
    await side.commit({ entries: [call(side, 200)] });
    expect(await waiting(subject())).toEqual(ids);
    await owner.commit(settled(taken));
  });

  test("free budget is held ten seconds for the notified agent", async () => {
    const { owner, children, ids, taken } = await openLine(subject(), ["a", "b"], 900);
    await owner.commit(settled(taken, { tokens: 0 }));
    const other = await openChild(owner, "other");
    const granted = reservationIn(await other.commit({ entries: [call(other, 200)] }, NOW + 10_001));
    const outcome = await other.commit(settled(granted, { tokens: 0 }), NOW + 10_001);
    expect(outcome.posted).toEqual([ids[1]]);
    const a = only(children, 0);
    expect((await a.commit({ entries: [call(a, 900)] }, NOW + 10_002)).entries).toMatchObject([
      { type: "model.requested" },
    ]);
    expect(await waiting(subject())).toEqual([ids[1]]);
  });
}
