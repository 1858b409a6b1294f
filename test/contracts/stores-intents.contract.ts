import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { type MakeEntry, modelRequested, note, reservationIn, settled, toolStarted } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { agentKey, type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

const turnAccount = `turn:${TURN}`;

function call(index: number): MakeEntry {
  return toolStarted({ callId: `${TURN}:1:${index}` });
}

/** A model call in the first turn of the owner's agent. */
function requestOf({ key: { agentId } }: Owner): MakeEntry {
  return modelRequested({ accountId: `turn:${agentId}#1`, agentId }, { turnId: `${agentId}#1` });
}

/** A tool call in that turn. */
function startOf({ key: { agentId } }: Owner): MakeEntry {
  return toolStarted({ turnId: `${agentId}#1`, accountId: `turn:${agentId}#1` });
}

async function reservedOf(stores: Stores): Promise<Record<string, number>> {
  const accounts = await stores.accounts(TENANT, ROOT);
  return Object.fromEntries(accounts.map((account) => [account.id, account.reserved.tokens]));
}

export function intentsContract(subject: () => Stores): void {
  test("a granted model call holds its reservation, which counts on every ancestor account", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 10_000 } });
    const outcome = await owner.commit({ entries: [modelRequested()] });
    const reservation = { accountId: turnAccount, tokens: 500, costMicros: 0, outputTokens: 400 };
    expect(outcome.entries).toMatchObject([{ type: "model.requested", reservation }]);
    expect(await reservedOf(subject())).toEqual({ [`agent:${ROOT}`]: 500, [turnAccount]: 500 });
  });

  test("near its limit a call gets less output, down to the minimum; below the minimum it is refused", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1000 } });
    const near = await owner.commit({ entries: [modelRequested({ outputTokens: 4096 })] });
    expect(reservationIn(near).outputTokens).toBe(900);
    await owner.commit(settled(reservationIn(near), { tokens: 700 }));
    const outcome = await owner.commit({ entries: [modelRequested({ promptTokens: 100 })] });
    expect(outcome.entries).toMatchObject([
      {
        type: "intent.refused",
        intent: "model.requested",
        reason: "budget",
        accountId: `agent:${ROOT}`,
        limit: "maxTokens",
      },
    ]);
    expect(await reservedOf(subject())).toEqual({ [`agent:${ROOT}`]: 0, [turnAccount]: 0 });
  });

  test("a refused intent does not drop the facts in its batch, and each intent is checked separately", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxToolCalls: 1 } });
    const outcome = await owner.commit({ entries: [note("before"), call(0), note("between"), call(1), note("after")] });
    expect(outcome.entries.map((entry) => [entry.seq, entry.type])).toEqual([
      [2, "warning"],
      [3, "tool.started"],
      [4, "warning"],
      [5, "intent.refused"],
      [6, "warning"],
    ]);
    expect(outcome.entries[3]).toMatchObject({ reason: "budget", limit: "maxToolCalls", callId: `${TURN}:1:1` });
    const [row] = await subject().readJournal(agentKey(), 2);
    expect(row?.entries).toEqual(outcome.entries);
  });

  test("a refused intent keeps the fields of its call that no other entry contains", async () => {
    const owner = await openAgent(subject());
    await subject().pause(agentKey(), "ann", NOW);
    const outcome = await owner.commit({ entries: [toolStarted({ arguments: { q: [1, null] }, effect: "keyed" })] });
    expect(outcome.entries).toMatchObject([{ reason: "paused", arguments: { q: [1, null] }, effect: "keyed" }]);
    const [row] = await subject().readJournal(agentKey(), 2);
    expect(row?.entries).toEqual(outcome.entries);
  });

  test("another attempt of a tool call does not count as a new call", async () => {
    const owner = await openAgent(subject(), { turnBudget: { maxToolCalls: 1 } });
    const outcome = await owner.commit({ entries: [toolStarted(), toolStarted({ attempt: 2 })] });
    expect(outcome.entries.map((entry) => entry.type)).toEqual(["tool.started", "tool.started"]);
  });

  test("a limit of 0 and a passed deadline refuse every call", async () => {
    const none = await openAgent(subject(), { agentId: "none", turnBudget: { maxSteps: 0 } });
    const late = await openAgent(subject(), { agentId: "late", turnBudget: { deadline: NOW - 1 } });
    expect((await none.commit({ entries: [requestOf(none)] })).entries).toMatchObject([
      { reason: "budget", limit: "maxSteps" },
    ]);
    expect((await late.commit({ entries: [requestOf(late)] })).entries).toMatchObject([
      { reason: "budget", limit: "deadlineAt" },
    ]);
  });

  test("an intent that only another reservation blocks must wait, and the settling commit wakes it", async () => {
    const owner = await openAgent(subject(), { budget: { maxTokens: 1000 } });
    const child = await openChild(owner, "kid");
    const { agentId } = child.key;
    const request = requestOf(child);
    const taken = reservationIn(await owner.commit({ entries: [modelRequested({ outputTokens: 600 })] }));
    expect((await child.commit({ entries: [request] })).entries).toMatchObject([
      { type: "intent.refused", reason: "mustWait", accountId: `agent:${ROOT}`, limit: "maxTokens" },
    ]);
    expect((await owner.commit({ entries: [note("nothing is free yet")] })).posted).toEqual([]);

    expect((await owner.commit(settled(taken))).posted).toEqual([agentId]);
    const inbox = await subject().inbox(child.key);
    expect(inbox.map((item) => item.kind)).toEqual(["budget.freed"]);
    const acknowledged = inbox.map((item) => item.key);
    expect((await child.commit({ entries: [request], acknowledged })).entries).toMatchObject([
      { type: "model.requested" },
    ]);
    expect(await subject().inbox(child.key)).toEqual([]);
  });

  test("a pause on the agent or an ancestor refuses intents and names the paused agent", async () => {
    const owner = await openAgent(subject());
    const child = await openChild(owner, "kid");
    const ofChild = toolStarted({ turnId: `${child.key.agentId}#1`, accountId: `turn:${child.key.agentId}#1` });
    await subject().pause(agentKey(), "ann", NOW);
    expect((await owner.commit({ entries: [modelRequested()] })).entries).toMatchObject([
      { reason: "paused", agentId: ROOT },
    ]);
    expect((await child.commit({ entries: [ofChild, note("fact")] })).entries).toMatchObject([
      { type: "intent.refused", intent: "tool.started", reason: "paused", agentId: ROOT },
      { type: "warning" },
    ]);
    await subject().resume(agentKey(), "ann", NOW);
    expect((await child.commit({ entries: [ofChild] })).entries).toMatchObject([{ type: "tool.started" }]);
  });

  test("an abort of its turn refuses the agent's intents; an abort of another turn does not", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const abort = { by: "ann", reason: "enough", stopReason: "user_requested" } as const;
    expect(await subject().abort(agentKey(), { ...abort, turnId: TURN }, NOW)).toMatchObject({ type: "marked" });
    const outcome = await owner.commit({ entries: [toolStarted(), toolStarted({ turnId: `${ROOT}#2` })] });
    expect(outcome.entries).toMatchObject([{ reason: "aborted", agentId: ROOT }, { type: "tool.started" }]);
  });

  test("an abort of an ancestor or of its turn refuses intents below it and takes precedence over a pause", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const child = await openChild(owner, "kid");
    const grandchild = await openChild(child, "grand");
    const { agentId } = grandchild.key;
    const start = toolStarted({ turnId: `${agentId}#1`, accountId: `turn:${agentId}#1` });
    expect((await grandchild.commit({ entries: [start] })).entries).toMatchObject([{ type: "tool.started" }]);
    await subject().pause(grandchild.key, "ann", NOW);
    const abort = { by: "ann", reason: "enough", stopReason: "user_requested" } as const;
    await subject().abort(agentKey(), { ...abort, turnId: TURN }, NOW);
    const refused = await grandchild.commit({ entries: [start] });
    expect(refused.entries).toMatchObject([{ reason: "aborted", agentId: ROOT }]);
  });

  test("an abort that a commit posts to a child refuses all intents below it from that commit on", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const child = await openChild(owner, "kid");
    const grandchild = await openChild(child, "grand");
    const other = await openChild(owner, "other");
    const { agentId } = child.key;
    const why = { by: ROOT, reason: "time is up", stopReason: "time_limit" } as const;
    const item = { kind: "abort", key: `abort:${ROOT}`, at: NOW, turnId: null, ...why } as const;
    const { posted } = await owner.commit({ entries: [note("over")], posts: [{ agentId, item }] });
    expect(new Set(posted)).toEqual(new Set([agentId, grandchild.key.agentId]));
    const refused = await grandchild.commit({ entries: [startOf(grandchild)] });
    expect(refused.entries).toMatchObject([{ reason: "aborted", agentId, message: "time is up" }]);
    expect((await other.commit({ entries: [startOf(other)] })).entries).toMatchObject([{ type: "tool.started" }]);
    expect((await subject().inbox(grandchild.key)).map(({ kind }) => kind)).toContain("abort");
  });

  test("an abort that a commit posts to a child without an open turn is dropped", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const [over, open] = [await openChild(owner, "over"), await openChild(owner, "open")];
    await over.commit({ entries: [note("ended")], closedTurnId: `${over.key.agentId}#1` });
    const why = { by: ROOT, reason: "the parent's turn ended", stopReason: "user_requested" } as const;
    const item = { kind: "abort", key: `abort:${ROOT}`, at: NOW, turnId: null, ...why } as const;
    const posts = [over, open].map(({ key }) => ({ agentId: key.agentId, item }));
    expect((await owner.commit({ entries: [note("over")], posts })).posted).toEqual([open.key.agentId]);
    expect(await subject().inbox(over.key)).toEqual([]);
    expect((await subject().inbox(open.key)).map(({ kind }) => kind)).toEqual(["abort"]);
  });
}
