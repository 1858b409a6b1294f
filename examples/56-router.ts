// A router chooses a specialist, which sees the conversation and answers the user itself: the router's model is not called again.
import { createRuntime, defineAgent, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";

const billing = defineAgent({
  name: "billing",
  instructions: "You answer questions about invoices.",
  model: scriptedModel(({ messages }) => {
    const asked = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
    return `Invoice 7 was paid in May. You asked: ${asked.join(" / ")}`;
  }),
});
const travel = defineAgent({
  name: "travel",
  instructions: "You answer questions about trips.",
  model: scriptedModel("The train leaves at nine."),
});

const handover = { endsTurn: true, history: "conversation", budget: { maxSteps: 3 } } as const;
const router = defineAgent({
  name: "router",
  instructions: "Hand each question to the specialist for it.",
  tools: [
    subagent(billing, { ...handover, description: "Answers questions about invoices." }),
    subagent(travel, { ...handover, description: "Answers questions about trips." }),
  ],
  budget: { maxSteps: 6 },
  model: scriptedModel(({ messages }) => {
    const asked = textOf(messages.at(-1)?.content ?? "");
    const name = asked.includes("invoice") ? "billing" : "travel";
    return { toolCalls: [{ name, arguments: { input: "Answer the last question." } }] };
  }),
});

const runtime = await createRuntime({ agents: [router] });
const agent = await runtime.agent("router", { agentId: "desk" });
await agent.start();
for (const question of ["When does my train leave?", "And is my invoice paid?"]) {
  const { text, steps } = await agent.executeTurn(question).result;
  console.log(`${text} (${steps} call of the router)`);
}
await runtime.shutdown();
