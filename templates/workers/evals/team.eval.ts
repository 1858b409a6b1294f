// How often the agent does what it should, with the model of src/model.ts: npm run eval -- --repeat 5 --min-pass 0.8
import "troupe/testing/matchers";
import { runCase } from "troupe/testing";
import { expect, test } from "vitest";
import { agent } from "../src/team.ts";

test("counts the shelf that the question names", async () => {
  const result = await runCase(agent, "Count the stock of shelf 7.");
  expect(result).toEndWith("completed");
  expect(result).toHaveCalledTools([{ name: "count_stock", args: { shelf: 7 } }]);
  expect(result).toMatchOutput("12 chairs");
});
