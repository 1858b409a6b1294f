// What holds with every model: here a script stands for it.
import { defineAgent, run, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { countStock } from "../src/team.ts";

test("the model gets what the tool has found", async () => {
  const model = scriptedModel(({ messages }) => {
    const found = messages.find(({ role }) => role === "tool");
    return found ? textOf(found.content) : { toolCalls: [{ name: "count_stock", arguments: { shelf: 7 } }] };
  });
  const desk = defineAgent({ name: "desk", model, tools: [countStock] });
  const { text } = await run(desk, "Count the stock of shelf 7.");
  expect(text).toContain("12 chairs");
});
