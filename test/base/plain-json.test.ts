import { anything, assert, jsonValue, property } from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assertKnownOptions,
  copyOfJson,
  deepFreeze,
  describeValue,
  nearestName,
  renderPath,
  toJson,
} from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

function problemOf(value: unknown, bounds?: Parameters<typeof toJson>[1]): string {
  const result = toJson(value, bounds);
  if (result.ok) throw new Error("expected a refusal");
  return `${renderPath(result.issue.path)}: ${result.issue.message}`;
}

describe("toJson", () => {
  test("copies any JSON value and omits undefined members", () => {
    assert(
      property(jsonValue(), (value) => {
        const json = JSON.parse(JSON.stringify(value)) as unknown;
        const plain = toJson(json);
        if (!plain.ok) return plain.issue.path.includes("__proto__");
        expect(plain.json).toEqual(json);
        return typeof json !== "object" || json === null || plain.json !== json;
      }),
    );
    expect(toJson({ a: undefined, b: 1 })).toEqual({ ok: true, json: { b: 1 } });
  });

  test("names the first position that is not JSON, and its value", () => {
    expect(problemOf({ a: [1, Number.NaN] })).toBe("a[1]: NaN has no JSON form");
    expect(problemOf({ a: 7n })).toBe("a: the bigint 7n has no JSON form");
    expect(problemOf({ when: new Map() })).toBe("when: an object of class Map has no JSON form");
    expect(problemOf([undefined])).toBe("[0]: undefined has no JSON form");
    expect(problemOf(JSON.parse('{"a":{"__proto__":1}}'))).toBe("a.__proto__: this key is not allowed");
  });

  test("limits depth, cycles, size and sparse lists", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(problemOf(cycle)).toContain("more than 200 levels, or a cycle");
    expect(problemOf([[[1]]], { maxDepth: 2 })).toContain("more than 2 levels");
    expect(problemOf({ a: "xxxxx" }, { maxSize: 4 })).toBe("a: it is larger than the permitted 4 characters");
    const sparse = Object.assign([], { length: 4_000_000_000 });
    expect(problemOf(sparse)).toContain("larger than the permitted 16777216 characters");
  });

  test("reports errors thrown during the read, and never throws itself", () => {
    const accessor = {
      get a(): string {
        throw new Error("not yet");
      },
    };
    expect(problemOf(accessor)).toBe("a: cannot be read: not yet");
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(problemOf({ a: proxy })).toContain("a: cannot be read:");
    expect(describeValue(proxy)).toBe("an object that cannot be read");
    const foreign = { withBigInt: true, withDate: true, withMap: true, withSet: true, withTypedArray: true };
    assert(property(anything(foreign), (value) => typeof toJson(value).ok === "boolean"));
  });
});

test("a copy of JSON is a new value", () => {
  const json = { a: [{ b: 1 }] };
  expect(copyOfJson(json)).toEqual(json);
  expect(copyOfJson(json)).not.toBe(json);
});

test("a frozen value is frozen at every depth", () => {
  const frozen = deepFreeze({ a: [{ b: 1 }] });
  expect([frozen, frozen.a, frozen.a[0]].map((one) => Object.isFrozen(one))).toEqual([true, true, true]);
});

describe("names", () => {
  test("the nearest name is suggested if it is near", () => {
    const known = ["agentId", "budget", "metadata"];
    expect(["agentid", "bugdet", "metdata", "store", ""].map((name) => nearestName(name, known))).toEqual([
      "agentId",
      "budget",
      "metadata",
      undefined,
      undefined,
    ]);
  });

  test("unknown options are refused with the nearest valid one", () => {
    const options = { of: "open()", names: ["agentId", "budget"], instead: { maxSteps: "budget: { maxSteps }" } };
    const refusal = (given: unknown) => () => assertKnownOptions(given, options);
    expect(refusal({ agentid: 1 })).toThrow(
      'open() has no option "agentid": did you mean agentId? Its options are agentId, budget',
    );
    expect(refusal({ agentid: 1 })).toThrow(InvalidInputError);
    expect(refusal({ maxSteps: 1 })).toThrow("did you mean budget: { maxSteps }?");
    expect(refusal({ constructor: 1 })).toThrow('has no option "constructor"');
    expect(refusal("me")).toThrow("open() expects its options as an object { agentId, budget }, not a text");
    expect(refusal(null)).toThrow("not null");
    expect(refusal(undefined)).not.toThrow();
    expect(refusal({ agentId: "a" })).not.toThrow();
  });
});
