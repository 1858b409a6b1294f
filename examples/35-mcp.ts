// Tools of an MCP server that runs as a program: effects by annotations, an idempotency key, and an approval.
import { createAgent, textOf } from "troupe";
import { mcp } from "troupe/mcp";
import { scriptedModel } from "troupe/testing";

// The server, which would usually be a program of others; it needs the package @modelcontextprotocol/server.
const program = `
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";
const text = (words) => ({ content: [{ type: "text", text: words }] });
serveStdio(() => {
  const server = new McpServer({ name: "till", version: "1.0.0" });
  const amount = z.number();
  const annotations = { readOnlyHint: true };
  server.registerTool("price", { description: "The price of a book.", inputSchema: z.object({ book: z.string() }), annotations }, () => text("12"));
  server.registerTool("pay", { description: "Pays.", inputSchema: z.object({ amount, key: z.string() }) }, ({ amount, key }) =>
    text("paid " + amount + (key.length > 0 ? " with a key" : "")));
  server.registerTool("refund", { description: "Refunds.", inputSchema: z.object({ amount }), annotations: { destructiveHint: true } }, () => text("refunded"));
  return server;
});
`;
const till = await mcp({
  name: "till",
  command: "node",
  args: ["--input-type=module", "--eval", program],
  cwd: import.meta.dirname,
  trust: true,
  tools: { pay: { idempotencyArgument: "key" } },
});
for (const { name, effect, needsApproval } of till.tools) {
  console.log(`${name}: effect ${effect}${needsApproval === true ? ", needs an approval" : ""}`);
}

const model = scriptedModel([
  { toolCalls: [{ name: "till__price", arguments: { book: "Middlemarch" } }] },
  { toolCalls: [{ name: "till__pay", arguments: { amount: 12 } }] },
  { toolCalls: [{ name: "till__refund", arguments: { amount: 12 } }] },
  "The book is paid, and the refund was refused.",
]);
const agent = await createAgent({ model, tools: till.tools });
await agent.start();
const turn = agent.executeTurn("Buy Middlemarch, then get the money back.");
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  for (const { requestId, prompt } of rest.requests) {
    console.log("approval -", prompt);
    await agent.decide(requestId, { verdict: "rejected", reason: "no refunds today" });
  }
}
console.log((await turn.result).text);
for (const { role, content } of await agent.getMessages()) {
  if (role === "tool") console.log("-", textOf(content));
}
await agent.runtime.shutdown();
await till.close();
