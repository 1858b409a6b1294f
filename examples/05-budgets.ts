// Budgets: cost is reserved before it is spent, so work stops before a limit is exceeded, not after.
import { createRuntime, defineAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const dig = defineTool({
  name: "dig",
  description: "Digs a little deeper.",
  parameters: z.object({ depth: z.int() }),
  effect: "none",
  execute: ({ depth }) => `nothing at ${depth} m`,
});

// A model that never stops by itself. Every answer costs 1,000 input tokens and 200 output tokens.
const tireless = scriptedModel((_request, { index }) => ({
  text: `Digging, attempt ${index + 1}.`,
  toolCalls: [{ name: "dig", arguments: { depth: index + 1 } }],
  usage: { inputTokens: 1000, outputTokens: 200 },
}));

const digger = defineAgent({
  name: "digger",
  model: tireless,
  tools: [dig],
  price: { inputPerMillion: 2, outputPerMillion: 10 }, // dollars; required if maxCost is set
  maxOutputTokens: 500,
  budget: { maxSteps: 50, maxCost: 0.05 },
});

const runtime = await createRuntime({ agents: [digger] });
const agent = await runtime.agent("digger", { agentId: "pit-1" });
await agent.start();

const turn = agent.executeTurn("Find the treasure.");
for await (const event of turn) {
  if (event.type === "budget.warning") console.log(`warning: ${event.used} of ${event.max} ${event.limit} used`);
  if (event.type === "budget.exhausted") console.log(`exhausted: ${event.limit} of ${event.accountId}`);
}

const { status, stopReason, signal, steps, cost } = await turn.result;
console.log({ status, stopReason, steps, cost, message: signal?.message });
for (const { id, used, reserved, limits } of await runtime.accounts("pit-1")) {
  console.log(
    `${id}: ${used.costMicros} of ${limits.maxCostMicros} micro-dollars used, ${reserved.costMicros} reserved`,
  );
}

// An agent's lifetime can have a budget too. Unlike a turn's budget, it can be changed, even from another process.
const other = await runtime.agent("digger", { agentId: "pit-2", budget: { maxCost: 0.01 } });
await other.start();
console.log("life:", (await other.executeTurn("Find the treasure.").result).stopReason);
await other.setBudget({ maxCost: 1 });
console.log("raised:", (await other.executeTurn("Go on.").result).steps, "steps");
await runtime.shutdown();
