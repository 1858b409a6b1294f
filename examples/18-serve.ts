// Agents over HTTP: a client creates an agent, starts a turn, approves a call, and reads the stream from where it left off.
import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { apiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pay = defineTool({
  name: "pay",
  description: "Pays a person or a company.",
  parameters: z.object({ to: z.string(), francs: z.number().positive() }),
  needsApproval: true,
  execute: ({ to, francs }) => `paid ${francs} francs to ${to}`,
});
const cashier = defineAgent({
  name: "cashier",
  tools: [pay],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return `Done: ${textOf(last.content)}.`;
    return { toolCalls: [{ name: "pay", arguments: { to: "the printer", francs: 250 } }] };
  }),
});

const runtime = await createRuntime({ agents: [cashier] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [apiSurface()],
});
const { url } = await server.listen();

// From here on only HTTP, as in a client in any language.
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
interface Answer {
  readonly agentId: string;
  readonly turnId: string;
  readonly items: readonly { readonly requestId: string; readonly prompt: string; readonly argumentsHash: string }[];
}
const get = async (path: string): Promise<Answer> => (await fetch(url + path, { headers })).json() as Promise<Answer>;
async function post(path: string, body: unknown, more: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const init = { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) };
  return (await fetch(url + path, init)).json() as Promise<Answer>;
}

const { agentId } = await post("/api/agents", { definition: "cashier", key: "monday" });
const body = { input: "Pay the printer." };
// A client that gets no answer repeats the request. With the same key, no second turn is started.
const [{ turnId }, again] = [
  await post(`/api/agents/${agentId}/turns`, body, { "idempotency-key": "order-7" }),
  await post(`/api/agents/${agentId}/turns`, body, { "idempotency-key": "order-7" }),
];
console.log(`sent twice, started ${turnId === again.turnId ? "once" : "twice"}`);

const seen = await eventsUntil("turn.waiting");
console.log(`the stream so far: ${seen.types.join(", ")}`);
const { items } = await get(`/api/requests?root=${agentId}`);
for (const { requestId, prompt, argumentsHash } of items) {
  console.log(`approves: ${prompt.split("\n")[0]}`);
  await post(`/api/requests/${encodeURIComponent(requestId)}`, { verdict: "approved", argumentsHash });
}
const rest = await eventsUntil("turn.completed", seen.lastId);
console.log(`after the last id: ${rest.types.join(", ")}`);

await server.close();
await runtime.shutdown();

/** The types of a tree's events after an id, up to the first event of a given type. */
async function eventsUntil(type: string, lastId = "") {
  const { body } = await fetch(`${url}/api/trees/${agentId}/events`, {
    headers: { ...headers, ...(lastId === "" ? {} : { "last-event-id": lastId }) },
  });
  const types: string[] = [];
  let id = lastId;
  let text = "";
  for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (text + piece).split("\n");
    text = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("id: ")) id = line.slice(4);
      if (line.startsWith("event: ")) types.push(line.slice(7));
    }
    if (types.includes(type)) break;
  }
  return { types, lastId: id };
}
