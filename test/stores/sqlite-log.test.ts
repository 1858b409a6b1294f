import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { array, assert, asyncProperty, constantFrom, nat, record } from "fast-check";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { SqliteLog } from "../../src/stores/sqlite/sqlite-log.ts";
import { Statement } from "../../src/stores/sqlite/sqlite-statement.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT } from "../contracts/names.ts";
import { identityOf, keyOf, openAgent } from "../contracts/stores-fixtures.ts";
import { amount } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

/** Stores that are closed with the test, whatever becomes of them in it. */
function opened(path: string, options: Parameters<typeof sqliteStores>[1] = {}): Stores {
  const stores = sqliteStores(path, options);
  onTestFinished(() => stores.close());
  return stores;
}

const door = { later: () => true, needFile: () => {}, readAside: () => {} };
const parts = ["", "-wal", "-log"];

/** The files as a death of the process leaves them. */
function copyOf(path: string): string {
  const copy = temporaryFile();
  for (const part of parts) if (existsSync(path + part)) copyFileSync(path + part, copy + part);
  return copy;
}

function rowsIn(path: string, table: string): unknown {
  const database = new DatabaseSync(path);
  try {
    return database.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.["count"];
  } finally {
    database.close();
  }
}

const create = (stores: Stores, agentId: string) => stores.createAgent(identityOf(agentId), null);

async function agentsIn(stores: Stores): Promise<string[]> {
  return (await stores.listAgents({ tenant: TENANT, limit: 1_000 })).map(({ agentId }) => agentId);
}

/** A log without a record holds the name of its writer. */
const EMPTY = "troupe log 1 \n".length + 36;

/** Once what was written is in the database. */
async function folded(path: string): Promise<void> {
  await expect.poll(() => statSync(`${path}-log`).size).toBe(EMPTY);
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("what one connection writes is in its log at once, and in the database soon after", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  await create(stores, "first");
  await create(stores, "second");
  expect([rowsIn(path, "agents"), statSync(`${path}-log`).mode & 0o777]).toEqual([1, 0o600]);
  expect(await agentsIn(opened(copyOf(path)))).toEqual(["first", "second"]);
  await folded(path);
  expect(rowsIn(path, "agents")).toBe(2);
  // A program that looks into the file is no connection of this package: logging goes on.
  await create(stores, "third");
  expect(await agentsIn(opened(copyOf(path)))).toEqual(["first", "second", "third"]);
  await stores.close();
  expect(parts.map((part) => existsSync(path + part))).toEqual([true, false, false]);
  expect(await agentsIn(opened(path))).toEqual(["first", "second", "third"]);
});

test("a conversation that goes on after each death has what was acknowledged, and nothing twice", async () => {
  let path = temporaryFile();
  const owner = await openAgent(opened(path));
  for (let death = 1; death <= amount(30, 8); death += 1) {
    for (let index = 0; index < death % 4; index += 1) await owner.commit({ entries: [note(`${death}.${index}`)] });
    path = copyOf(path);
    Object.assign(owner, { stores: opened(path) });
    const rows = await owner.stores.readJournal(keyOf(), 1);
    const seqs = rows.flatMap(({ entries }) => entries.map(({ seq }) => seq));
    expect(seqs).toEqual(Array.from({ length: owner.seq }, (_, index) => index + 1));
  }
});

test("after a power cut the state is one that was: the log goes on from the database, or does not count", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  const owner = await openAgent(stores);
  const sizes = new Set<number>();
  const lengths = new Set<number>();
  for (let index = 0; index < 12; index += 1) {
    await owner.commit({ entries: [note(`note ${index}`)] });
    if (index % 4 === 3) await folded(path);
    sizes.add(statSync(`${path}-wal`).size);
    const copy = copyOf(path);
    const logSize = statSync(`${path}-log`).size;
    // Each part of the database's own log with each part of this one.
    for (const size of sizes) {
      for (const cut of [0, Math.floor(logSize / 2), logSize]) {
        const remains = copyOf(copy);
        if (size < statSync(`${remains}-wal`).size) truncateSync(`${remains}-wal`, size);
        truncateSync(`${remains}-log`, cut);
        const again = sqliteStores(remains);
        const rows = await again.readJournal(keyOf(), 1);
        const seqs = rows.flatMap(({ entries }) => entries.map(({ seq }) => seq));
        expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, at) => at + 1));
        const database = new DatabaseSync(remains);
        expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
        database.close();
        await again.close();
        lengths.add(seqs.length);
      }
    }
  }
  expect(lengths.size).toBeGreaterThan(5);
});

