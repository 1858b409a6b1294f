// Many tools: they are not in the prompt; the model searches for them, and their approvals and names hold as always.
import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { deferredTools } from "troupe/kit";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const shelves = Array.from({ length: 60 }, (_, index) =>
  defineTool({
    name: `read_shelf_${index}`,
    description: `Reads shelf ${index} of the archive.`,
    parameters: z.object({}),
    effect: "none",
    execute: () => `Shelf ${index} is empty.`,
  }),
);
const pay = defineTool({
  name: "pay_invoice",
  description: "Pays an open invoice by bank transfer.",
  parameters: z.object({ amount: z.number() }),
  needsApproval: ({ amount }) => amount > 100,
  execute: ({ amount }) => `paid ${amount} euros`,
});

const clerk = defineAgent({
  name: "clerk",
  model: scriptedModel([
    { toolCalls: [{ name: "search_tools", arguments: { query: "pay invoices" } }] },
    { toolCalls: [{ name: "call_tool", arguments: { name: "pay_invoice", arguments: { amount: 500 } } }] },
    "The invoice is paid.",
  ]),
  tools: deferredTools([...shelves, pay]),
});

const runtime = await createRuntime({ agents: [clerk] });
const agent = await runtime.agent("clerk");
await agent.start();
const turn = agent.executeTurn("Pay the invoice of 500 euros.");
await turn.settled;
for (const { requestId, name, arguments: args } of await runtime.requests()) {
  console.log("A person approves", name, JSON.stringify(args));
  await runtime.decide(requestId, { verdict: "approved", by: "ada" });
}
console.log((await turn.result).text);
for (const { role, content } of await agent.getMessages()) if (role === "tool") console.log("-", textOf(content));
await runtime.shutdown();
