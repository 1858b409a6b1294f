// A process that runs turns of one agent over a SQLite file, and prints a line after each result.
import { writeSync } from "node:fs";
import { createRuntime, defineAgent } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const [path = "", durability] = process.argv.slice(2);
const stores = sqliteStores(path, { durability: durability === "full" ? "full" : "process" });
const clerk = defineAgent({ name: "clerk", model: scriptedModel(({ messages }) => `I see ${messages.length}.`) });
const runtime = await createRuntime({ agents: [clerk], stores });
const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
await agent.start();
for (let turn = 1; turn <= 5; turn += 1) {
  await agent.executeTurn(`Turn ${turn}`).result;
  writeSync(1, `acknowledged ${turn}\n`);
}
await runtime.shutdown();
