import { expect, test } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/errors/index.ts";
import { take, taken } from "../../src/state/index.ts";

const schema = z.object({ name: z.string(), tags: z.array(z.string()).optional() });

test("take() returns a frozen copy", () => {
  const given = { name: "a", tags: ["x"], more: 1 };
  const value = take(schema, given, "the thing");
  given.tags.push("y");
  expect(value).toEqual({ name: "a", tags: ["x"] });
  expect(Object.isFrozen(value) && Object.isFrozen(value.tags)).toBe(true);
});

test("the problem names the position of an invalid value", () => {
  expect(taken(schema, { name: "a", tags: [5] })).toEqual({
    ok: false,
    problem: "tags[0]: Invalid input: expected string, received number",
  });
  expect(taken(schema, { name: 1n })).toEqual({ ok: false, problem: "name: the bigint 1n has no JSON form" });
  expect(() => take(schema, null, "the thing")).toThrow(InvalidInputError);
  expect(() => take(schema, null, "the thing")).toThrow("the thing cannot be taken: (root): Invalid input");
});
