// Hooks and plugins: your code runs at fixed points of a turn to change or deny calls and to stop endless loops.
import { approval, createRuntime, defineAgent, defineTool, noProgressGuard, textOf, toolLogging } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const temperature = defineTool({
  name: "temperature",
  description: "Tells the temperature of a room.",
  parameters: z.object({ room: z.string() }),
  effect: "none",
  execute: ({ room }) => `${room}: 17 °C`,
});

const heat = defineTool({
  name: "heat",
  description: "Sets the heating of a room.",
  parameters: z.object({ room: z.string(), celsius: z.number() }),
  effect: "keyed",
  execute: ({ room, celsius }) => `${room} is being heated to ${celsius} °C`,
});

// A model that first requests too much heat and then reads the thermometer forever.
const look = { name: "temperature", arguments: { room: "hall" } };
const model = scriptedModel((_request, { index }) => {
  if (index > 0) return { text: "Still cold…", toolCalls: [look] };
  const rooms = ["hall", "vault"].map((room) => ({ name: "heat", arguments: { room, celsius: 40 } }));
  return { text: "I turn the heating on.", toolCalls: rooms };
});

const janitor = defineAgent({
  name: "janitor",
  model,
  tools: [temperature, heat],
  hooks: {
    afterUserInput: (draft) => draft.add({ role: "system", content: "Energy is scarce." }),
    // The arguments are validated and typed by the tool's schema. Replaced arguments are validated again.
    beforeEachTool(draft) {
      const { name, arguments: args } = draft.call;
      if (name === "heat") draft.changeArguments({ ...z.object({ room: z.string() }).parse(args), celsius: 21 });
    },
    onComplete: (draft) => console.log(`The turn is about to end: ${draft.end.outcome}, ${draft.end.stopReason}`),
  },
  plugins: [
    toolLogging({ write: (line) => console.log(line) }),
    approval({ decide: (call) => !JSON.stringify(call.arguments).includes("vault") || "the vault is closed" }),
    noProgressGuard({ repeats: 3 }),
  ],
});

const runtime = await createRuntime({ agents: [janitor] });
const agent = await runtime.agent("janitor", { agentId: "janitor-1" });
await agent.start();

const turn = agent.executeTurn("Make it warm.");
for await (const event of turn) {
  if (event.type === "turn.stopped") console.log(`Stopped after ${event.steps} steps: ${event.message}\n`);
}

for (const { role, origin, content } of await agent.getMessages()) {
  console.log(`${role.padEnd(9)} ${origin.padEnd(10)} ${textOf(content)}`);
}
await runtime.shutdown();
