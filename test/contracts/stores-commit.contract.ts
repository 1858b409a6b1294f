import { expect, test } from "vitest";
import { InvariantError } from "../../src/errors/index.ts";
import type { Post, Stores } from "../../src/stores/index.ts";
import { messageOf, note, settled, starting } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { type BatchParts, agentKey, type Owner, openAgent, ready } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

/** A batch that has something of everything, and what shows of it. */
const everything: BatchParts = {
  entries: [note("one"), note("two")],
  messages: [messageOf("m1")],
  artifacts: [
    {
      artifactId: "a1",
      name: "a",
      contentType: "text/plain",
      size: 1,
      createdAt: NOW,
      turnId: null,
      callId: null,
      content: "x",
    },
  ],
  owned: { ...ready, turnCount: 7 },
  posts: [post("freed")],
};

function post(key: string): Post {
  return { agentId: ROOT, item: { kind: "budget.freed", key, at: NOW } };
}

async function shown(stores: Stores): Promise<unknown> {
  const key = agentKey();
  return {
    journal: await stores.readJournal(key, 1),
    tree: await stores.readTree(TENANT, ROOT, 0, 1000),
    messages: await stores.messages(key),
    artifacts: await stores.artifacts(key),
    record: await stores.readAgent(key),
    inbox: await stores.inbox(key),
    accounts: await stores.accounts(TENANT, ROOT),
    timers: await stores.dueTimers(Number.MAX_SAFE_INTEGER, 1000),
  };
}

