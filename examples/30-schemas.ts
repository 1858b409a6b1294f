// Schemas of other libraries: a tool whose arguments are checked by arktype, and an answer that valibot checks.
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { createAgent, defineTool } from "troupe";
import { scriptedModel } from "troupe/testing";
import * as v from "valibot";

const nights = defineTool({
  name: "free_rooms",
  description: "Looks up how many rooms a hotel has free.",
  parameters: type({ city: "string > 1", nights: "1 <= number.integer <= 30 = 1" }),
  effect: "none",
  // `city` is a string and `nights` a number: both types come from the schema.
  execute: ({ city, nights: count }) => `${city}: 4 rooms for ${count} night(s)`,
});

const answer = v.object({ city: v.string(), rooms: v.pipe(v.number(), v.integer()) });

// The first call has too many nights. The model gets arktype's message and corrects itself.
const model = scriptedModel([
  { toolCalls: [{ name: "free_rooms", arguments: { city: "Bern", nights: 90 } }] },
  { toolCalls: [{ name: "free_rooms", arguments: { city: "Bern" } }] },
  '{"city": "Bern", "rooms": 4}',
]);

const agent = await createAgent({ model, tools: [nights], output: toStandardJsonSchema(answer) });
await agent.start();
const turn = agent.executeTurn("Is there a room in Bern tonight?");
for await (const event of turn) {
  if (event.type === "tool.completed") console.log(`completed: ${event.name}`);
  if (event.type === "tool.failed") console.log(`failed: ${event.error?.message}`);
}
const { output } = await turn.result;
console.log(`${output?.city}: ${output?.rooms} rooms`);
await agent.runtime.shutdown();