test("who comes sees what is only in the log of another one, and both write from then on", async () => {
  const path = temporaryFile();
  const mine = opened(path);
  const owner = await openAgent(mine);
  await owner.commit({ entries: [note("in the log")] });
  const theirs = opened(path);
  expect((await theirs.readJournal(keyOf(), 1)).flatMap(({ entries }) => entries)).toHaveLength(owner.seq);
  // The first one does not know yet that somebody is here.
  await owner.commit({ entries: [note("in the database")] });
  expect((await theirs.readJournal(keyOf(), 1)).flatMap(({ entries }) => entries)).toHaveLength(owner.seq);
  await theirs.pause(keyOf(), "ann", NOW);
  expect(await mine.readAgent(keyOf())).toMatchObject({ pause: { by: "ann" } });
  await create(mine, "another");
  expect(await agentsIn(theirs)).toEqual(["another", "desk"]);
});

test("who knows the file by another name finds the log too", async () => {
  const path = temporaryFile();
  const link = temporaryFile("link.db");
  symlinkSync(path, link);
  const mine = opened(link);
  await create(mine, "first");
  await create(mine, "second");
  expect(rowsIn(path, "agents")).toBe(1);
  expect(await agentsIn(opened(path))).toEqual(["first", "second"]);
});

test("who is alone again logs again", async () => {
  const path = temporaryFile();
  const mine = opened(path);
  await create(mine, "first");
  const theirs = sqliteStores(path);
  await create(theirs, "second");
  const ids = ["third"];
  await create(mine, "third");
  expect(rowsIn(path, "agents")).toBe(3);
  await theirs.close();
  // It looks now and then; a record is in the log before it is in the database.
  await expect
    .poll(async () => {
      ids.push(`more-${ids.length}`);
      await create(mine, ids.at(-1) ?? "");
      return Number(rowsIn(path, "agents")) < 2 + ids.length;
    })
    .toBe(true);
  expect(await agentsIn(opened(copyOf(path)))).toEqual(["first", "second", ...ids].sort());
});

test.each([
  ["before", false],
  ["after", true],
] as const)("a write at which another one comes %s its record is written counts once", async (_when, isAfter) => {
  const path = temporaryFile();
  const mine = opened(path);
  await create(mine, "first");
  const theirs = opened(path);
  let came: Promise<unknown> | undefined;
  const append = Reflect.get(SqliteLog.prototype, "append") as SqliteLog["append"];
  vi.spyOn(SqliteLog.prototype, "append").mockImplementation(function (this: SqliteLog, ...given) {
    // Stores write at once where no lock is in the way.
    if (!isAfter) came ??= theirs.createAgent(identityOf("theirs"), null);
    Reflect.apply(append, this, given);
    if (isAfter) came ??= theirs.createAgent(identityOf("theirs"), null);
  });
  expect(await create(mine, "mine")).toMatchObject({ created: true });
  expect(await came).toMatchObject({ created: true });
  expect(await agentsIn(mine)).toEqual(["first", "mine", "theirs"]);
  expect(await agentsIn(theirs)).toEqual(["first", "mine", "theirs"]);
  expect(await agentsIn(opened(copyOf(path)))).toEqual(["first", "mine", "theirs"]);
});

test("of two who want the same in that moment one gets it", async () => {
  const path = temporaryFile();
  const mine = opened(path);
  await create(mine, "first");
  const theirs = opened(path);
  let came: Promise<unknown> | undefined;
  const append = Reflect.get(SqliteLog.prototype, "append") as SqliteLog["append"];
  vi.spyOn(SqliteLog.prototype, "append").mockImplementation(function (this: SqliteLog, ...given) {
    came ??= theirs.createAgent(identityOf("wanted"), null);
    Reflect.apply(append, this, given);
  });
  expect(await create(mine, "wanted")).toMatchObject({ created: false });
  expect(await came).toMatchObject({ created: true });
});

test("while another program holds the lock, who logs goes on", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  await create(stores, "first");
  const locker = new DatabaseSync(path);
  locker.exec("BEGIN IMMEDIATE");
  await create(stores, "second");
  const copy = copyOf(path);
  locker.exec("ROLLBACK");
  locker.close();
  expect(await agentsIn(opened(copy))).toEqual(["first", "second"]);
});

test("what another program has changed in the file is seen by the next transaction", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  await openAgent(stores);
  await folded(path);
  const database = new DatabaseSync(path);
  database.exec("UPDATE agents SET record = 'nonsense'");
  database.close();
  await expect(stores.pause(keyOf(), "ann", NOW)).rejects.toThrow(/record of agent desk/);
});

