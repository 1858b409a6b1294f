// Models made of others: a cheap model plans and a strong one writes, and a second provider answers while the first one is down.
import { createRuntime, defineAgent, defineTool, fallbackModel, ModelError, routedModel } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const search = defineTool({
  name: "search",
  description: "Searches the archive.",
  parameters: z.object({ query: z.string() }),
  effect: "none",
  execute: ({ query }) => `Two entries about ${query}.`,
});

// With real providers: openaiModel("gpt-5-mini"), openaiModel("gpt-5"), aiSdkModel(anthropic("claude-sonnet-4-5")).
const cheap = scriptedModel(
  { toolCalls: [{ name: "search", arguments: { query: "tides" } }] },
  { name: "cheap", provider: "north" },
);
const strong = scriptedModel(
  {
    deltas: ["The tides rise "],
    error: new ModelError("The stream was cut.", { retryable: true, mayHaveBeenSent: true, partialOutputTokens: 4 }),
  },
  { name: "strong", provider: "north" },
);
const spare = scriptedModel("The tides rise and fall twice a day.", { name: "spare", provider: "south" });

const writing = fallbackModel([strong, spare], { breaker: { failures: 3, openMs: 20_000 } });
const model = routedModel(({ step }) => (step === 1 ? cheap : writing), { models: [cheap, writing] });
const writer = defineAgent({ name: "writer", model, tools: [search], maxOutputTokens: 500, budget: { maxCost: 0.05 } });

const runtime = await createRuntime({
  agents: [writer],
  // Each attempt is reserved and billed at the price of the model that is called.
  prices: {
    cheap: { inputPerMillion: 0.25, outputPerMillion: 2 },
    strong: { inputPerMillion: 3, outputPerMillion: 15 },
    spare: { inputPerMillion: 1, outputPerMillion: 5 },
  },
});
const agent = await runtime.agent("writer");
await agent.start();
const turn = agent.executeTurn("Write a sentence about tides.");

let shown = "";
for await (const event of turn) {
  // The text of a broken answer is void when the step is restarted.
  if (event.type === "step.started" || event.type === "step.restarted") shown = "";
  if (event.type === "step.restarted") console.log(`${event.error.message} Next: ${event.model ?? "the same model"}`);
  if (event.type === "text.delta") shown += event.text;
}
const { spent } = await turn.result;
console.log(shown);
for (const [name, { calls, cost }] of Object.entries(spent.byModel))
  console.log(`${name}: ${calls} call, $${cost?.toFixed(6)}`);
await runtime.shutdown();
