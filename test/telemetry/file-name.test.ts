import { basename, join } from "node:path";
import { string as anyText, assert, property, tuple } from "fast-check";
import { expect, it, test } from "vitest";
import { fileNameOf } from "../../src/telemetry/log-files.ts";

it("S6: hostile ids stay in the folder", () => {
  const ids = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a\0b",
    "C:\\x",
    "a\nb",
    ": { } *",
    "-rf",
    "~root",
    "CON",
    "nul.txt",
    "\uD800",
  ];
  for (const id of ids) {
    const name = fileNameOf(id);
    expect(name).toMatch(/^[a-z0-9._~@%-]+$/);
    expect(name).not.toMatch(/^[.~-]/);
    expect(basename(join("/logs", `${name}.log`))).toBe(`${name}.log`);
  }
  expect(fileNameOf("nul.txt")).toBe("%6eul.txt");
  expect(fileNameOf("desk-7.a@b_c")).toBe("desk-7.a@b_c");
});

test("two ids never share a name, even on a case-insensitive file system, and no name is too long", () => {
  const id = anyText({ unit: "binary", maxLength: 300 });
  assert(
    property(tuple(id, id), ([one, other]) => {
      expect(fileNameOf(one).length).toBeLessThan(200);
      expect(fileNameOf(one).toLowerCase() === fileNameOf(other).toLowerCase()).toBe(one === other);
    }),
    { numRuns: 10_000 },
  );
  expect(fileNameOf("Desk")).not.toBe(fileNameOf("desk"));
  expect(fileNameOf("\uD800")).not.toBe(fileNameOf("\uD801"));
  expect(fileNameOf("x".repeat(300))).not.toBe(fileNameOf("x".repeat(301)));
});
