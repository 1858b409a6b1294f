// Structured output: the final answer must match a schema. If it does not, the model is asked once more.
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
  '```json\n{"title": "Pancakes", "minutes": 20, "ingredients": ["flour", "milk", "eggs"]}\n```',
]);

const agent = await createAgent({ agentId: "kitchen", model: hasty, output: recipe, instructions: "Write recipes." });
await agent.start();

const turn = agent.executeTurn("How do I make pancakes?");
const { status, steps, output } = await turn.result;
for (const { origin, content } of await agent.getMessages()) {
  const text = typeof content === "string" ? content : "(parts)";
  console.log(`${origin.padEnd(8)} ${text.replaceAll("\n", " ")}`);
}
const { title, minutes, ingredients } = recipe.parse(output);
console.log({ status, steps });
console.log(`${title}: ${minutes} minutes, ${ingredients.join(", ")}`);
await agent.runtime.shutdown();
