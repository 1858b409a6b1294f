// How often the team does what it should, with the model of src/model.ts: npm run eval -- --repeat 5 --min-pass 0.8
import "troupe/testing/matchers";
import { runCase } from "troupe/testing";
import { expect, test } from "vitest";
import { agent } from "../src/team.ts";

test("refunds a broken order, once, after asking the clerk", async () => {
  const result = await runCase(agent, "Ask the clerk where order 7 is, and refund order 7.", {
    decide: () => ({ verdict: "approved", by: "an eval" }),
  });
  expect(result).toEndWith("completed");
  expect(result).toHaveCalledTools(["clerk", { name: "refund", args: { order: 7 } }], { mode: "unordered" });
});
