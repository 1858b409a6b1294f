import { afterEach, beforeEach, expect, test } from "vitest";
import { newRecord } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { SqliteDatabase } from "../../src/stores/sqlite/sqlite-database.ts";
import { messageOf, note, toolStarted } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "../contracts/names.ts";
import { here, identityOf, agentKey, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { cursorsOf, exported, openTeam } from "../contracts/team-fixtures.ts";
import { openChild } from "../contracts/tree-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

const item = (key: string) => ({ kind: "budget.freed", key, at: NOW }) as const;

let mine: Stores;
let theirs: Stores;

beforeEach(() => {
  const path = temporaryFile();
  mine = sqliteStores(path);
  theirs = sqliteStores(path);
});

afterEach(async () => {
  await mine.close();
  await theirs.close();
});

test("another client that had read the tree sees its replacement, and other agents unchanged", async () => {
  const source = memoryStores();
  await openAgent(source);
  const { root, kid } = await openTeam(mine);
  // The agent created next may get the key of a removed one.
  const batch = root.batch({ entries: [note("late")] });
  await theirs.importTree(await exported(source), here.processId);
  const stranger = await openAgent(theirs, { agentId: "stranger" });
  await stranger.commit({ entries: [note("x")], messages: [messageOf("m1", "the stranger's")] });
  expect(await mine.messages(agentKey())).toEqual([]);
  expect(await mine.inbox(agentKey())).toEqual([]);
  expect(await mine.readAgent(kid.key)).toBeUndefined();
  expect(await mine.messages(kid.key)).toEqual([]);
  expect(await mine.readJournal(kid.key, 1)).toEqual([]);
  expect(await mine.commit([batch], 1)).toMatchObject([{ type: "stale" }]);
  const again = await new Owner(mine, agentKey()).acquire();
  await again.commit({ entries: [note("more")], messages: [messageOf("m9")] });
  await openChild(again, "kid");
  expect(await theirs.messages(agentKey("stranger"))).toEqual([messageOf("m1", "the stranger's")]);
  expect(await theirs.messages(agentKey())).toEqual([messageOf("m9")]);
  expect((await theirs.accounts(TENANT, ROOT)).map((account) => account.id)).toContain(`turn:${TURN}`);
  expect(await theirs.accounts(TENANT, "stranger")).toHaveLength(2);
});

test("another client that had read the accounts spends on their replacements", async () => {
  await openTeam(mine);
  // Accounts that are created again come after these, and get other keys.
  await openAgent(theirs, { agentId: "other" });
  await theirs.importTree(await exported(theirs), here.processId);
  const again = await new Owner(mine, agentKey()).acquire();
  await again.commit({ entries: [toolStarted()] });
  const spent = (await theirs.accounts(TENANT, ROOT)).find((account) => account.id === `turn:${TURN}`);
  expect(spent).toMatchObject({ used: { toolCalls: 2 } });
  expect((await theirs.accounts(TENANT, "other")).map((account) => account.used.toolCalls)).toEqual([0, 0]);
});

test("one read is one snapshot, even while another connection writes", async () => {
  const path = temporaryFile();
  const [reader, writer] = [new SqliteDatabase(path, {}), new SqliteDatabase(path, {})];
  await writer.write(() => writer.tables.putAgent(newRecord(identityOf())));
  await writer.write(() => writer.tables.addToInbox(agentKey(), item("before")));
  const seen = await reader.read(() => {
    const first = reader.tables.inbox(agentKey());
    const written = writer.write(() => writer.tables.addToInbox(agentKey(), item("meanwhile")));
    return { first, written, second: reader.tables.inbox(agentKey()) };
  });
  expect(await seen.written).toBe(true);
  expect(seen.first).toHaveLength(1);
  expect(seen.second).toEqual(seen.first);
  expect(await reader.read(() => reader.tables.inbox(agentKey()))).toHaveLength(2);
  await expect(
    reader.read(() => {
      throw new Error("on the way");
    }),
  ).rejects.toThrow("on the way");
  expect(await reader.write(() => reader.tables.inboxSize(agentKey()))).toBe(2);
  await reader.close();
  await writer.close();
});

test("cursors are unique, whichever client imports a tree", async () => {
  await openTeam(mine);
  const other = await openAgent(theirs, { agentId: "other" });
  const tree = await exported(mine);
  const seen = new Set([...(await cursorsOf(mine)), ...(await cursorsOf(mine, "other"))]);
  for (const stores of [theirs, mine, theirs]) {
    await stores.importTree({ ...tree, rows: tree.rows.slice(0, 2) }, here.processId);
    await other.commit({ entries: [note("beside")] });
    const fresh = [...(await cursorsOf(stores)), (await cursorsOf(stores, "other")).at(-1) ?? 0];
    for (const cursor of fresh) expect(seen).not.toContain(cursor);
    for (const cursor of fresh) seen.add(cursor);
    await stores.importTree(tree, here.processId);
    for (const cursor of await cursorsOf(stores)) seen.add(cursor);
  }
});

test("a tree with more agents than the cache holds is imported completely", async () => {
  const source = memoryStores();
  const root = await openAgent(source);
  const kid = await openChild(root, "kid");
  await kid.commit({ entries: [note("first")], messages: [messageOf("m1")] });
  await kid.commit({ entries: [note("second")], messages: [messageOf("m2")] });
  for (let count = 0; count < 4200; count += 1) {
    const parent = { rootAgentId: ROOT, parentAgentId: ROOT, parentTurnId: TURN, depth: 1 };
    await source.createAgent(identityOf(`${ROOT}~${count}`, parent), null);
  }
  const tree = await exported(source);
  await mine.importTree(tree, here.processId);
  expect((await mine.messages(kid.key)).map((message) => message.id)).toEqual(["m1", "m2"]);
  expect((await theirs.readJournal(kid.key, 1)).map((row) => row.entries.length)).toEqual([1, 1, 1]);
  expect(await theirs.listAgents({ tenant: TENANT, limit: 9999 })).toHaveLength(4202);
});

test("pages of any length and messages of any age of a long tree read alike for its writer and for another client", async () => {
  const root = await openAgent(mine, { agentId: "a-long-name" });
  const kid = await openChild(root, "kid");
  for (let count = 0; count < 90; count += 1) {
    const again = messageOf(`m${count >> 1}`, "a second time");
    await root.commit({ entries: [note(`n${count}`)], messages: [messageOf(`m${count}`), again] });
    if (count % 4 === 0) await kid.commit({ entries: [note(`k${count}`)], messages: [messageOf(`k${count}`)] });
  }
  const { agentId } = root.key;
  const ids = Array.from({ length: 90 }, (_, count) => `m${count}`);
  for (const stores of [mine, theirs]) {
    const rows = await stores.readTree(TENANT, agentId, 0, 1000);
    expect(
      rows.flatMap(({ entries }) => entries.flatMap((entry) => ("message" in entry ? [entry.message] : []))),
    ).toEqual(
      Array.from({ length: 90 }, (_, count) => (count % 4 === 0 ? [`n${count}`, `k${count}`] : [`n${count}`])).flat(),
    );
    for (const [from, length] of [
      [0, 1],
      [1, 31],
      [30, 2],
      [31, 33],
      [32, 32],
      [63, 64],
      [rows.length - 1, 9],
    ] as const) {
      const page = await stores.readTree(TENANT, agentId, rows[from]?.cursor ?? 0, length);
      expect(page).toEqual(rows.slice(from + 1, from + 1 + length));
    }
    expect(await stores.messages(root.key)).toEqual(ids.map((id) => messageOf(id)));
    expect(await stores.messagesById(root.key, ["m89", "m0", "m1000", "m44"])).toEqual(
      ["m89", "m0", "m44"].map((id) => messageOf(id)),
    );
  }
  await kid.commit({ entries: [note("cleared")], cleared: "conversation", messages: [messageOf("k0", "anew")] });
  for (const stores of [mine, theirs]) {
    expect(await stores.messages(kid.key)).toEqual([messageOf("k0", "anew")]);
    expect(await stores.messagesById(kid.key, ["k4", "k88", "k0"])).toEqual([messageOf("k0", "anew")]);
  }
  // Another client continues, which has not read the last rows.
  const next = await new Owner(theirs, root.key).acquire();
  await next.commit({ entries: [note("later")], messages: [messageOf("m89", "known"), messageOf("m90")] });
  expect(await mine.messages(root.key)).toEqual([...ids, "m90"].map((id) => messageOf(id)));
  const last = await mine.readTree(TENANT, agentId, 0, 1000);
  expect(await theirs.readTree(TENANT, agentId, last.at(-3)?.cursor ?? 0, 5)).toEqual(last.slice(-2));
});
