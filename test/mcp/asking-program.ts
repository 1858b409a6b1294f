// A process that runs a turn whose agent calls a tool of the inn: node asking-program.ts FILE OPTIONS TOOL. Prints the status in which the
// turn rests.
import { createRuntime, defineAgent } from "troupe";
import { mcp, type McpOptions } from "troupe/mcp";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";

const [file = "", given = "", tool = ""] = process.argv.slice(2);
const inn = await mcp(JSON.parse(given) as McpOptions);
const model = scriptedModel(({ messages }) => {
  if (messages[0]?.role === "system") return "a verse";
  return messages.at(-1)?.role === "user" ? { toolCalls: [{ name: `inn__${tool}` }] } : "the end";
});
const guest = defineAgent({ name: "guest", model, tools: [...inn.tools] });
const runtime = await createRuntime({ agents: [guest], stores: sqliteStores(file), leaseMs: 500 });
const agent = await runtime.agent("guest", { agentId: "guest" });
await agent.start();
const { status } = await agent.executeTurn("go", { key: "go" }).settled;
console.log(status);
await runtime.shutdown();
await inn.close();
