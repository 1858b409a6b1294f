// A simulated user talks with a desk until the goal is reached. The tool that pays is replaced, and a policy approves small refunds.
import { askUser, defineAgent, defineTool } from "troupe";
import { scriptedModel, simulateUser, withTools } from "troupe/testing";
import { z } from "zod";

const refund = defineTool({
  name: "refund",
  description: "Pays an order back.",
  parameters: z.object({ order: z.int(), cents: z.int() }),
  effect: "keyed",
  needsApproval: true,
  execute: () => {
    throw new Error("this would pay real money");
  },
});

// In place of openaiModel("gpt-5"), so that the example runs without a network.
const deskModel = scriptedModel([
  { toolCalls: [{ name: "ask_user", arguments: { question: "Which order is it?" } }] },
  { toolCalls: [{ name: "refund", arguments: { order: 17, cents: 500 } }] },
  "Order 17 is refunded: 5 dollars.",
]);
const desk = defineAgent({ name: "desk", model: deskModel, instructions: "Be fair.", tools: [askUser(), refund] });

// In place of recordedModel(openaiModel("gpt-5-mini"), { file: "ada.json" }).
const reply = (action: "say" | "done", message: string, reason = ""): string =>
  JSON.stringify({ action, message, reached: reason !== "", reason });
const ada = scriptedModel([
  reply("say", "My lamp arrived broken. I want my money back."),
  reply("say", "It is order 17."),
  reply("done", "", "The desk confirmed the refund of order 17."),
]);

const paid: string[] = [];
const stubbed = withTools(desk, {
  refund: ({ order, cents }: { order: number; cents: number }) => {
    paid.push(`order ${order}: ${cents} cents`);
    return "paid";
  },
});
const { transcript, reached, reason, turns, spent } = await simulateUser(stubbed, {
  persona: "Ada, polite but impatient. Her order has the number 17, and a lamp in it broke.",
  goal: "The order is refunded.",
  model: ada,
  maxTurns: 5,
  budget: { maxTokens: 20_000 },
  decide: ({ kind, arguments: args }) =>
    kind === "approval" && z.object({ cents: z.int().max(1_000) }).safeParse(args).success
      ? { verdict: "approved", by: "policy" }
      : undefined,
});

for (const entry of transcript) {
  if (entry.from !== "request") console.log(`${entry.from}: ${entry.text}`);
  else console.log(`  [${entry.kind} of ${entry.name}: ${entry.verdict}${entry.answer ? `, ${entry.answer}` : ""}]`);
}
console.log(`reached: ${reached}, ${reason}`);
console.log(
  `${turns} turn, stub called for ${paid.join(", ")}; ${spent.agent.calls} + ${spent.user.calls} model calls`,
);
