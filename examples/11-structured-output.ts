// Structured output: the final answer must match a schema. It is shown while it is written; an answer that does not match is asked once
// more, and a refusal of the model ends the turn as a refusal.
import { createAgent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const recipe = z.object({
  title: z.string(),
  minutes: z.int().positive(),
  ingredients: z.array(z.string()).min(2).describe("At least two."),
});

// The first answer lacks an ingredient, and its time is a string. The model gets these two errors.
const hasty = scriptedModel([
  '{"title": "Pancakes", "minutes": "twenty", "ingredients": ["flour"]}',
  { deltas: ['```json\n{"title": "Pancakes", "minutes": 20,', ' "ingredients": ["flour", "mi', 'lk", "eggs"]}\n```'] },
  { text: "I do not cook mushrooms that I cannot see.", finishReason: "content_filter" },
]);

const agent = await createAgent({ agentId: "kitchen", model: hasty, output: recipe, instructions: "Write recipes." });
await agent.start();

const turn = agent.executeTurn("How do I make pancakes?");
for await (const { title, ingredients = [] } of turn.partialOutputs()) {
  console.log(`… ${title}: ${ingredients.join(", ")}`);
}
const { status, steps, output } = await turn.result;
for (const { origin, content } of await agent.getMessages()) {
  const text = typeof content === "string" ? content : "(parts)";
  console.log(`${origin.padEnd(8)} ${text.replaceAll("\n", " ")}`);
}
const { title, minutes, ingredients } = recipe.parse(output);
console.log({ status, steps });
console.log(`${title}: ${minutes} minutes, ${ingredients.join(", ")}`);

const refused = await agent.executeTurn("And the mushrooms from my garden?").result;
console.log({ status: refused.status, stopReason: refused.stopReason, output: refused.output, text: refused.text });
await agent.runtime.shutdown();
