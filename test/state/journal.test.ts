import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import {
  type Entry,
  entrySchema,
  JOURNAL_VERSION,
  type Json,
  readEntries,
  type Upcaster,
  upcasters,
} from "../../src/state/index.ts";
import { journalOf, modelRequested, modelResponded, turnEnded, turnStarted } from "../machines/bodies.ts";
import { amount } from "../support/full.ts";
import { arbitraryOf } from "./arbitrary-of.ts";

const journal = journalOf([turnStarted(), modelRequested(), modelResponded(), turnEnded()]);
const stored = (): Json[] => JSON.parse(JSON.stringify(journal)) as Json[];

/** An upcaster that gives one part of every entry another name. */
function rename(from: string, to: string): Upcaster {
  return (entries) =>
    entries.map((entry) => {
      const { [from]: value, ...rest } = entry as { readonly [key: string]: Json };
      return value === undefined ? rest : { ...rest, [to]: value };
    });
}

test("entries of every kind are read as they were written", () => {
  expect(readEntries(JOURNAL_VERSION, stored(), "here")).toEqual(journal);
  const anything = fc.array(arbitraryOf(entrySchema), { maxLength: 4 });
  fc.assert(
    fc.property(anything, (entries) => {
      const read = readEntries(JOURNAL_VERSION, JSON.parse(JSON.stringify(entries)), "here");
      expect(read).toEqual(entries);
    }),
    { numRuns: amount(100, 17) },
  );
});

test("every version between the first and the current one has its upcaster", () => {
  expect([...upcasters.keys()]).toEqual(Array.from({ length: JOURNAL_VERSION - 1 }, (_, index) => index + 1));
});

describe("an older version", () => {
  /** Version 1 called the time `when`, version 2 `time`, version 3 is what is written now. */
  const steps = new Map([
    [1, rename("when", "time")],
    [2, rename("time", "at")],
  ]);
  const ofVersion = (name: string): Json[] => [...rename("at", name)(stored())];

  test("is upcast step by step", () => {
    expect(readEntries(1, ofVersion("when"), "here", steps, 3)).toEqual(journal);
    expect(readEntries(2, ofVersion("time"), "here", steps, 3)).toEqual(journal);
    expect(readEntries(3, stored(), "here", steps, 3)).toEqual(journal);
  });

  test("is checked after it was upcast", () => {
    expect(() => readEntries(2, ofVersion("when"), "row 7", steps, 3)).toThrow(CorruptRecordError);
    expect(() => readEntries(2, ofVersion("when"), "row 7", steps, 3)).toThrow(/row 7.*at 0\.at/s);
  });

  test("without a way to the current one is refused", () => {
    expect(() => readEntries(1, ofVersion("when"), "here", new Map([[2, rename("time", "at")]]), 3)).toThrow(
      /journal version 1 cannot be converted to 2/,
    );
  });

  test("that is an object in place of a list is refused before any upcaster sees it", () => {
    expect(() => readEntries(1, { entries: [] }, "here", steps, 3)).toThrow(CorruptRecordError);
  });
});

test.each([JOURNAL_VERSION + 1, 0, -1, 1.5, Number.NaN])("version %s is unknown", (version) => {
  expect(() => readEntries(version, stored(), "row 7")).toThrow(CorruptRecordError);
  expect(() => readEntries(version, stored(), "row 7")).toThrow(/row 7: journal version .* is unknown.*reads 1 to/);
});

describe("a corrupt record", () => {
  const withFirst = (change: object): unknown =>
    stored().map((entry, index) => (index ? entry : Object.assign(entry as object, change)));
  const corrupt: { what: string; entries: unknown }[] = [
    { what: "no list", entries: { 0: journal[0] } },
    { what: "null", entries: null },
    { what: "a text", entries: JSON.stringify(journal) },
    { what: "an unknown type", entries: withFirst({ type: "turn.begun" }) },
    { what: "a seq of 0", entries: withFirst({ seq: 0 }) },
    { what: "a time that is a text", entries: withFirst({ at: "2026-01-01" }) },
    { what: "a wrong part", entries: withFirst({ limits: { maxTokens: -1 } }) },
    { what: "a missing part", entries: stored().map((entry) => ({ ...(entry as object), turnId: undefined })) },
    { what: "a hole", entries: [...stored(), null] },
  ];

  test.each(corrupt)("($what) is refused and left as it is", ({ entries }) => {
    const before = structuredClone(entries);
    expect(() => readEntries(JOURNAL_VERSION, entries, "row 7")).toThrow(CorruptRecordError);
    expect(entries).toEqual(before);
  });

  test("reads nothing into a prototype", () => {
    const text = JSON.stringify(stored()).replace('"arguments"', '"x"').replace("{", '{"__proto__":{"isAdmin":true},');
    const read = readEntries(JOURNAL_VERSION, JSON.parse(text), "here") as (Entry & { isAdmin?: unknown })[];
    expect(read[0]?.isAdmin).toBeUndefined();
    expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined();
  });
});
