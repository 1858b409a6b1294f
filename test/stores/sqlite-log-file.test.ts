import fs, { appendFileSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import {
  array,
  assert,
  constant,
  constantFrom,
  double,
  maxSafeInteger,
  nat,
  oneof,
  property,
  string,
  tuple,
} from "fast-check";
import { expect, test, vi } from "vitest";
import { CorruptRecordError, StoreUnavailableError } from "../../src/errors/index.ts";
import { withoutOverwritten } from "../../src/stores/sqlite/later-writes.ts";
import { recordsAfter, removeLog, SqliteLog } from "../../src/stores/sqlite/sqlite-log.ts";
import { Statement, type Write } from "../../src/stores/sqlite/sqlite-statement.ts";
import { amount } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

const door = { later: () => true, needFile: () => {}, readAside: () => {} };
const database = new DatabaseSync(":memory:");
const statement = (sql: string, sets: readonly string[] = []): Statement => new Statement(database, door, sql, sets);
const insert = statement("INSERT INTO t VALUES (?)");
const statements = [insert, statement("UPDATE t SET x = ? WHERE id = ?"), statement("DELETE FROM t WHERE n = 's1:'")];

const values = array(
  oneof(
    constant(null),
    string({ unit: "grapheme" }),
    maxSafeInteger(),
    double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
  ),
  { maxLength: 5 },
);
const writes = array(
  tuple(constantFrom(...statements), values).map(([of, given]): Write => ({ statement: of, values: given })),
  { maxLength: 4 },
);

/** A log of these transactions, numbered from 1. */
function logOf(path: string, transactions: readonly (readonly Write[])[]): SqliteLog {
  const log = SqliteLog.create(path, "writer");
  transactions.forEach((transaction, index) => log.append(index + 1, transaction, 0));
  return log;
}

const plain = (transactions: readonly (readonly Write[])[]) =>
  transactions.map((transaction, index) => ({
    number: index + 1,
    writes: transaction.map((write) => ({ sql: write.statement.sql, values: [...write.values] })),
  }));

test("records come back as they were written, those before a number left out", () => {
  assert(
    property(array(writes, { maxLength: 6 }), nat(7), (transactions, after) => {
      const path = temporaryFile("log");
      logOf(path, transactions).close();
      // A log whose first record is missing does not go on from what is in the database.
      expect(recordsAfter(path, "writer", after)).toEqual(plain(transactions).slice(after));
      expect(recordsAfter(path, "another", after)).toEqual([]);
    }),
    { numRuns: amount(500, 100) },
  );
});

test("a log that is cut anywhere has the records that are whole, and one with a damaged byte those before it", () => {
  const path = temporaryFile("log");
  const transactions = ["one", "two, ü", "three"].map((text): Write[] => [
    { statement: insert, values: [text, 1.5, null] },
  ]);
  const ends: number[] = [];
  const log = SqliteLog.create(path, "writer");
  const start = statSync(path).size;
  transactions.forEach((transaction, index) => {
    log.append(index + 1, transaction, 0);
    ends.push(statSync(path).size);
  });
  log.close();
  const bytes = readFileSync(path);
  for (let length = 0; length <= bytes.length; length += 1) {
    writeFileSync(path, bytes.subarray(0, length));
    const whole = ends.filter((end) => end <= length).length;
    expect(recordsAfter(path, "writer", 0)).toEqual(plain(transactions).slice(0, whole));
  }
  for (let at = start; at < bytes.length; at += 1) {
    const damaged = Buffer.from(bytes);
    damaged.writeUInt8((bytes.readUInt8(at) + 1) % 256, at);
    writeFileSync(path, damaged);
    const whole = ends.filter((end) => end <= at).length;
    expect(recordsAfter(path, "writer", 0)).toEqual(plain(transactions).slice(0, whole));
  }
});

test("what is left of earlier records is not read, and neither is a log that begins too late", () => {
  const path = temporaryFile("log");
  const log = logOf(path, [[{ statement: insert, values: ["one"] }], [{ statement: insert, values: ["two"] }]]);
  const old = readFileSync(path);
  log.restart();
  log.append(3, [{ statement: insert, values: ["thr"] }], 0);
  const fresh = readFileSync(path);
  log.close();
  expect(recordsAfter(path, "writer", 2).map(({ number }) => number)).toEqual([3]);
  expect(recordsAfter(path, "writer", 1)).toEqual([]);
  // As if the file had not become shorter.
  appendFileSync(path, old.subarray(fresh.length));
  expect(recordsAfter(path, "writer", 2).map(({ number }) => number)).toEqual([3]);
});

test("a statement is written out once in a log, and again in the next one, whatever is left of the one before", () => {
  const path = temporaryFile("log");
  const [one, two] = statements.map((of): Write => ({ statement: of, values: [] }));
  if (!one || !two) throw new Error("There are too few statements.");
  const log = logOf(path, [[one, two]]);
  const start = statSync(path).size;
  log.append(2, [two], 0);
  const old = readFileSync(path);
  expect(old.toString().split(two.statement.sql)).toHaveLength(2);
  log.restart();
  log.append(3, [two], 0);
  log.append(4, [two], 0);
  log.close();
  expect(readFileSync(path, "utf8").split(two.statement.sql)).toHaveLength(2);
  // As if the file had not become shorter: the record that is left names a statement by its place in the log before.
  appendFileSync(path, old.subarray(start));
  const read = recordsAfter(path, "writer", 2).map(({ number, writes: [first] }) => [number, first?.sql]);
  expect(read).toEqual([
    [3, two.statement.sql],
    [4, two.statement.sql],
  ]);
});

test("a statement that a failed write had written out is written out again", () => {
  const path = temporaryFile("log");
  const log = logOf(path, [[{ statement: insert, values: ["one"] }]]);
  const other = statement("UPDATE t SET y = ?");
  const full = vi.spyOn(fs, "writeSync").mockImplementationOnce(() => {
    throw Object.assign(new Error("no room"), { code: "ENOSPC" });
  });
  syncBuiltinESMExports();
  expect(() => log.append(2, [{ statement: other, values: ["two"] }], 0)).toThrow(StoreUnavailableError);
  full.mockRestore();
  syncBuiltinESMExports();
  log.append(2, [{ statement: other, values: ["two"] }], 0);
  log.close();
  expect(recordsAfter(path, "writer", 1)).toEqual([{ number: 2, writes: [{ sql: other.sql, values: ["two"] }] }]);
});

test("a statement that this package does not write is refused", () => {
  const path = temporaryFile("log");
  logOf(path, [[{ statement: statement("ATTACH 'elsewhere' AS other"), values: [] }]]).close();
  expect(() => recordsAfter(path, "writer", 0)).toThrow(CorruptRecordError);
  // A place that no statement has.
  const text = "1;1;n7;0;";
  const frame = Buffer.alloc(8);
  frame.writeUInt32LE(text.length, 0);
  frame.writeUInt32LE(crc32(text), 4);
  SqliteLog.create(path, "writer").close();
  appendFileSync(path, Buffer.concat([frame, Buffer.from(text)]));
  expect(() => recordsAfter(path, "writer", 0)).toThrow(CorruptRecordError);
});

test("a file that cannot be written is a store that is not available", () => {
  const path = temporaryFile("log");
  const log = SqliteLog.create(path, "writer");
  log.close();
  const append = () => log.append(1, [{ statement: insert, values: ["one"] }], 0);
  expect(append).toThrow(StoreUnavailableError);
  expect(recordsAfter(path, "writer", 0)).toEqual([]);
  removeLog(path);
  removeLog(path);
  expect(recordsAfter(path, "writer", 0)).toEqual([]);
});

function write(of: Statement | undefined, ...given: number[]): Write {
  if (of === undefined) throw new Error("There is no such statement.");
  return { statement: of, values: given };
}

test("of writes to one row those are left out whose columns are all set again", () => {
  const [one, two, both] = [["a"], ["b"], ["a", "b"]].map((sets) => statement("UPDATE t SET x = ? WHERE id = ?", sets));
  const all = [
    write(both, 1, 7),
    write(one, 2, 7),
    write(insert, 3),
    write(one, 4, 7),
    write(two, 5, 8),
    write(two, 6, 7),
    write(one, 9, 7),
  ];
  const kept = withoutOverwritten(all, all.length).map((each) => each.values[0]);
  expect(kept).toEqual([3, 5, 6, 9]);
  expect(withoutOverwritten(all, 2).map((each) => each.values[0])).toEqual([1, 2]);
});
