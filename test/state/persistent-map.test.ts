import { describe, expect, it } from "vitest";
import { PersistentMap } from "../../src/state/index.ts";

const filled = (size: number) => {
  let map = PersistentMap.empty<number>();
  for (let index = 0; index < size; index += 1) map = map.with(`k${index}`, index);
  return map;
};

describe("a map of versions", () => {
  it.each([0, 1, 31, 32, 33, 1_023, 1_024, 1_025, 33_000])("holds %i entries in the order of their keys", (size) => {
    const map = filled(size);
    expect(map.size).toBe(size);
    expect([...map.values()]).toEqual(Array.from({ length: size }, (_, index) => index));
    expect([...map.entries()].at(-1)).toEqual(size === 0 ? undefined : [`k${size - 1}`, size - 1]);
    expect([map.get("k0"), map.get(`k${size - 1}`), map.get(`k${size}`)]).toEqual(
      size === 0 ? [undefined, undefined, undefined] : [0, size - 1, undefined],
    );
  });

  it("keeps every version as it was", () => {
    const versions = [PersistentMap.empty<number>()];
    const expected: Record<string, number>[] = [{}];
    for (let turn = 1; turn <= 400; turn += 1) {
      const key = `k${(turn * 7) % 131}`;
      versions.push((versions.at(-1) ?? filled(0)).with(key, turn));
      expected.push({ ...expected.at(-1), [key]: turn });
    }
    expect(versions.map((version) => version.record())).toEqual(expected);
    expect(versions.map((version) => Object.keys(version.record()))).toEqual(expected.map((one) => Object.keys(one)));
  });

  it("goes on from any version in more ways than one", () => {
    const base = filled(40);
    const one = base.with("left", 1).with("both", 2);
    const other = base.with("right", 3).with("both", 4).with("left", 5);
    expect(one.record()).toEqual({ ...base.record(), left: 1, both: 2 });
    expect(other.record()).toEqual({ ...base.record(), right: 3, both: 4, left: 5 });
    expect([base.get("left"), one.get("right"), other.get("both")]).toEqual([undefined, undefined, 4]);
    expect(base.size).toBe(40);
  });

  it("takes any text for a key, and gives a frozen record, the same each time", () => {
    const map = PersistentMap.empty<number>().with("__proto__", 1).with("constructor", 2).with("7", 3);
    expect(map.get("__proto__")).toBe(1);
    expect(map.get("toString")).toBeUndefined();
    expect(Object.entries(map.record())).toHaveLength(3);
    expect(Object.isFrozen(map.record())).toBe(true);
    expect(map.record()).toBe(map.record());
  });
});
