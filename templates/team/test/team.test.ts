import { run, TurnWaitingError } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { agent } from "../src/team.ts";

// A script stands for the lead's model.
const lead = {
  ...agent,
  model: scriptedModel(({ messages }) =>
    messages.some(({ role }) => role === "tool")
      ? JSON.stringify(messages.at(-1)?.content)
      : { toolCalls: [{ name: "refund", arguments: { order: 7 } }] },
  ),
};

test("a refund waits for a person", async () => {
  await expect(run(lead, "Refund order 7.")).rejects.toThrow(TurnWaitingError);
});

test("an approved refund is paid, a rejected one is not", async () => {
  const approved = await run(lead, "Refund order 7.", { decide: () => ({ verdict: "approved", by: "ada" }) });
  expect(approved.text).toContain("Order 7 is refunded.");
  const rejected = await run(lead, "Refund order 7.", { decide: () => ({ verdict: "rejected", by: "ada" }) });
  expect(rejected.text).not.toContain("is refunded");
});
