// Another input for a turn while it runs: during a tool, during the last answer, and after the end.
import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const brush = { inHand: Promise.withResolvers<void>(), down: Promise.withResolvers<void>() };
const thinking = { begun: Promise.withResolvers<void>(), over: Promise.withResolvers<void>() };

const paint = defineTool({
  name: "paint",
  description: "Paints a wall.",
  parameters: z.object({ wall: z.string() }),
  effect: "keyed",
  execute: async ({ wall }) => {
    brush.inHand.resolve();
    await brush.down.promise;
    return `The ${wall} wall is painted.`;
  },
});

let calls = 0;
const painter = defineAgent({
  name: "painter",
  tools: [paint],
  // The model repeats what it was told last.
  model: scriptedModel(async ({ messages }) => {
    calls += 1;
    if (calls === 1) return { toolCalls: [{ name: "paint", arguments: { wall: "north" } }] };
    if (calls === 2) {
      thinking.begun.resolve();
      await thinking.over.promise;
    }
    return `I heard: ${textOf(messages.findLast(({ role }) => role === "user")?.content ?? "")}`;
  }),
});

const runtime = await createRuntime({ agents: [painter] });
const agent = await runtime.agent("painter", { agentId: "painter" });
await agent.start();
const turn = agent.executeTurn("Paint all walls.");

// 1. During a tool: the tool finishes, and the next model call sees the input. A repeated command with its key is one input.
await brush.inHand.promise;
console.log(await turn.steer("Only the north wall.", { key: "note-1" }));
console.log(await turn.steer("Only the north wall.", { key: "note-1" }));
brush.down.resolve();

// 2. During the last answer: the turn goes on with another step.
await thinking.begun.promise;
console.log(await agent.steer("And leave the window open."));
thinking.over.resolve();
const { text, steps } = await turn.result;
console.log(text, `(${steps} steps)`);

// 3. After the end: the input opens the next turn.
const answer = await turn.steer("Thank you.");
console.log(answer);
console.log((await agent.turn(answer.turnId).result).text);

for (const { role, content } of await agent.getMessages()) console.log(`${role}: ${textOf(content)}`);
await runtime.shutdown();
