import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { UnsupportedError } from "../../src/errors/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { type Migration, migrations } from "../../src/stores/sqlite/migrations/index.ts";
import { migrate } from "../../src/stores/sqlite/sqlite-migrations.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { startProgram } from "../support/waiting-process.ts";
import { temporaryFile } from "./temporary-file.ts";

function onFile<T>(path: string, work: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path);
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const nextNumber = migrations.length + 1;
const next = (apply: Migration["apply"]): readonly Migration[] => [
  ...migrations,
  { number: nextNumber, troupe: "9.1.0", apply },
];
const numbersIn = (database: DatabaseSync) =>
  database
    .prepare("SELECT number FROM troupe_migrations ORDER BY number")
    .all()
    .map(({ number }) => number);

/** A file with an agent. */
async function written(): Promise<string> {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores);
  await owner.commit({ entries: [note("kept")] });
  await stores.close();
  return path;
}

test("steps are numbered from 1, without gaps", () => {
  expect(migrations.map(({ number }) => number)).toEqual(migrations.map((_step, index) => index + 1));
});

test("a file of an earlier layout is migrated once, with all its data", async () => {
  const path = await written();
  let count = 0;
  const steps = next((database) => {
    count += 1;
    database.exec("ALTER TABLE journal ADD COLUMN added TEXT NOT NULL DEFAULT 'new'");
  });
  for (let opened = 0; opened < 2; opened += 1) onFile(path, (database) => migrate(database, path, steps));
  expect(count).toBe(1);
  onFile(path, (database) => {
    expect(numbersIn(database)).toEqual(steps.map(({ number }) => number));
    const rows = database.prepare("SELECT entries, added FROM journal ORDER BY cursor").all();
    expect(rows.at(-1)).toMatchObject({ entries: expect.stringContaining("kept"), added: "new" });
  });
});

test("a step that fails leaves the file unchanged", async () => {
  const path = await written();
  const before = readFileSync(path);
  const steps = next((database) => {
    database.exec("DROP TABLE journal; CREATE TABLE half (done TEXT)");
    throw new Error("the step failed");
  });
  expect(() => onFile(path, (database) => migrate(database, path, steps))).toThrow("the step failed");
  expect(readFileSync(path)).toEqual(before);
  const stores = sqliteStores(path);
  expect(await stores.readJournal(agentKey(), 2)).toMatchObject([{ entries: [{ message: "kept" }] }]);
  await stores.close();
});

test("processes that open a new file concurrently create its tables once", async () => {
  const path = temporaryFile();
  const program = fileURLToPath(new URL("opening.ts", import.meta.url));
  const processes = Array.from({ length: 4 }, () => startProgram(program, [path]));
  for (const one of processes) expect(await one.ended).toMatchObject({ stderr: "", code: 0 });
  expect(onFile(path, numbersIn)).toEqual(migrations.map(({ number }) => number));
});

test("a file of a newer layout is refused with the version that reads it, and left unchanged", async () => {
  const path = await written();
  onFile(path, (database) =>
    migrate(
      database,
      path,
      next(() => undefined),
    ),
  );
  const before = readFileSync(path);
  const open = () => sqliteStores(path);
  expect(open).toThrow(UnsupportedError);
  expect(open).toThrow(
    `has layout ${nextNumber}, and this version of troupe reads layouts up to ${migrations.length}; use troupe 9.1.0`,
  );
  expect(readFileSync(path)).toEqual(before);
});

test("a file from before layouts were numbered is refused, and left unchanged", () => {
  const path = temporaryFile();
  onFile(path, (database) =>
    database.exec(
      "CREATE TABLE agents (a); CREATE TABLE standings (a); CREATE TABLE journal (a); PRAGMA user_version = 6",
    ),
  );
  const before = readFileSync(path);
  const open = () => sqliteStores(path);
  expect(open).toThrow(UnsupportedError);
  expect(open).toThrow(/before its layouts were numbered \(6\).*give the path of a new file/);
  expect(readFileSync(path)).toEqual(before);
});
