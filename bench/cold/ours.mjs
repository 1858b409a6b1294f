// The same with an agent of the built package, whose folder is the second argument; the third is a database or nothing.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [baseURL, dist, file] = process.argv.slice(2);
const { createRuntime, defineAgent, openaiModel } = await import(pathToFileURL(join(dist, "index.js")).href);
const definition = defineAgent({ name: "agent", model: openaiModel("one", { apiKey: "none", baseURL }) });
const stores = file && (await import(pathToFileURL(join(dist, "stores/sqlite.js")).href)).sqliteStores(file);
const runtime = await createRuntime({ agents: [definition], ...(stores && { stores }) });
const agent = await runtime.agent("agent");
await agent.start();
const { text } = await agent.executeTurn("Please do the work and tell me when it is done.").result;
process.stdout.write(`${JSON.stringify({ text, processor: process.cpuUsage() })}\n`);
process.exit(0);
