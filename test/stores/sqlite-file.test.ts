import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { CorruptRecordError, InvalidInputError, InvariantError } from "../../src/errors/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { TENANT } from "../contracts/names.ts";
import { identityOf, agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

test("a new file and what lies beside it are for their owner only", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  await stores.createAgent(identityOf(), null);
  for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  await stores.close();
});

test("what was closed is whole in the one file, and reads back", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores);
  await owner.commit({ entries: [note("kept")], messages: [messageOf("m1")] });
  await stores.close();
  await stores.close();
  expect(existsSync(`${path}-wal`)).toBe(false);
  const again = sqliteStores(path);
  expect(await again.readJournal(agentKey(), 2)).toMatchObject([{ entries: [{ message: "kept" }] }]);
  expect(await again.messages(agentKey())).toEqual([messageOf("m1")]);
  await again.close();
});

test("a batch that was applied before a restart is known after it, with all of its outcome", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores, { turnBudget: { maxSeconds: 5 } });
  const batch = owner.batch({
    entries: [note("once")],
    moves: [{ type: "activity", accountId: "turn:desk#1", isActive: true }],
    posts: [{ agentId: "desk", item: { kind: "budget.freed", key: "k", at: 1 } }],
  });
  const [first] = await stores.commit([batch], 1);
  expect(first).toMatchObject({ type: "committed", posted: ["desk"], timers: [{ limit: "maxActiveMs" }] });
  await stores.close();
  const again = sqliteStores(path);
  expect(await again.commit([batch], 2)).toEqual([{ ...first, accounts: undefined, follows: undefined }]);
  await again.close();
});

test("rows come back unchanged with any characters in the id of their agent", async () => {
  for (const agentId of ['with "quotes" and \\ and $& and \n', "\u0001 and so on", "short"]) {
    const path = temporaryFile();
    const stores = sqliteStores(path);
    const owner = await openAgent(stores, { agentId });
    const text = `from ${agentId} to \u0001 ${agentId}~kid`;
    await owner.commit({ entries: [note(text)], messages: [messageOf(`${agentId}:1`, text)] });
    await stores.close();
    const again = sqliteStores(path);
    expect(await again.readJournal(agentKey(agentId), 2)).toMatchObject([{ agentId, entries: [{ message: text }] }]);
    expect(await again.messages(agentKey(agentId))).toEqual([messageOf(`${agentId}:1`, text)]);
    expect((await again.exportTree(TENANT, agentId))?.rows.at(-1)?.messages).toEqual([messageOf(`${agentId}:1`, text)]);
    await again.close();
  }
});

test("used after it was closed, it says so", async () => {
  const stores = sqliteStores(":memory:");
  await stores.close();
  await expect(stores.readAgent(agentKey())).rejects.toThrow(InvariantError);
  await expect(stores.pause(agentKey(), "ann", 1)).rejects.toThrow(/is closed/);
});

test.each([
  [
    "a missing folder",
    () => join(dirname(temporaryFile()), "missing", "x.db"),
    /folder that does not exist: .*missing/,
  ],
  ["a folder", () => dirname(temporaryFile()), /is a folder/],
  ["nothing", () => "", /is not a path/],
  ["a NUL", () => `${temporaryFile()}\0`, /is not a path/],
])("a path that is %s is refused with what would be right", (_what, path, words) => {
  const open = () => sqliteStores(path());
  expect(open).toThrow(InvalidInputError);
  expect(open).toThrow(words);
});

test.skipIf(process.getuid?.() === 0)("a file that may not be written is refused", () => {
  const path = temporaryFile();
  writeFileSync(path, "");
  chmodSync(path, 0o400);
  expect(() => sqliteStores(path)).toThrow(/may not be read and written/);
});

test("options that do not exist are refused", () => {
  expect(() => sqliteStores(":memory:", { durability: "often" as "full" })).toThrow(/durability is the text "often"/);
  expect(() => sqliteStores(":memory:", { maxBytes: -1 })).toThrow(/maxBytes is -1/);
  expect(() => sqliteStores(":memory:", { busyLimitMs: Number.NaN })).toThrow(/busyLimitMs is NaN/);
});

test("commands of one moment are stored together, and those that cannot be stored take nothing from the others", async () => {
  const stores = sqliteStores(temporaryFile(), { maxBytes: 400_000 });
  const outcomes = await Promise.allSettled([
    stores.createAgent(identityOf("first"), null),
    stores.createAgent(identityOf("half of a pair \ud800"), null),
    stores.createAgent(identityOf("large"), null, { messages: [messageOf("m", "x".repeat(1_000_000))] }),
    stores.createAgent(identityOf("last"), null),
  ]);
  expect(outcomes).toMatchObject([
    { status: "fulfilled", value: { created: true } },
    { status: "rejected", reason: { name: "InvalidInputError" } },
    { status: "rejected", reason: { name: "StoreUnavailableError" } },
    { status: "fulfilled", value: { created: true } },
  ]);
  expect((await stores.listAgents({ tenant: TENANT })).map(({ agentId }) => agentId)).toEqual(["first", "last"]);
  await stores.close();
});

test("a store that is to survive the machine works the same", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path, { durability: "full" });
  const owner = await openAgent(stores);
  await owner.commit({ entries: [note("kept")] });
  await stores.close();
  const again = sqliteStores(path);
  expect(await again.readJournal(agentKey(), 2)).toMatchObject([{ entries: [{ message: "kept" }] }]);
  await again.close();
});

test("a database of something else is refused and left as it is", () => {
  const path = temporaryFile();
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE customers (name TEXT)");
  database.close();
  const before = readFileSync(path);
  expect(() => sqliteStores(path)).toThrow(/database of another program/);
  expect(readFileSync(path)).toEqual(before);
});

test("a file that is not a database is refused and left as it is", () => {
  const path = temporaryFile();
  writeFileSync(path, "a diary, not a database. ".repeat(100));
  const before = readFileSync(path);
  const open = () => sqliteStores(path);
  expect(open).toThrow(CorruptRecordError);
  expect(open).toThrow(/SQLITE_NOTADB/);
  expect(readFileSync(path)).toEqual(before);
});

test("an id that UTF-8 has no form for is refused, for it would become another one", async () => {
  const stores = sqliteStores(":memory:");
  await expect(stores.createAgent(identityOf("\ud800"), null)).rejects.toThrow(InvalidInputError);
  await expect(stores.readAgent(agentKey("x", "\udfff"))).rejects.toThrow(/half of a surrogate pair/);
  expect(await stores.readAgent(agentKey("\ufffd"))).toBeUndefined();
  await stores.close();
});

test("a folder in the place of the log is a store that is not available", () => {
  const path = temporaryFile();
  mkdirSync(`${path}-wal`);
  expect(() => sqliteStores(path)).toThrow(/is not available/);
});
