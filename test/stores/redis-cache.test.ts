import { expect, test } from "vitest";
import { TreeCache } from "../../src/stores/redis/redis-cache.ts";

test("a row written by others is unknown until all rows are loaded; after that a missing row does not exist", () => {
  const cache = new TreeCache();
  cache.noteAll(new Map([["a", "1|{}"]]));
  expect(cache.row("b")).toEqual({ version: "", text: undefined });
  cache.note("b", "2|{}");
  for (const name of ["a", "b"]) cache.forgetRow(name);
  expect([cache.row("a"), cache.row("b")]).toEqual([undefined, undefined]);
  cache.noteAll(new Map([["a", "3|{}"]]));
  expect(cache.row("a")).toMatchObject({ version: "3" });
  expect(cache.row("b")).toEqual({ version: "", text: undefined });
});
