/**
 * Runs a turn of the agent `desk` and prints its process id once the turn waits: for a model that never answers, or for an
 * approval. Arguments: `sqlite PATH` or `redis URL PREFIX`, then `thinking` or `asking`.
 */
import { z } from "zod";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { redisStores } from "troupe/stores/redis";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const pay = defineTool({
  name: "pay",
  description: "Pays.",
  parameters: z.object({ euros: z.number() }),
  effect: "once",
  needsApproval: true,
  execute: () => "paid",
});

const [kind, place = "", ...rest] = process.argv.slice(2);
const isAsking = rest.at(-1) === "asking";
const model = scriptedModel(({ messages }) => {
  if (!isAsking) return { text: "never said", delayUntil: new Promise(() => undefined) };
  return messages.at(-1)?.role === "tool" ? "Paid." : { toolCalls: [{ name: "pay", arguments: { euros: 120 } }] };
});
const stores = kind === "redis" ? redisStores({ url: place, prefix: rest[0] ?? "" }) : sqliteStores(place);
const runtime = await createRuntime({ agents: [defineAgent({ name: "clerk", tools: [pay], model })], stores });
const agent = await runtime.agent("clerk", { agentId: "desk" });
await agent.start();
for await (const event of agent.executeTurn("Pay the bill.")) {
  if (event.type === (isAsking ? "request.opened" : "step.started")) break;
}
process.stdout.write(`${process.pid}\n`);
// Neither a timer of the runtime nor the turn keeps the process alive.
setInterval(() => undefined, 60_000);
