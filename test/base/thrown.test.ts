import { expect, it } from "vitest";
import { readableThrown, wordsOfThrown } from "../../src/base/index.ts";
import { foreignValues } from "../support/foreign-values.ts";

it("an ordinary error is returned unchanged, and so is a value that is not an object", () => {
  const error = new RangeError("out of range", { cause: { deep: true } });
  expect(readableThrown(error)).toBe(error);
  expect(wordsOfThrown(error)).toBe("out of range");
  const frozen = Object.freeze(new Error("frozen"));
  expect(readableThrown(frozen)).toBe(frozen);
  expect(readableThrown("a text")).toBe("a text");
  expect(wordsOfThrown("a text")).toBe("a text");
  expect(readableThrown(undefined)).toBe(undefined);
});

it.each(Object.entries(foreignValues))("%s can be read any number of times", (_name, value) => {
  const read = readableThrown(value());
  for (let time = 0; time < 2; time += 1) {
    expect(typeof wordsOfThrown(read)).toBe("string");
    expect(isReadable(read)).toBe(true);
  }
});

it("an unreadable error and a value that is not an error get a message that states this", () => {
  const { proxy, revoke } = Proxy.revocable(new Error("x"), {});
  revoke();
  expect(readableThrown(proxy)).toMatchObject({ name: "thrown", message: "an unreadable value was thrown" });
  expect(readableThrown({ code: 5 })).toMatchObject({ message: "an object was thrown, not an error" });
  class Secretive extends Error {
    get details(): never {
      throw new Error("not to be read");
    }
  }
  expect(readableThrown(new Secretive("x"))).toMatchObject({ message: "an unreadable value was thrown" });
  const unnamed = Object.assign(new Error("words"), { name: 5 });
  expect(readableThrown(unnamed)).toMatchObject({ name: "Error", message: "words" });
});

function isReadable(read: unknown): boolean {
  if (read instanceof Error) return typeof read.name === "string" && typeof read.message === "string";
  return read === null || typeof read !== "object";
}
