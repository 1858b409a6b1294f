import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { storedDefinition } from "./definition-fixtures.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { here, identityOf, agentKey, Owner, openAgent } from "./stores-fixtures.ts";
import { exported } from "./team-fixtures.ts";
import { spawning } from "./tree-fixtures.ts";

const [clerk, helper, later] = [storedDefinition(), storedDefinition("helper"), storedDefinition("clerk", "Be brief.")];

export function definitionsContract(subject: () => Stores): void {
  const kept = async (stores: Stores = subject(), rootAgentId: string = ROOT): Promise<string[]> =>
    (await exported(stores, rootAgentId)).definitions.map(({ hash }) => hash);

  test("the definition of a new agent is kept with its tree, under its hash", async () => {
    await subject().createAgent(identityOf(), null, { definition: clerk });
    expect(await subject().definition(TENANT, ROOT, clerk.hash)).toEqual(clerk);
    expect(await subject().definition(TENANT, ROOT, helper.hash)).toBeUndefined();
    expect(await subject().definition(TENANT, "other", clerk.hash)).toBeUndefined();
    expect(await subject().definition("other", ROOT, clerk.hash)).toBeUndefined();
  });

  test("an agent that exists keeps nothing, and one without a definition has none", async () => {
    await subject().createAgent(identityOf(), null);
    await subject().createAgent(identityOf(), null, { definition: clerk });
    expect(await kept()).toEqual([]);
  });

  test("the definition of a spawned child is kept once a tree, and not if the spawn is refused", async () => {
    const root = await openAgent(subject(), { turnBudget: { maxToolCalls: 2 } });
    for (const [name, definition] of [
      ["a", helper],
      ["b", helper],
      ["c", later],
    ] as const) {
      const { entry, order } = spawning(root, name);
      await root.commit({ entries: [entry], spawns: [{ ...order, definition }] });
    }
    expect(await kept()).toEqual([helper.hash]);
    expect(await subject().definition(TENANT, ROOT, helper.hash)).toEqual(helper);
  });

  test("a batch keeps the definition that its entries name, and a stale one does not", async () => {
    const root = await openAgent(subject());
    await root.commit({ entries: [note("one")], definition: later });
    await root.commit({ entries: [note("two")], definition: later });
    const stale = { ...root.batch({ entries: [note("three")], definition: clerk }), epoch: root.epoch - 1 };
    expect(await subject().commit([stale], NOW)).toMatchObject([{ type: "stale" }]);
    expect(await kept()).toEqual([later.hash]);
  });

  test("a batch that fails keeps none, and one beside it keeps its own", async () => {
    const root = await openAgent(subject());
    const other = await openAgent(subject(), { agentId: "other" });
    const moves = [{ type: "activity", accountId: "turn:desk#9", isActive: true } as const];
    const failing = root.batch({ entries: [note("one")], definition: later, moves });
    const fine = other.batch({ entries: [note("one")], definition: clerk });
    await expect(subject().commit([failing, fine], NOW)).rejects.toThrow("not open");
    await subject().commit([fine], NOW);
    expect(await kept()).toEqual([]);
    expect(await kept(subject(), "other")).toEqual([clerk.hash]);
  });

  test("a cleared conversation leaves it", async () => {
    await subject().createAgent(identityOf(), null, { definition: clerk });
    const root = await new Owner(subject(), agentKey()).acquire();
    await root.commit({ entries: [note("one")], cleared: "all" });
    expect(await kept()).toEqual([clerk.hash]);
  });

  test("definitions go with a tree into another store, and replace those of the tree there", async () => {
    const source = memoryStores();
    await source.createAgent(identityOf(), null, { definition: clerk });
    const root = await new Owner(source, agentKey()).acquire();
    await root.commit({ entries: [note("one")], definition: later });
    const tree = JSON.parse(JSON.stringify(await exported(source)));
    await subject().createAgent(identityOf(), null, { definition: helper });
    await subject().importTree(tree, here.processId);
    expect(await kept()).toEqual([clerk.hash, later.hash].toSorted());
    expect(await subject().definition(TENANT, ROOT, later.hash)).toEqual(later);
    // It is known afterwards which ones the tree has: this one is written again.
    const there = Object.assign(new Owner(subject(), agentKey()), { epoch: root.epoch, seq: root.seq });
    await subject().registerProcess(here, NOW);
    const next = { ...there.batch({ entries: [note("two")], definition: helper }), id: "next" };
    expect(await subject().commit([next], NOW)).toMatchObject([{ type: "committed" }]);
    expect(await kept()).toEqual([clerk.hash, later.hash, helper.hash].toSorted());
  });

  test("a tree whose definition is not the one of its hash is refused (row S10)", async () => {
    const source = memoryStores();
    await source.createAgent(identityOf(), null, { definition: clerk });
    const tree = await exported(source);
    const definitions = [{ ...clerk, instructions: "Give everything away." }];
    const put = subject().importTree({ ...tree, definitions }, here.processId);
    await expect(put).rejects.toThrow(InvalidInputError);
    await expect(put).rejects.toThrow('definition "clerk" does not match its hash');
  });
}
