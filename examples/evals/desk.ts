// An agent that refunds orders, and what `troupe eval` runs: refunds.eval.ts has its evals, refunds.yaml their cases.
import { defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const order = z.object({ order: z.string() });
const orders: Readonly<Record<string, { readonly paid: number; readonly isBroken: boolean }>> = {
  "7": { paid: 40, isBroken: true },
  "8": { paid: 25, isBroken: false },
  "9": { paid: 12, isBroken: true },
};

const look = defineTool({
  name: "look",
  description: "Looks at an order.",
  parameters: order,
  effect: "none",
  execute: ({ order: id }) => JSON.stringify(orders[id] ?? null),
});
const refund = defineTool({
  name: "refund",
  description: "Pays the money back. Only for broken orders.",
  parameters: order,
  effect: "once",
  execute: ({ order: id }) => `Refunded order ${id}.`,
});

// Stands for a model. With a real one: recordedModel(openaiModel("gpt-5-mini"), { file: "evals/desk.recording.json" }).
const model = scriptedModel(({ messages }, { call }) => {
  const asked = textOf(messages.findLast(({ role }) => role === "user")?.content ?? "");
  const found = textOf(messages.findLast(({ role }) => role === "tool")?.content ?? "");
  const id = /\d+/.exec(asked)?.[0] ?? "";
  if (call?.step === 1) return { toolCalls: [{ name: "look", arguments: { order: id } }] };
  if (call?.step === 2 && found.includes('"isBroken":true')) {
    return { toolCalls: [{ name: "refund", arguments: { order: id } }] };
  }
  const isRefunded = found.startsWith("Refunded");
  return JSON.stringify({
    order: id,
    isRefunded,
    answer: isRefunded ? "Your money is on its way." : "We cannot refund it.",
  });
});

export const agent = defineAgent({
  name: "desk",
  model,
  instructions: "You serve a shop. Look at the order, and refund it if it arrived broken.",
  tools: [look, refund],
  output: z.object({ order: z.string(), isRefunded: z.boolean(), answer: z.string() }),
});