test("a log that another program has written is refused, and left as it is, by whoever reads or writes", async () => {
  const path = temporaryFile();
  await create(opened(path), "first");
  const copy = copyOf(path);
  const log = `${copy}-log`;
  const writer = readFileSync(log, "utf8").split(" ").at(-1)?.trim() ?? "";
  const other = SqliteLog.create(log, writer);
  const statement = new Statement(new DatabaseSync(":memory:"), door, "ATTACH 'elsewhere' AS other", []);
  other.append(1, [{ statement, values: [] }], 0);
  other.close();
  const before = readFileSync(log);
  const stores = opened(copy);
  for (let time = 0; time < 2; time += 1) {
    await expect(agentsIn(stores)).rejects.toThrow(CorruptRecordError);
    await expect(create(stores, "second")).rejects.toThrow(CorruptRecordError);
  }
  expect(readFileSync(log)).toEqual(before);
});

test("without the log a copy is an earlier state", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  await create(stores, "first");
  await create(stores, "second");
  const copy = copyOf(path);
  rmSync(`${copy}-log`);
  const lost = opened(copy);
  expect(await agentsIn(lost)).toEqual(["first"]);
  await create(lost, "third");
  expect(await agentsIn(lost)).toEqual(["first", "third"]);
});

test.each([
  ["durability full", { durability: "full" }],
  ["a limit of the size", { maxBytes: 1_000_000 }],
] as const)("with %s nothing is logged", async (_name, options) => {
  const path = temporaryFile();
  const stores = opened(path, options);
  await create(stores, "first");
  await create(stores, "second");
  expect([rowsIn(path, "agents"), existsSync(`${path}-log`)]).toEqual([2, false]);
});

test("where no log can be made everything goes to the database", async () => {
  const path = temporaryFile();
  mkdirSync(`${path}-log`);
  const stores = opened(path);
  await create(stores, "first");
  await create(stores, "second");
  expect(rowsIn(path, "agents")).toBe(2);
});

test("what was cleared is not in the log either, once it is in the database", async () => {
  const path = temporaryFile();
  const stores = opened(path);
  const owner = await openAgent(stores);
  await owner.commit({ entries: [note("the-cleared-words")] });
  expect(readFileSync(`${path}-log`, "utf8")).toContain("the-cleared-words");
  await folded(path);
  expect(readFileSync(`${path}-log`, "utf8")).not.toContain("the-cleared-words");
});

/** What three users of one file do, each with a connection of its own. */
const acts = array(
  record({
    user: nat(2),
    does: constantFrom("create", "create", "create", "read", "pause", "close", "die"),
    agent: nat(5),
  }),
  { minLength: 5, maxLength: 40 },
);

test("three users who write, read, leave and die at random see all that was acknowledged, each thing once", async () => {
  await assert(
    asyncProperty(acts, async (all) => {
      let path = temporaryFile();
      let users: (Stores | undefined)[] = [];
      const dead: Stores[] = [];
      const created = new Set<string>();
      const paused = new Set<string>();
      // What users were told, and what they should have been.
      const told: unknown[] = [];
      const right: unknown[] = [];
      const look = async (stores: Stores): Promise<void> => {
        const listed = await stores.listAgents({ tenant: TENANT });
        told.push(listed.map(({ agentId, pause }) => ({ agentId, isPaused: pause !== null })));
        right.push([...created].sort().map((agentId) => ({ agentId, isPaused: paused.has(agentId) })));
      };
      for (const { user, does, agent } of all) {
        const stores = users[user] ?? sqliteStores(path);
        users[user] = stores;
        const agentId = `agent-${agent}`;
        if (does === "create") {
          told.push((await create(stores, agentId)).created);
          right.push(!created.has(agentId));
          created.add(agentId);
        } else if (does === "pause" && created.has(agentId)) {
          await stores.pause(keyOf(agentId), "ann", NOW);
          paused.add(agentId);
        } else if (does === "close") {
          await stores.close();
          users[user] = undefined;
        } else if (does === "die") {
          // All processes die at one moment; their files are found as they are.
          for (const each of users) if (each) dead.push(each);
          [path, users] = [copyOf(path), []];
        } else await look(stores);
      }
      for (const stores of [...users, ...dead]) await stores?.close();
      const last = sqliteStores(path);
      await look(last);
      await last.close();
      expect(told).toEqual(right);
    }),
    { numRuns: amount(200, 30) },
  );
});
