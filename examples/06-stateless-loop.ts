// The stateless loop: the same machines and budgets as a durable agent, but the caller keeps the conversation.
import { createAgentLoop, defineAgent, defineTool, type LoopMessage, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const add = defineTool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  effect: "none",
  execute: ({ a, b }) => a + b,
});

// The model adds the last number in the conversation to the last sum.
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1);
  if (last?.role === "tool") return `The sum is ${textOf(last.content)}.`;
  const sum = textOf(messages.findLast(({ role }) => role === "tool")?.content ?? "0");
  return { toolCalls: [{ name: "add", arguments: { a: Number(sum), b: Number(textOf(last?.content ?? "")) } }] };
});

const loop = createAgentLoop(defineAgent({ name: "adder", model, tools: [add], budget: { maxSteps: 3 } }));

// The caller stores the conversation, in this example in a variable.
let conversation: LoopMessage[] = [];
for (const input of ["20", "22", "-2"]) {
  conversation = [...conversation, { role: "user", content: input }];
  const turn = loop.executeTurn(conversation, { agentId: "sums" });
  const { status, text, messages } = await turn.result;
  conversation = [...conversation, ...messages];
  console.log(`${input} → ${status}: ${text} (${messages.length} new messages)`);
}
