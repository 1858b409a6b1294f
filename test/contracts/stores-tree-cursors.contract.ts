import { expect, test } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { messageOf, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "./names.ts";
import { elsewhere, here, agentKey, LEASE_MS, Owner, openAgent } from "./stores-fixtures.ts";
import { cursorsOf, exported, growing, openTeam } from "./team-fixtures.ts";

/** Cursors and epochs of a tree that is imported repeatedly. */
export function treePlacesContract(subject: () => Stores): void {
  test("rows of a tree that is imported repeatedly keep the cursors that clients hold, and new cursors grow", async () => {
    const source = memoryStores();
    const { root, kid } = await openTeam(source);
    await subject().importTree(await exported(source), here.processId);
    const first = await cursorsOf(subject());
    const other = await openAgent(subject(), { agentId: "other" });
    for (let round = 0; round < 3; round += 1) {
      const known = await cursorsOf(subject());
      await kid.commit({ entries: [note("more")] });
      await root.commit({ entries: [note("more")], messages: [messageOf(`r${round}`)] });
      await subject().importTree(await exported(source), here.processId);
      const cursors = await cursorsOf(subject());
      expect(cursors.slice(0, -2)).toEqual(known);
      expect(growing(cursors)).toEqual(cursors);
      await other.commit({ entries: [note("beside")] });
    }
    expect((await cursorsOf(subject())).slice(0, first.length)).toEqual(first);
    expect((await subject().messages(agentKey())).map((message) => message.id)).toContain("r2");
    expect((await subject().readTree(TENANT, ROOT, first.at(-1) ?? 0, 100)).map((row) => row.agentId)).toEqual(
      Array.from({ length: 3 }, () => [kid.key.agentId, ROOT]).flat(),
    );
  });

  test("a different history gets cursors above all earlier ones", async () => {
    const { root } = await openTeam(subject());
    const tree = await exported(subject());
    await root.commit({ entries: [note("is lost")] });
    const before = await cursorsOf(subject());
    await subject().importTree(tree, here.processId);
    const after = await cursorsOf(subject());
    expect(after).toHaveLength(before.length - 1);
    expect(Math.min(...after)).toBeGreaterThan(before.at(-1) ?? 0);
    await subject().importTree({ ...tree, rows: [], agents: tree.agents.slice(0, 1) }, here.processId);
    expect(await cursorsOf(subject())).toEqual([]);
    const again = await new Owner(subject(), agentKey()).acquire();
    const { cursor } = await again.commit({ entries: [note("anew")] });
    expect(cursor).toBeGreaterThan(after.at(-1) ?? 0);
  });

  test("an import with the known cursor does not replace a tree that has received a command since", async () => {
    const source = memoryStores();
    await openTeam(source);
    await subject().importTree(await exported(source), here.processId, { known: new Map() });
    await subject().pause(agentKey(), "ann", NOW);
    const before = await exported(subject());
    expect(await subject().importTree(await exported(source), here.processId, { known: new Map() })).toBe("newItems");
    expect(await exported(subject())).toEqual(before);
    const known = new Map(
      before.agents.map(({ record, inbox }) => [record.agentId, new Set(inbox.map(({ key }) => key))]),
    );
    expect(await subject().importTree(await exported(source), here.processId, { known })).toBe("imported");
    expect((await subject().inbox(agentKey())).filter(({ kind }) => kind === "pause")).toEqual([]);
  });

  test("an import can be limited to a free id, or to replacing the same tree", async () => {
    const source = memoryStores();
    await openTeam(source);
    const tree = await exported(source);
    const put = (processId: string, replaces: "absent" | "own") => subject().importTree(tree, processId, { replaces });
    expect(await put(here.processId, "own")).toBe("notOwned");
    expect(await put(here.processId, "absent")).toBe("imported");
    const before = await exported(subject());
    expect(await put(here.processId, "absent")).toBe("notOwned");
    expect(await put(elsewhere.processId, "own")).toBe("notOwned");
    expect(await exported(subject())).toEqual(before);
    expect(await put(here.processId, "own")).toBe("imported");
  });

  test("epochs never decrease, on either side", async () => {
    const source = memoryStores();
    const owner = await openAgent(source);
    for (let count = 0; count < 3; count += 1) await owner.acquire();
    await subject().importTree(await exported(source), here.processId);
    const there = await new Owner(subject(), agentKey()).acquire();
    expect(there.epoch).toBe(owner.epoch + 1);
    for (let count = 0; count < 3; count += 1) await there.acquire();
    await subject().importTree(await exported(source), here.processId);
    expect((await exported(subject())).agents).toMatchObject([{ epoch: there.epoch, isHeld: true }]);
  });

  test("a local owner in another process is fenced off", async () => {
    const source = memoryStores();
    await openAgent(source);
    await subject().registerProcess(here, NOW);
    await subject().importTree(await exported(source), here.processId);
    const theirs = await new Owner(subject(), agentKey()).acquire(elsewhere, NOW + 2 * LEASE_MS);
    await subject().importTree(await exported(source), here.processId);
    const late = theirs.batch({ entries: [note("late")] });
    expect(await subject().commit([late], NOW)).toEqual([{ type: "stale", epoch: theirs.epoch + 1, seq: theirs.seq }]);
    expect(await subject().holder(agentKey())).toMatchObject({ process: here });
  });

  test("an agent without a holder has no holder after the import", async () => {
    const source = memoryStores();
    const owner = await openAgent(source);
    await source.release(agentKey(), owner.epoch);
    await subject().importTree(await exported(source), here.processId);
    expect(await subject().holder(agentKey())).toBeUndefined();
  });
}

export function projectionsContract(subject: () => Stores): void {
  test("a projection starts at 0, moves forward, and never back", async () => {
    await openAgent(subject());
    const at = async () => subject().projectionCursor(TENANT, "search", ROOT);
    expect(await at()).toBe(0);
    await subject().moveProjection(TENANT, "search", ROOT, 7);
    expect(await at()).toBe(7);
    await subject().moveProjection(TENANT, "search", ROOT, 5);
    expect(await at()).toBe(7);
    await subject().moveProjection(TENANT, "search", ROOT, 8);
    expect(await at()).toBe(8);
    await expect(subject().moveProjection(TENANT, "search", ROOT, 8.5)).rejects.toThrow(/cursor is 8.5/);
  });

  test("each tenant, tree and name has its own projection", async () => {
    await subject().moveProjection(TENANT, "search", ROOT, 7);
    for (const [tenant, name, root] of [
      ["blue", "search", ROOT],
      [TENANT, "Search", ROOT],
      [TENANT, "search", "other"],
      [TENANT, ROOT, "search"],
      [TENANT, "__proto__", ROOT],
    ] as const) {
      expect(await subject().projectionCursor(tenant, name, root)).toBe(0);
    }
  });

  test("a projection moves with its tree to the same row, even if that row has another cursor there", async () => {
    const source = memoryStores();
    await openTeam(source);
    const rows = await source.readTree(TENANT, ROOT, 0, 100);
    await source.moveProjection(TENANT, "search", ROOT, rows[2]?.cursor ?? 0);
    await openAgent(subject(), { agentId: "other" });
    await subject().importTree(await exported(source), here.processId);
    const cursor = await subject().projectionCursor(TENANT, "search", ROOT);
    expect((await cursorsOf(subject())).indexOf(cursor)).toBe(2);
    await subject().moveProjection(TENANT, "search", ROOT, cursor + 1);
    await subject().importTree(await exported(source), here.processId);
    expect(await subject().projectionCursor(TENANT, "search", ROOT)).toBe(cursor + 1);
  });
}
