// A lead starts three readers in parallel. Each is a separate agent with its own history and budget.
import { createRuntime, defineAgent, defineTool, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pages: Record<string, string> = { north: "snow", south: "sun", west: "rain" };

const fetchPage = defineTool({
  name: "fetch_page",
  description: "Gives the weather report of a region.",
  parameters: z.object({ region: z.string() }),
  effect: "none",
  execute: ({ region }) => pages[region] ?? "no report",
});

const reader = defineAgent({
  name: "reader",
  tools: [fetchPage],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return `It is ${textOf(last.content)}.`;
    return { toolCalls: [{ name: "fetch_page", arguments: { region: textOf(last?.content ?? "") } }] };
  }),
});

const lead = defineAgent({
  name: "lead",
  tools: [subagent(reader, { budget: { maxTokens: 20_000, maxSeconds: 60 }, policy: { maxChildren: 3 } })],
  budget: { maxSteps: 5, maxTokens: 60_000 },
  model: scriptedModel(({ messages }) => {
    const findings = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    if (findings.length > 0) return findings.join(" ");
    return { toolCalls: Object.keys(pages).map((region) => ({ name: "reader", arguments: { input: region } })) };
  }),
});

const runtime = await createRuntime({ agents: [lead] });
const agent = await runtime.agent("lead", { agentId: "weather" });
await agent.start();

// The stream of a turn includes the events of the children that it spawned.
const turn = agent.executeTurn("What is the weather like?");
for await (const event of turn) {
  if (event.type === "subagent.spawned") console.log(`${event.agentName} spawned ${event.childId}`);
  if (event.type === "turn.completed") console.log(`${event.agentName} ${event.agentId}: ${event.text}`);
}

console.log("\naccount, tokens used, limit");
for (const { id, parentId, used, limits } of await runtime.accounts("weather")) {
  console.log(
    `${id.padEnd(34)} ${used.tokens} of ${limits.maxTokens ?? "unlimited"}${parentId ? `, under ${parentId}` : ""}`,
  );
}
await runtime.shutdown();
