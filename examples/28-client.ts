// The browser client, here in Node: a turn that waits for an approval, its events over a connection that breaks, and
// requests that the server refuses. examples/browser has a page with the React hook.
import { createRuntime, defineAgent, defineTool } from "troupe";
import { createClient, TroupeClientError } from "troupe/client";
import { serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const order = defineTool({
  name: "order",
  description: "Orders something.",
  parameters: z.object({ what: z.string() }),
  needsApproval: true,
  execute: ({ what }) => `ordered ${what}`,
});
const desk = defineAgent({
  name: "desk",
  tools: [order],
  model: scriptedModel([{ toolCalls: [{ name: "order", arguments: { what: "paper" } }] }, "Paper is on its way."]),
});
const runtime = await createRuntime({ agents: [desk], streaming: "always" });
const token = "a-token-of-ann-0001";
const authenticate = tokenAuth({ tokens: { [token]: { userId: "ann", scopes: [] } } });
const server = serveRuntime(runtime, { authenticate });
const { url } = await server.listen();

const client = createClient({ url, headers: () => ({ authorization: `Bearer ${token}` }) });
const agent = await client.createAgent({ definition: "desk", key: "case 7" });
const turn = await agent.executeTurn("Order paper.", { idempotencyKey: "order-1" });
const { requests } = await turn.settled();
for (const request of requests) {
  console.log(`waits for: ${request.prompt}`);
  await client.decide(request, { verdict: "approved" });
}

// A page stores the cursor of the last event and continues after it when it reconnects.
let cursor: string | undefined;
for await (const event of turn.follow()) {
  cursor = event.cursor ?? cursor;
  if (event.type === "request.opened") break;
}
for await (const event of turn.follow({ after: cursor })) console.log(event.type);
console.log((await turn.current()).result?.text);

try {
  await client.agent("of-somebody-else").info();
} catch (error) {
  if (error instanceof TroupeClientError) console.log(error.status, error.code);
}

await server.close();
await runtime.shutdown();
