// A front end talks to an agent with the official AG-UI client: it streams the answer, runs its own tool, and approves a
// call. The client checks the order of the events.
import { HttpAgent } from "@ag-ui/client";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { agUiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders something.",
  parameters: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `${what} is ordered`,
});
const model = scriptedModel([
  { text: "Let me show it.", toolCalls: [{ name: "show", arguments: { page: "paper" } }] },
  { toolCalls: [{ name: "order", arguments: { what: "paper" } }] },
  { deltas: ["The paper ", "comes ", "on Monday."] },
]);
const desk = defineAgent({ name: "desk", model, tools: [order], clientTools: true });

const runtime = await createRuntime({ agents: [desk] });
const token = "a-token-of-ann-0001";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ann", scopes: [] } } }),
  surfaces: [agUiSurface()],
});
const { url } = await server.listen({ port: 0 });

const client = new HttpAgent({
  url: `${url}/ag-ui/desk`,
  threadId: "paper",
  headers: { authorization: `Bearer ${token}` },
});
client.subscribe({
  onTextMessageContentEvent: ({ event }) => console.log(`text: ${event.delta}`),
  onToolCallEndEvent: ({ toolCallName, toolCallArgs }) => console.log(`call: ${toolCallName}`, toolCallArgs),
  onToolCallResultEvent: ({ event }) => console.log("result:", event.content),
});
const show = { name: "show", description: "Shows a page.", parameters: { type: "object", properties: {} } };

client.addMessage({ id: "m1", role: "user", content: "Order paper, please." });
let pending: readonly string[] = [];
await client.runAgent(
  { tools: [show] },
  {
    onRunFinishedEvent: (finished) => {
      if (finished.outcome === "success") pending = finished.pendingToolCallIds;
    },
  },
);

// The call of the front end's own tool is pending. The front end runs it and sends the result with the next run.
for (const toolCallId of pending)
  client.addMessage({ id: `shown ${toolCallId}`, role: "tool", toolCallId, content: "shown" });
await client.runAgent({ tools: [show] });

// The order needs an approval: the run was interrupted, and the next run sends the decision.
const resume = client.pendingInterrupts.map(({ id, message }) => {
  console.log(`asked: ${message}`);
  return { interruptId: id, status: "resolved" as const, payload: { approved: true } };
});
await client.runAgent({ resume });

await server.close();
await runtime.shutdown();
