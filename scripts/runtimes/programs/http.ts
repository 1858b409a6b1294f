/** Agents over HTTP, with the client on the same runtime: an approval, a stream that breaks and continues, and a refusal. */
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
const again = await agent.executeTurn("Order paper.", { idempotencyKey: "order-1" });
const { requests } = await turn.settled();
for (const request of requests) await client.decide(request, { verdict: "approved" });

const seen: string[] = [];
let cursor: string | undefined;
for await (const event of turn.follow()) {
  seen.push(event.type);
  cursor = event.cursor ?? cursor;
  if (event.type === "request.opened") break;
}
seen.push("-");
for await (const event of turn.follow({ after: cursor })) if (event.type !== "text.delta") seen.push(event.type);
const refusals: string[] = [];
const refusal = async (work: Promise<unknown>): Promise<void> => {
  const error = await work.catch((thrown: unknown) => thrown);
  refusals.push(error instanceof TroupeClientError ? `${error.status} ${error.code}` : "none");
};
await refusal(client.agent("of-somebody-else").info());
await refusal(
  createClient({ url, headers: { authorization: "Bearer wrong" } })
    .agent("any")
    .info(),
);
const { result } = await turn.current();
await server.close();
await runtime.shutdown();
process.stdout.write(JSON.stringify({ text: result?.text, isOne: turn.turnId === again.turnId, seen, refusals }));
