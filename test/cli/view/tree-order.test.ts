import { expect, test } from "vitest";
import { placeTree } from "../../../src/cli/view/table.ts";

const member = (agentId: string, parentAgentId: string | null = null) => ({ agentId, parentAgentId });

test("children come below their parents, with branches that show the level", () => {
  const members = [
    member("a"),
    member("b", "a"),
    member("c", "b"),
    member("d", "a"),
    member("e", "d"),
    member("f", "d"),
  ];
  expect(placeTree(members).map(({ branch, member: { agentId } }) => branch + agentId)).toEqual([
    "a",
    "├─ b",
    "│  └─ c",
    "└─ d",
    "   ├─ e",
    "   └─ f",
  ]);
});

test("an agent with an unknown parent is a root", () => {
  expect(placeTree([member("x", "gone"), member("y")]).map(({ branch }) => branch)).toEqual(["", ""]);
});
