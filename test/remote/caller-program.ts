// A process with an agent that hands a task to a remote agent, over a SQLite file, until the test kills it.
import { createRuntime } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { callerAgent } from "./remote-server.ts";

const [path = "", url = ""] = process.argv.slice(2);
const runtime = await createRuntime({ agents: [callerAgent({ url, says: ["work"] })], stores: sqliteStores(path) });
const agent = await runtime.agent("caller", { agentId: "caller" });
await agent.start();
runtime.subscribe((event) => {
  if (event.type === "tool.progress") console.log("it works");
});
await agent.executeTurn("go").result;
