// Agents as tools of an MCP server: a client calls one, a person approves, and a repeated call starts nothing new.
import { isDeepStrictEqual } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { serveMcp } from "troupe/mcp/server";
import { openAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const refund = defineTool({
  name: "refund",
  description: "Pays money back.",
  parameters: z.object({ amount: z.number() }),
  needsApproval: true,
  execute: ({ amount }) => `refunded ${amount}`,
});
const till = defineAgent({
  name: "till",
  tools: [refund],
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool"
      ? "The customer has the money back."
      : { toolCalls: [{ name: "refund", arguments: { amount: 12 } }] },
  ),
});

const runtime = await createRuntime({ agents: [till] });
const serving = await serveMcp(runtime, {
  agents: [{ definition: till, description: "Handles refunds." }],
  authenticate: openAuth(),
});
const { url } = await serving.listen();

// The client, which would usually be an editor or an agent of another framework.
const client = new Client(
  { name: "editor", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
);
client.setRequestHandler("elicitation/create", ({ params }) => {
  console.log("approval -", params.message.replaceAll("\n", " - "));
  return { action: "accept", content: { decision: "approve" } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
const { tools } = await client.listTools();
console.log("tools:", tools.map(({ name }) => name).join(", "));

const call = { name: "till", arguments: { input: "Order 7 was broken.", key: "order-7" } };
const result = await client.callTool(call);
console.log(JSON.stringify(result.content));
// The client repeats the call, for instance after a lost connection, and gets the same turn.
const repeated = await client.callTool(call);
console.log("turns:", (await runtime.turns()).length, "- same result:", isDeepStrictEqual(repeated, result));

await client.close();
await serving.close();
await runtime.shutdown();
