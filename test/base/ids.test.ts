import { assert, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { assertId, createId, shortHash } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

describe("ids", () => {
  it("are UUIDs, after the prefix if there is one, and always valid", () => {
    expect(createId()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(createId("turn")).toMatch(/^turn_[0-9a-f-]{36}$/);
    expect(new Set(Array.from({ length: 100 }, () => createId())).size).toBe(100);
    expect(() => assertId("agentId", createId("turn"))).not.toThrow();
  });

  it("hash to 16 hexadecimal digits, the same on every machine", () => {
    expect(shortHash("abc")).toBe("ba7816bf8f01cfea");
    assert(property(string({ unit: "binary" }), (text) => /^[0-9a-f]{16}$/.test(shortHash(text))));
  });

  it.each(["a", "7", "desk-7", "A.b_c@d-e", "x".repeat(128)])("accept %s", (id) => {
    expect(() => assertId("agentId", id)).not.toThrow();
  });

  it.each([
    "",
    ".",
    "..",
    "-a",
    "_a",
    "@a",
    "a b",
    "a/b",
    "a:b",
    "a\n",
    "é",
    "x".repeat(129),
    "__proto__",
    "constructor",
    "prototype",
  ])("refuse %j", (id) => {
    expect(() => assertId("agentId", id)).toThrow(InvalidInputError);
  });

  it("invalid ids are refused with what is wrong and what is expected", () => {
    expect(() => assertId("agentId", "a b")).toThrow(/agentId "a b".*1 to 128 characters of A-Z a-z 0-9/);
    expect(() => assertId("turnId", 7)).toThrow("turnId must be a string, not number");
    expect(() => assertId("turnId", null)).toThrow("turnId must be a string, not null");
  });
});
