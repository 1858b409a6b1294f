// An agent as a model in OpenAI's protocol: the official client streams its answer, runs its own tool, and keeps a
// conversation in which the agent asks a question.
import OpenAI from "openai";
import { askUser, createRuntime, defineAgent, textOf } from "troupe";
import { openaiSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";

const concierge = defineAgent({
  name: "concierge",
  clientTools: true,
  tools: [askUser()],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { deltas: ["Then I know: ", `${text}.`] };
    if (text.startsWith("Where")) return { toolCalls: [{ name: "locate", arguments: { what: "the garden" } }] };
    if (text.startsWith("Book")) return { toolCalls: [{ name: "ask_user", arguments: { question: "Which room?" } }] };
    return { deltas: ["Breakfast is ", "from seven ", "to ten."] };
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
console.log("Models:", (await client.models.list()).data.map(({ id }) => id).join(", "));

const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "When is breakfast?" }];
for await (const { choices } of await client.chat.completions.create({ model, messages, stream: true })) {
  const piece = choices[0]?.delta.content ?? "";
  if (piece !== "") console.log("Streamed:", piece);
}

// The client's own tool: the agent calls it, the client runs it, and the turn continues with the result.
const runner = client.chat.completions.runTools({
  model,
  messages: [{ role: "user", content: "Where is the garden?" }],
  tools: [
    {
      type: "function",
      function: {
        name: "locate",
        description: "Says where something is.",
        parameters: { type: "object", properties: { what: { type: "string" } } },
        parse: JSON.parse,
        function: ({ what }: { what: string }) => `${what} is behind the house`,
      },
    },
  ],
});
console.log("With a tool:", await runner.finalContent());

// A stored conversation: the agent asks, and the next message is the answer. The client keeps no history.
const headers = { "X-Troupe-Conversation": "a-weekend" };
for (const content of ["Book a room", "The one to the garden"]) {
  const { choices } = await client.chat.completions.create(
    { model, messages: [{ role: "user", content }] },
    { headers },
  );
  console.log(`${content} -`, choices[0]?.message.content);
}

await server.close();
await runtime.shutdown();
