import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { StoredTree, Stores } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { opening, requestOf } from "./request-fixtures.ts";
import { here, agentKey, Owner, openAgent } from "./stores-fixtures.ts";
import { artifact, cursorsOf, exported, openTeam, withoutCursors } from "./team-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

export function treesContract(subject: () => Stores): void {
  test("a tree that was taken out as JSON and put into another store is whole there", async () => {
    const source = memoryStores();
    await openTeam(source);
    const tree = JSON.parse(JSON.stringify(await exported(source)));
    await openAgent(subject(), { agentId: "other" });
    await subject().importTree(tree, here.processId);
    expect(withoutCursors(await exported(subject()))).toEqual(withoutCursors(tree));
    expect(await subject().messages(agentKey())).toEqual(["m1", "m2", "m3"].map((id) => messageOf(id)));
    expect(await subject().messagesById(agentKey(), ["m3", "m1"])).toEqual([messageOf("m3"), messageOf("m1")]);
    expect(await subject().messages(agentKey(`${ROOT}~kid`))).toEqual([messageOf("m1", "the child's")]);
    expect(await subject().artifactByName(agentKey(), "plan")).toEqual({ ...artifact, version: 1 });
    expect(await subject().readJournal(agentKey(), 3)).toHaveLength(3);
    expect(await subject().accounts(TENANT, ROOT)).toEqual(await source.accounts(TENANT, ROOT));
    expect(await subject().requests({ tenant: TENANT, status: "open" })).toMatchObject([{ expiresAt: NOW + 500 }]);
    expect((await subject().dueTimers(NOW + 999, 10)).map((timer) => timer.dueAt)).toEqual([NOW + 500, NOW + 720]);
    expect((await subject().inbox(agentKey())).map((item) => item.kind)).toEqual(["turn", "decision"]);
  });

  test("a tree that goes out and comes back is what it was, cursors and all", async () => {
    await openTeam(subject());
    await subject().moveProjection(TENANT, "search", ROOT, 3);
    const tree = await exported(subject());
    await subject().importTree(tree, here.processId);
    expect(await exported(subject())).toEqual(tree);
  });

  test("its owner goes on where it was, in the other store", async () => {
    const source = memoryStores();
    const { root } = await openTeam(source);
    await subject().registerProcess(here, NOW);
    await subject().importTree(await exported(source), here.processId);
    expect(await subject().holder(agentKey())).toEqual({ process: here, epoch: root.epoch });
    const there = Object.assign(new Owner(subject(), agentKey()), { epoch: root.epoch, seq: root.seq });
    const batch = { ...there.batch({ entries: [note("next")], messages: [messageOf("m4")] }), id: "next" };
    there.moved((await subject().commit([batch], NOW))[0]);
    expect((await subject().messages(agentKey())).map((message) => message.id)).toEqual(["m1", "m2", "m3", "m4"]);
    await there.commit({ entries: [note("ended")], closedTurnId: `${ROOT}#1` });
    const open = await subject().requests({ tenant: TENANT, status: "open" });
    expect(open).toEqual([]);
  });

  test("a batch that was applied before is known after, with the cursor it has now", async () => {
    const source = memoryStores();
    const owner = await openAgent(source);
    const batch = owner.batch({ entries: [note("once")], artifacts: [artifact] });
    const [first] = await source.commit([batch], NOW);
    await openAgent(subject(), { agentId: "other" });
    await subject().importTree(await exported(source), here.processId);
    const cursor = (await cursorsOf(subject())).at(-1);
    expect(await subject().commit([batch], NOW)).toEqual([
      { ...first, cursor, accounts: undefined, follows: undefined },
    ]);
    expect(await subject().readJournal(agentKey(), 1)).toHaveLength(2);
  });

  test("what was here of the tree is gone, and nothing of other trees", async () => {
    const source = memoryStores();
    await openAgent(source);
    const { root } = await openTeam(subject());
    const other = await openAgent(subject(), { agentId: "other", turnBudget: { deadline: NOW + 7 } });
    await other.commit({ ...opening(requestOf(other, 0)), messages: [messageOf("m1", "the other's")] });
    const before = await exported(subject(), "other");
    await subject().importTree(await exported(source), here.processId);
    expect((await subject().listAgents({ tenant: TENANT })).map((record) => record.agentId)).toEqual([ROOT, "other"]);
    for (const key of [root.key, agentKey(`${ROOT}~kid`)]) {
      expect(await subject().messages(key)).toEqual([]);
      expect(await subject().messagesById(key, ["m1"])).toEqual([]);
      expect(await subject().artifacts(key)).toEqual([]);
      expect(await subject().inbox(key)).toEqual([]);
    }
    expect(await subject().accounts(TENANT, ROOT)).toHaveLength(2);
    expect((await subject().requests({ tenant: TENANT })).map((request) => request.agentId)).toEqual(["other"]);
    expect((await subject().dueTimers(NOW + 999, 10)).map((timer) => timer.agentId)).toEqual(["other"]);
    expect(await exported(subject(), "other")).toEqual(before);
    // A name that was used is free again.
    await openChild(await new Owner(subject(), agentKey()).acquire(), "kid");
    expect(await subject().messages(agentKey(`${ROOT}~kid`))).toEqual([]);
  });

  test("a tree that is not there, or has no root, is not exported", async () => {
    await openTeam(subject());
    expect(await subject().exportTree(TENANT, "nobody")).toBeUndefined();
    expect(await subject().exportTree("nobody", ROOT)).toBeUndefined();
    expect(await subject().exportTree(TENANT, `${ROOT}~kid`)).toBeUndefined();
  });

  test("a tree that is not whole is refused, and nothing is changed", async () => {
    const { root } = await openTeam(subject());
    const tree = await exported(subject());
    const [first, second] = tree.agents;
    if (!first || !second) throw new Error("the team has two agents");
    const stranger = { ...first, record: { ...first.record, tenant: "other" } };
    const wrong: [string, Partial<StoredTree>][] = [
      ["its root agent is missing", { agents: [], rows: [] }],
      ["comes before its parent", { agents: [second, first] }],
      ["occurs twice", { agents: [first, first] }],
      ["belongs to tree desk of tenant other", { agents: [stranger] }],
      ["which is missing", { agents: [first] }],
      ["comes after row", { rows: tree.rows.toReversed() }],
      ["contains a timer or request of agent desk", { agents: [first, { ...second, timers: first.timers }] }],
    ];
    for (const [words, changes] of wrong) {
      const put = subject().importTree({ ...tree, ...changes }, here.processId);
      await expect(put, words).rejects.toThrow(InvalidInputError);
      await expect(put, words).rejects.toThrow(words);
    }
    expect(await exported(subject())).toEqual(tree);
    await root.commit({ entries: [note("goes on")] });
  });

  test("an import that fails on the way leaves everything as it was", async () => {
    const { root, kid } = await openTeam(subject());
    const other = await openAgent(subject(), { agentId: "other" });
    const tree = await exported(subject());
    const hostile = {
      ...tree,
      projections: [
        {
          name: "p",
          get cursor(): number {
            throw new Error("on the way");
          },
        },
      ],
    };
    await expect(subject().importTree(hostile, here.processId)).rejects.toThrow("on the way");
    expect(await exported(subject())).toEqual(tree);
    for (const owner of [root, kid, other]) await owner.commit({ entries: [note("goes on")] });
    expect(await subject().messages(agentKey())).toHaveLength(3);
  });
}
