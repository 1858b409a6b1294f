// What holds with every model: here a script stands for it.
import { defineAgent, run, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { lookUpOrder } from "../src/agent.ts";

test("the model gets what the tool has found", async () => {
  const model = scriptedModel(({ messages }) => {
    const found = messages.find(({ role }) => role === "tool");
    return found ? textOf(found.content) : { toolCalls: [{ name: "look_up_order", arguments: { order: 7 } }] };
  });
  const desk = defineAgent({ name: "desk", model, tools: [lookUpOrder] });
  const { text } = await run(desk, "Where is order 7?");
  expect(text).toContain("arrives on Thursday");
});
