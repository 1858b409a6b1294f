/** A team in memory: tools with good and bad arguments, parallel subagents, an approval, and a budget that stops a turn. */
import { createRuntime, defineAgent, defineTool, memoryStores, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pages: Readonly<Record<string, string>> = { north: "snow", south: "sun", west: "rain" };
const fetchPage = defineTool({
  name: "fetch_page",
  description: "Gives the weather report of a region.",
  parameters: z.object({ region: z.enum(["north", "south", "west"]) }),
  effect: "none",
  execute: ({ region }) => pages[region],
});
const publish = defineTool({
  name: "publish",
  description: "Publishes a report.",
  parameters: z.object({ report: z.string() }),
  needsApproval: true,
  execute: ({ report }) => `published ${report.length} characters`,
});
const reader = defineAgent({
  name: "reader",
  tools: [fetchPage],
  model: scriptedModel(({ messages }) => {
    const results = messages.filter(({ role }) => role === "tool");
    const region =
      results.length === 0 ? "nowhere" : textOf(messages.find(({ role }) => role === "user")?.content ?? "");
    if (results.length === 2) return `It is ${textOf(results[1]?.content ?? "")}.`;
    return { toolCalls: [{ name: "fetch_page", arguments: { region } }] };
  }),
});
const lead = defineAgent({
  name: "lead",
  tools: [subagent(reader, { budget: { maxTokens: 20_000 }, policy: { maxChildren: 3 } }), publish],
  budget: { maxSteps: 3, maxTokens: 60_000 },
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "user" && textOf(last.content) === "loop")
      return { toolCalls: [{ name: "publish", arguments: {} }] };
    const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    if (results.length > 3) return { text: results.join(" "), toolCalls: [{ name: "publish", arguments: {} }] };
    if (results.length === 3) return { toolCalls: [{ name: "publish", arguments: { report: results.join(" ") } }] };
    return { toolCalls: Object.keys(pages).map((region) => ({ name: "reader", arguments: { input: region } })) };
  }),
});

const stores = memoryStores();
const runtime = await createRuntime({ agents: [lead], stores });
const agent = await runtime.agent("lead", { agentId: "weather" });
await agent.start();
const turn = agent.executeTurn("What is the weather like?");
const rest = await turn.settled;
if (rest.status === "waiting" && rest.reason === "request") {
  for (const { requestId, argumentsHash } of rest.requests) {
    await agent.decide(requestId, { verdict: "approved", argumentsHash });
  }
}
const { text, stopReason } = await turn.result;
const tree = await stores.exportTree("default", "weather");
await runtime.shutdown();
process.stdout.write(
  JSON.stringify({
    text,
    stopReason,
    entries: tree?.rows.flatMap(({ entries }) => entries.map(({ type }) => type)).toSorted(),
    accounts: tree?.accounts.map(({ used }) => `${used.tokens} tokens, ${used.steps} steps`).toSorted(),
  }),
);
