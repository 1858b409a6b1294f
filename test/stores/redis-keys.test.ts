import { assert, constantFrom, oneof, property, string, tuple } from "fast-check";
import { expect, test } from "vitest";
import { InvalidInputError } from "../../src/errors/index.ts";
import { agentParts, fields, pairOf, RedisKeys, treeParts } from "../../src/stores/redis/redis-keys.ts";
import { amount } from "../support/full.ts";

/** Parts that would be ambiguous if keys were concatenated. */
const risky = constantFrom(
  "a",
  "a/b",
  "/",
  ":",
  "{",
  "}",
  "{a}",
  "}{",
  "a\0",
  "\0",
  "%7B",
  "%",
  "~",
  "a~b",
  "*",
  "",
  "1:",
  "rows",
  "ä",
  "a\u0308",
  "\u{1f600}",
);
const id = oneof(
  risky,
  string({ unit: "binary", maxLength: 8 }),
  tuple(risky, risky).map((parts) => parts.join("")),
);
const seed = 5;
const keys = new RedisKeys("p:");

/** All keys and row names of an agent. */
function namesOf(tenant: string, agentId: string): string[] {
  const tree = keys.treeOf(tenant, agentId);
  return [
    ...agentParts.map((part) => tree.ofAgent(part, agentId)),
    ...[fields.record(agentId), fields.head(agentId), fields.children(agentId), fields.artifacts(agentId)].map(
      (field) => `${tree.rows} ${field}`,
    ),
  ];
}

/** The hash tag from which a cluster computes the slot: the text between the first braces. */
function tagIn(key: string): string | undefined {
  return /^[^{]*\{([^}]+)\}/.exec(key)?.[1];
}

test("no two agents share a key, with any text in their ids and tenants", () => {
  assert(
    property(id, id, id, id, (tenant, agentId, otherTenant, otherId) => {
      const isSame = tenant === otherTenant && agentId === otherId;
      const names = namesOf(tenant, agentId);
      const others = new Set(namesOf(otherTenant, otherId));
      expect(new Set(names).size).toBe(names.length);
      expect(names.filter((name) => others.has(name))).toHaveLength(isSame ? names.length : 0);
    }),
    { numRuns: amount(10_000, 1_670), seed },
  );
});

test("all keys of a tree are in one slot, and other trees may be in others", () => {
  assert(
    property(id, id, id, (tenant, root, hash) => {
      const rootId = root.replaceAll("~", "");
      const [tree, ofChild] = [keys.treeOf(tenant, rootId), keys.treeOf(tenant, `${rootId}~${hash}`)];
      expect(ofChild.rows).toBe(tree.rows);
      const all = [tree.meta, tree.lock, tree.expiring, tree.projections];
      all.push(
        ...treeParts.map((part) => tree[part]),
        ...agentParts.map((part) => tree.ofAgent(part, `${rootId}~${hash}`)),
      );
      expect(new Set(all.map(tagIn))).toEqual(new Set([tree.tag]));
      expect(keys.ofTag(tree.tag).rows).toBe(tree.rows);
      expect(keys.ofTag(tree.tag).tenant).toBe(tenant);
    }),
    { numRuns: amount(10_000, 1_670), seed },
  );
});

test("the ids of one agent are distinguished from those of another", () => {
  assert(
    property(id, id, id, id, (agentId, one, otherId, other) => {
      const isSame = agentId === otherId && one === other;
      expect(pairOf(agentId, one) === pairOf(otherId, other)).toBe(isSame);
    }),
    { numRuns: amount(10_000, 1_670), seed },
  );
});

test("ids that Redis cannot encode are refused", () => {
  expect(() => keys.treeOf("t", "a\ud800")).toThrow(InvalidInputError);
  expect(() => keys.treeOf("\udfff", "a")).toThrow(InvalidInputError);
  expect(() => new RedisKeys("my{app}:")).toThrow(/prefix is "my\{app\}:"; expected any text without braces/);
});
