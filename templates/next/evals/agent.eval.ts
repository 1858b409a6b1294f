// How often the agent does what it should, with the model of src/model.ts: npm run eval -- --repeat 5 --min-pass 0.8
import "troupe/testing/matchers";
import { runCase } from "troupe/testing";
import { expect, test } from "vitest";
import { agent } from "../src/agent.ts";

test("looks up the order that the question names", async () => {
  const result = await runCase(agent, "Where is order 7?");
  expect(result).toEndWith("completed");
  expect(result).toHaveCalledTools([{ name: "look_up_order", args: { order: 7 } }]);
  expect(result).toMatchOutput("Thursday");
});
