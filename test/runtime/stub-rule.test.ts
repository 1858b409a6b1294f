// Which stub answers a call, and what a mismatch names.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { stubFor } from "../../src/actors/stub-rule.ts";
import type { Json, JsonObject, SessionStub } from "../../src/state/index.ts";
import { amount } from "../support/full.ts";

const definition = { name: "desk", hash: "" };

function answerOf(stubs: readonly SessionStub[], args: Json, uses: Readonly<Record<string, number>> = {}) {
  const answer = stubFor({ stubs, definition }, { tool: "look", arguments: args }, uses);
  return answer.stub ? answer.index : answer.mismatch;
}

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
const object = fc.dictionary(fc.string(), json, { noNullPrototype: true }) as fc.Arbitrary<JsonObject>;

test("arguments fit themselves, and a part of them unless they must be equal", () => {
  fc.assert(
    fc.property(object, fc.string(), json, (args, name, value) => {
      fc.pre(!Object.hasOwn(args, name) && name !== "__proto__");
      const more = { ...args, [name]: value };
      expect(answerOf([{ tool: "look", arguments: args, output: 1, match: "equal" }], args)).toBe(0);
      expect(answerOf([{ tool: "look", arguments: args, output: 1 }], more)).toBe(0);
      expect(answerOf([{ tool: "look", arguments: args, output: 1, match: "equal" }], more)).toContain(
        "is not expected",
      );
      expect(answerOf([{ tool: "look", arguments: more, output: 1 }], args)).toContain("is missing");
    }),
    { numRuns: amount(1_000, 100) },
  );
});

describe("a mismatch names the nearest stub and what differs", () => {
  const near: readonly SessionStub[] = [
    { tool: "look", arguments: { id: 1, of: { city: "Bonn", tags: ["a", "b"] } }, output: 1 },
    { tool: "look", arguments: { id: 2 }, output: 2, times: 2 },
    { tool: "look", agent: "clerk", output: 3 },
  ];
  test.each<[Json, Readonly<Record<string, number>>, unknown]>([
    [{ id: 2, more: true }, { 1: 1 }, 1],
    [{ id: 2 }, { 1: 2 }, expect.stringContaining('Nearest is stub 2, look({"id":2}): it has answered its 2 calls.')],
    [
      { id: 1, of: { city: "Bonn", tags: ["a", "c"] } },
      {},
      expect.stringContaining('arguments.of.tags[1] is "c", expected "b".'),
    ],
    [
      { id: 1, of: { city: "Bonn", tags: ["a"] } },
      {},
      expect.stringContaining("arguments.of.tags has 1 items, not 2."),
    ],
    [{ id: "2" }, {}, expect.stringContaining('arguments.id is "2", expected 2.')],
    [{}, {}, expect.stringContaining("arguments.id is missing, expected 2.")],
    [null, {}, expect.stringContaining('arguments is null, expected {"id":')],
    [{ id: 1, of: "x".repeat(5_000) }, {}, expect.stringContaining("…")],
  ])("%j", (args, uses, expected) => {
    const answer = answerOf(near, args, uses);
    expect(answer).toEqual(expected);
    expect(String(answer).length).toBeLessThan(2_000);
  });

  test("and lists the tools with stubs if this one has none", () => {
    expect(answerOf([{ tool: "pay", output: 1 }], {})).toContain(
      'No stub names the tool "look"; there are stubs for pay.',
    );
    expect(answerOf(near.slice(2), {})).toContain('Its stubs are for agent "clerk".');
  });
});
