/** Tools of an MCP server over stdio, which runs on the same runtime. With `hang` the process waits to be killed. */
import { createAgent, textOf } from "troupe";
import { mcp } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

const [how = "", ...words] = process.argv.slice(2);
const till = await mcp({ name: "till", command: process.execPath, args: words, trust: true });
const model = scriptedModel([
  { toolCalls: [{ name: "till__add", arguments: { a: 40, b: 2 } }] },
  { toolCalls: [{ name: "till__process", arguments: {} }] },
  "Added.",
]);
const agent = await createAgent({ model, tools: till.tools });
await agent.start();
const { text } = await agent.executeTurn("Add.").result;
const results = (await agent.getMessages()).filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
process.stdout.write(`server ${results[1] ?? ""}\n`);
if (how === "hang") await new Promise(() => void setInterval(() => undefined, 1_000));
await agent.runtime.shutdown();
await till.close();
process.stdout.write(JSON.stringify({ text, sum: results[0] }));
