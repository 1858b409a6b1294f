// A lead starts two searchers in the background, talks to its user meanwhile, and starts a turn by itself for their
// results.
import { createRuntime, defineAgent, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";

const shelves: Record<string, string> = { attic: "an old map", cellar: "a bottle of ink" };

const searcher = defineAgent({
  name: "searcher",
  model: scriptedModel(({ messages }) => shelves[textOf(messages.at(-1)?.content ?? "")] ?? "nothing"),
});

const lead = defineAgent({
  name: "lead",
  tools: [subagent(searcher, { mode: "background", onEnd: "wake", budget: { maxSteps: 3 } })],
  budget: { maxSteps: 12, maxSeconds: 60 },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const reports = messages.filter(({ origin }) => origin === "subagent:searcher");
    if (last?.role === "tool") return "Two searchers are on their way. Ask me anything meanwhile.";
    if (reports.length > 0) {
      return `Found so far: ${reports.map(({ content }) => textOf(content).split("\n").at(-1)).join(", ")}.`;
    }
    return { toolCalls: Object.keys(shelves).map((place) => ({ name: "searcher", arguments: { input: place } })) };
  }),
});

const runtime = await createRuntime({ agents: [lead] });
runtime.subscribe((event) => {
  if (event.type === "subagent.spawned") console.log(`${event.childId} is sent out, mode ${event.mode}`);
  if (event.type === "subagent.ended") console.log(`${event.childId} has ${event.outcome}`);
});
const agent = await runtime.agent("lead", { agentId: "house" });
await agent.start();
console.log((await agent.executeTurn("Search the house.").result).text);

// No caller starts this turn: the first searcher that ends starts it.
for await (const { type, turnId } of runtime.follow("house")) {
  if (type === "turn.started" && turnId === "house#2") break;
}
const woken = await agent.turn("house#2").result;
console.log(`${woken.turnId}: ${woken.text}`);
for (const { id, parentId, used, limits } of await runtime.accounts("house")) {
  console.log(
    `${id}: ${used.steps} of ${limits.maxSteps ?? "any number of"} steps${parentId ? `, under ${parentId}` : ""}`,
  );
}
await runtime.shutdown();