export function commitContract(subject: () => Stores): void {
  test("everything in a batch becomes true together", async () => {
    const owner = await openAgent(subject());
    const outcome = await owner.commit(everything);
    const seen = await shown(subject());
    expect(outcome.entries.map((entry) => [entry.type, entry.seq])).toEqual([
      ["warning", 2],
      ["warning", 3],
    ]);
    expect(outcome.posted).toEqual([ROOT]);
    expect(seen).toMatchObject({
      journal: [{ entries: [{ type: "agent.starting" }] }, { cursor: outcome.cursor, entries: outcome.entries }],
      messages: [{ id: "m1" }],
      artifacts: [{ artifactId: "a1" }],
      record: { turnCount: 7 },
      inbox: [{ key: "freed" }],
    });
  });

  test("a batch that fails leaves nothing of itself (invariant 2)", async () => {
    const owner = await openAgent(subject());
    const before = await shown(subject());
    const unpayable = { ...settled({ accountId: "none", tokens: 1, costMicros: 0, outputTokens: 1, model: "m" }) };
    await expect(owner.commit({ ...everything, ...unpayable })).rejects.toThrow(InvariantError);
    const toNobody = { ...post("lost"), agentId: "nobody" };
    await expect(owner.commit({ ...everything, posts: [post("freed"), toNobody] })).rejects.toThrow(InvariantError);
    expect(await shown(subject())).toEqual(before);
    expect((await owner.commit(everything)).entries).toHaveLength(2);
  });

  test("a batch whose entries leave a gap or bring messages without an entry is refused", async () => {
    const owner = await openAgent(subject());
    const gap = { ...owner.batch({ entries: [note("one")] }), expectedSeq: owner.seq };
    const entries = gap.entries.map((entry) => ({ ...entry, seq: entry.seq + 1 }));
    await expect(subject().commit([{ ...gap, entries }], NOW)).rejects.toThrow(/has seq 3, not 2/);
    await expect(owner.commit({ messages: [messageOf("m1")] })).rejects.toThrow(/messages but no entry/);
    expect(await subject().messages(agentKey())).toEqual([]);
  });

  test("the same batch again is answered with its first outcome, and applied once (invariant 2)", async () => {
    const owner = await openAgent(subject());
    const batch = owner.batch(everything);
    const [first] = await subject().commit([batch], NOW);
    const before = await shown(subject());
    expect(await subject().commit([batch], NOW + 5)).toEqual([{ ...first, accounts: undefined, follows: undefined }]);
    expect(await shown(subject())).toEqual(before);
  });

  test("a batch without entries moves nothing forward, and is known again too", async () => {
    const owner = await openAgent(subject());
    await owner.commit(everything);
    const acknowledging = owner.batch({ acknowledged: ["freed"] });
    const [first] = await subject().commit([acknowledging], NOW);
    expect(first).toMatchObject({ type: "committed", entries: [], cursor: 0 });
    expect(await subject().inbox(agentKey())).toEqual([]);
    expect(await subject().commit([acknowledging], NOW)).toEqual([
      { ...first, accounts: undefined, follows: undefined },
    ]);
    expect(await owner.commit({ entries: [note("next")] })).toMatchObject({ entries: [{ seq: owner.seq }] });
  });

  test("a wrong seq is stale, tells where the journal is, and changes nothing (invariant 1)", async () => {
    const owner = await openAgent(subject());
    const before = await shown(subject());
    for (const wrong of [-1, 1]) {
      const batch = { ...owner.batch(everything), expectedSeq: owner.seq + wrong };
      expect(await subject().commit([batch], NOW)).toEqual([{ type: "stale", epoch: owner.epoch, seq: owner.seq }]);
    }
    expect(await shown(subject())).toEqual(before);
  });

  test("an old epoch and a released lease are stale and change nothing (invariants 1 and 4)", async () => {
    const owner = await openAgent(subject());
    const { epoch } = owner;
    const old = owner.batch(everything);
    await owner.acquire();
    const before = await shown(subject());
    expect(await subject().commit([old], NOW)).toEqual([{ type: "stale", epoch: epoch + 1, seq: owner.seq }]);
    expect(await subject().release(agentKey(), owner.epoch)).toBe(true);
    expect(await subject().commit([owner.batch(everything)], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await shown(subject())).toEqual(before);
  });

  test("a row tells after which cursor its tree has no other row, also while other trees are written", async () => {
    const owner = await openAgent(subject());
    const child = await openChild(owner, "reader");
    const other = await openAgent(subject(), { agentId: "another" });
    for (const one of [owner, other, child, other, owner, child]) {
      const rows = await subject().readTree(TENANT, one === other ? "another" : ROOT, 0, 1000);
      const { cursor, follows = -1 } = await one.commit({ entries: [note("x")] });
      expect(follows).toBeGreaterThanOrEqual(rows.at(-1)?.cursor ?? 0);
      expect(follows).toBeLessThan(cursor);
    }
  });

  test("seq and cursor grow over all commits of a tree", async () => {
    const owner = await openAgent(subject());
    const cursors: number[] = [];
    for (let count = 0; count < 5; count += 1) {
      const outcome = await owner.commit({ entries: [note("a"), note("b")] });
      cursors.push(outcome.cursor);
    }
    expect(owner.seq).toBe(11);
    expect(new Set(cursors).size).toBe(5);
    expect(cursors).toEqual(cursors.toSorted((a, b) => a - b));
  });

  test("batches of several agents have outcomes of their own; a stale one does not disturb the others", async () => {
    const owners: Owner[] = [];
    for (const agentId of ["a", "b", "c"]) owners.push(await openAgent(subject(), { agentId }));
    const batches = owners.map((owner) => owner.batch({ entries: [note(`of ${owner.key.agentId}`)] }));
    const [a, b, c] = batches;
    if (!a || !b || !c) throw new Error("three batches were made");
    const outcomes = await subject().commit([a, { ...b, expectedSeq: 99 }, c], NOW);
    expect(outcomes.map((outcome) => outcome.type)).toEqual(["committed", "stale", "committed"]);
    expect(await subject().readJournal(agentKey("b"), 2)).toEqual([]);
    expect(await subject().readJournal(agentKey("c"), 2)).toMatchObject([{ entries: [{ message: "of c" }] }]);
  });

  test("a batch that fails among others is undone alone, and the others are known when sent again", async () => {
    const owners: Owner[] = [];
    for (const agentId of ["a", "b"]) owners.push(await openAgent(subject(), { agentId }));
    const [a, b] = owners;
    if (!a || !b) throw new Error("two agents were made");
    const good = [a.batch({ entries: [note("good")] }), b.batch({ entries: [starting] })];
    const broken = b.batch({ entries: [note("bad")], posts: [{ ...post("lost"), agentId: "nobody" }] });
    await expect(subject().commit([...good.slice(0, 1), broken, ...good.slice(1)], NOW)).rejects.toThrow(
      InvariantError,
    );
    expect(await subject().readJournal(agentKey("a"), 2)).toMatchObject([{ entries: [{ message: "good" }] }]);
    expect(await subject().readJournal(agentKey("b"), 2)).toMatchObject([{ entries: [{ type: "agent.starting" }] }]);
    expect(await subject().commit(good, NOW)).toMatchObject([{ type: "committed" }, { type: "committed" }]);
    expect(await subject().readJournal(agentKey("a"), 2)).toHaveLength(1);
  });

  test("inbox items are one per key, kept in order, and gone when a commit has taken them in", async () => {
    const owner = await openAgent(subject());
    const outcome = await owner.commit({ entries: [note("posts")], posts: [post("2"), post("1"), post("2")] });
    expect(outcome.posted).toEqual([ROOT]);
    expect((await owner.commit({ entries: [note("again")], posts: [post("1")] })).posted).toEqual([]);
    expect((await subject().inbox(agentKey())).map((item) => item.key)).toEqual(["2", "1"]);
    const lost = { ...post("lost"), agentId: "nobody" };
    await expect(owner.commit({ entries: [note("lost")], acknowledged: ["2"], posts: [lost] })).rejects.toThrow(
      /nobody/,
    );
    expect((await subject().inbox(agentKey())).map((item) => item.key)).toEqual(["2", "1"]);
    await owner.commit({ entries: [note("took")], acknowledged: ["2", "unknown"] });
    expect((await subject().inbox(agentKey())).map((item) => item.key)).toEqual(["1"]);
  });
}
