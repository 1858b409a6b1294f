// An agent for other agents: the official client of A2A reads its card, streams an answer, answers a question and approves a call.
import { Role, TaskState, type SendMessageRequest } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { askUser, createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { a2aSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const book = defineTool({
  name: "book",
  description: "Books a room.",
  parameters: z.object({ room: z.string() }),
  needsApproval: true,
  execute: ({ room }) => `booked the ${room}`,
});
const concierge = defineAgent({
  name: "concierge",
  tools: [book, askUser()],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool" && text.startsWith("booked")) return `Done: ${text}.`;
    if (last?.role === "tool") return { toolCalls: [{ name: "book", arguments: { room: "garden room" } }] };
    if (text.startsWith("Book")) return { toolCalls: [{ name: "ask_user", arguments: { question: "Which room?" } }] };
    return "Breakfast is from seven to ten.";
  }),
});

const runtime = await createRuntime({ agents: [concierge] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [await a2aSurface({ agents: [{ definition: concierge, description: "Knows the house." }] })],
});
const { url } = await server.listen();

// From here on only the client, as another agent in another process would use it.
const fetchImpl: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(`${url}/a2a/concierge/`);
console.log("Card:", (await client.getAgentCard()).description);

type Content = { $case: "text"; value: string } | { $case: "data"; value: unknown };
function message(content: Content, to: { taskId?: string; extensions?: string[] } = {}): SendMessageRequest {
  const part = { content, metadata: undefined, filename: "", mediaType: "" };
  return {
    tenant: "",
    metadata: undefined,
    configuration: undefined,
    message: {
      messageId: crypto.randomUUID(),
      contextId: "a-weekend",
      taskId: to.taskId ?? "",
      role: Role.ROLE_USER,
      parts: [part],
      metadata: undefined,
      extensions: to.extensions ?? [],
      referenceTaskIds: [],
    },
  };
}

let streamed = "";
for await (const { payload } of client.sendMessageStream(message({ $case: "text", value: "When is breakfast?" }))) {
  if (payload?.$case !== "artifactUpdate") continue;
  const content = payload.value.artifact?.parts[0]?.content;
  if (content?.$case === "text") streamed = payload.value.append ? streamed + content.value : content.value;
}
console.log("Streamed:", streamed);

async function send(request: SendMessageRequest) {
  const result = await client.sendMessage(request);
  if ("messageId" in result) throw new Error("a task was expected");
  return result;
}

const asking = await send(message({ $case: "text", value: "Book a room" }));
const taskId = asking.id;
console.log(TaskState[asking.status?.state ?? 0], "-", asking.status?.message?.parts[0]?.content?.value);

const waiting = await send(message({ $case: "text", value: "The one to the garden" }, { taskId }));
const { requestId, argumentsHash, arguments: shown } = waiting.status?.message?.parts[0]?.metadata ?? {};
console.log(TaskState[waiting.status?.state ?? 0], "-", JSON.stringify(shown));

const value = { requestId, argumentsHash, verdict: "approved" };
const booked = await send(message({ $case: "data", value }, { taskId, extensions: ["urn:troupe:a2a:decisions:v1"] }));
console.log(TaskState[booked.status?.state ?? 0], "-", booked.artifacts.at(-1)?.parts[0]?.content?.value);

await server.close();
await runtime.shutdown();
