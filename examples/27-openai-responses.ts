// The Responses API over an agent, with the official client: a stream that is cut and continued, an approval, a question, a
// client tool, a conversation forked from an older response, and a background response.
import OpenAI from "openai";
import { askUser, createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { openaiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const book = defineTool({
  name: "book",
  description: "Books a room.",
  parameters: z.object({ room: z.string() }),
  needsApproval: true,
  execute: ({ room }) => `${room} is booked`,
});
const concierge = defineAgent({
  name: "concierge",
  clientTools: true,
  tools: [book, askUser()],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { deltas: ["Then ", `${text}.`] };
    if (text.startsWith("Book")) return { toolCalls: [{ name: "book", arguments: { room: "the garden room" } }] };
    if (text.startsWith("Where")) return { toolCalls: [{ name: "locate", arguments: { what: "the garden" } }] };
    if (text.startsWith("Wake")) return { toolCalls: [{ name: "ask_user", arguments: { question: "When?" } }] };
    const said = messages.filter(({ role }) => role === "user").length;
    return { deltas: [`Your message ${said} `, "says: ", text] };
  }),
});

const runtime = await createRuntime({ agents: [concierge] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [openaiSurface()],
});
const { url } = await server.listen();

// From here on only the client.
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
const model = "concierge";

// A stream that is closed after its first piece and continued after that piece's number. Each character is received once.
let [id, last, text] = ["", -1, ""];
for await (const event of await client.responses.create({ model, input: "Hello", stream: true })) {
  if (event.type === "response.created") id = event.response.id;
  last = event.sequence_number;
  if (event.type !== "response.output_text.delta") continue;
  text += event.delta;
  break;
}
console.log("Left after:", text);
for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last })) {
  if (event.type === "response.output_text.delta") text += event.delta;
}
console.log("Continued: ", text);

// A tool that needs an approval. Sending the same decision twice returns the same response.
const asked = await client.responses.create({ model, conversation: "a-weekend", input: "Book a room" });
const allowed = asked.output.flatMap((item) =>
  item.type === "mcp_approval_request"
    ? [{ type: "mcp_approval_response", approval_request_id: item.id, approve: true } as const]
    : [],
);
const booked = await client.responses.create({ previous_response_id: asked.id, input: allowed });
const again = await client.responses.create({ previous_response_id: asked.id, input: allowed });
console.log("Approved:  ", booked.output.map(({ type }) => type).join(", "), "-", booked.output_text);
console.log("Again:     ", again.id === booked.id ? "the same response" : "another response");

// A question and a client tool are both functions.
const functions = { "Wake me": "at seven", "Where is the garden?": "it is behind the house" };
const locate = { type: "function", name: "locate", strict: false, parameters: { type: "object" } } as const;
for (const [input, output] of Object.entries(functions)) {
  const response = await client.responses.create({ model, input, tools: [locate] });
  const outputs = response.output.flatMap((item) =>
    item.type === "function_call" ? [{ type: "function_call_output", call_id: item.call_id, output } as const] : [],
  );
  const answer = await client.responses.create({ previous_response_id: response.id, input: outputs });
  console.log(`${input} -`, answer.output_text);
}

// The conversation continues from its last response. Continuing from an older one starts a second conversation.
const next = await client.responses.create({ previous_response_id: id, input: "Still here" });
const fork = await client.responses.create({ previous_response_id: id, input: "Again, but otherwise" });
console.log("Goes on:   ", next.output_text);
console.log("Forks:     ", fork.output_text);

// In the background: started now, polled later.
let response = await client.responses.create({ model, input: "Take your time", background: true });
for await (const { type } of await client.responses.retrieve(response.id, { stream: true })) {
  if (type === "response.completed") response = await client.responses.retrieve(response.id);
}
console.log("Background:", response.status, "-", response.output_text);

await server.close();
await runtime.shutdown();
