// A process that runs five turns of one agent over a SQLite file, prints a line, and stays until the test kills it.
import { createRuntime, defineAgent } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const clerk = defineAgent({ name: "clerk", model: scriptedModel(({ messages }) => `I see ${messages.length}.`) });
const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(process.argv[2] ?? "") });
const agent = await runtime.agent("clerk", { agentId: "clerk-1" });
await agent.start();
for (let turn = 1; turn <= 5; turn += 1) await agent.executeTurn(`Turn ${turn}`).result;
console.log("five turns");
setInterval(() => undefined, 60_000);
