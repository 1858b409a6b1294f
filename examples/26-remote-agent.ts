// An agent that calls an agent of another program over A2A: streamed text, a follow-on, and the other agent's question and
// approval.
import { askUser, createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { remoteAgent } from "troupe/a2a";
import { a2aSurface, serveRuntime, tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

// The other program, which would usually run elsewhere.
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
    if (last?.role === "tool") return { toolCalls: [{ name: "book", arguments: { room: text } }] };
    if (text.startsWith("Book")) return { toolCalls: [{ name: "ask_user", arguments: { question: "Which room?" } }] };
    const asked = messages.filter(({ role }) => role === "user").length;
    return `Breakfast is from seven to ten. (You have asked ${asked} times.)`;
  }),
});
const hotel = await createRuntime({ agents: [concierge] });
const token = "a-token-for-ada-alone";
const server = serveRuntime(hotel, {
  authenticate: tokenAuth({ tokens: { [token]: { userId: "ada", scopes: [] } } }),
  surfaces: [await a2aSurface({ agents: [{ definition: concierge }] })],
});
const { url } = await server.listen();

// Our own program.
const says = ["When is breakfast?", "And on Sundays?", "Book a room."];
const traveller = defineAgent({
  name: "traveller",
  tools: [
    remoteAgent({ name: "hotel", description: "The hotel's own agent.", url: `${url}/a2a/concierge`, auth: token }),
  ],
  model: scriptedModel(({ messages }) => {
    const input = says[messages.filter(({ role }) => role === "tool").length];
    return input === undefined ? "Everything is arranged." : { toolCalls: [{ name: "hotel", arguments: { input } }] };
  }),
});
const runtime = await createRuntime({ agents: [traveller] });
runtime.subscribe((event) => {
  if (event.type === "tool.progress") console.log("  progress:", JSON.stringify(event.update));
});
const agent = await runtime.agent("traveller");
await agent.start();
const turn = agent.executeTurn("Arrange the weekend.");

for (let rest = await turn.settled; rest.status === "waiting"; rest = await turn.settled) {
  for (const { requestId, kind, prompt, arguments: about, argumentsHash } of await agent.requests()) {
    console.log(kind, "-", prompt);
    if (kind === "question") await agent.decide(requestId, { verdict: "answered", result: "garden room" });
    else {
      console.log("  it is about", JSON.stringify(about));
      await agent.decide(requestId, { verdict: "approved", by: "ada", argumentsHash });
    }
  }
}
const { text, spent } = await turn.result;
for (const { role, content } of await agent.getMessages()) {
  if (role === "tool") console.log("The hotel said:", textOf(content));
}
console.log(text, spent.byModel["a2a:hotel"]?.calls, "tasks were counted");

await runtime.shutdown();
await server.close();
await hotel.shutdown();
