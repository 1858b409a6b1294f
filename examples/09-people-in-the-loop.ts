// People in the loop: approvals that are edited or rejected, a question, and a restart while everything waits.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { askUser, createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const pay = defineTool({
  name: "pay",
  description: "Pays a person or a company.",
  parameters: z.object({ to: z.string(), francs: z.number().positive() }),
  needsApproval: ({ francs }) => francs > 100,
  describeCall: ({ to, francs }) => `Pay ${francs} francs to ${to}?`,
  execute: ({ to, francs }) => `paid ${francs} francs to ${to}`,
});

const asks = [
  { name: "pay", arguments: { to: "the printer", francs: 250 } },
  { name: "pay", arguments: { to: "the caterer", francs: 900 } },
  { name: "ask_user", arguments: { question: "When is the party?", options: ["Friday", "Saturday"] } },
];
const planner = () =>
  defineAgent({
    name: "planner",
    tools: [pay, askUser()],
    model: scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
      return results.length === 0 ? { toolCalls: asks } : `What came of it: ${results.join(" | ")}`;
    }),
  });

const folder = mkdtempSync(join(tmpdir(), "troupe-example-"));
const open = () => createRuntime({ agents: [planner()], stores: sqliteStores(join(folder, "party.db")) });

const monday = await open();
const agent = await monday.agent("planner", { agentId: "party" });
await agent.start();
const rest = await agent.executeTurn("Get the party going.").settled;
console.log(`the turn is ${rest.status}; the process ends, nothing is lost`);
await monday.shutdown();

const tuesday = await open();
for (const { requestId, kind, prompt, name } of await tuesday.requests()) {
  console.log(`${kind}: ${prompt.replaceAll("\n", " ")}`);
  if (name === "ask_user") await tuesday.decide(requestId, { verdict: "answered", result: "Saturday", by: "ada" });
  else if (prompt.includes("printer")) {
    const edited = { to: "the printer", francs: 200 };
    await tuesday.decide(requestId, { verdict: "edited", arguments: edited, by: "ada" });
  } else await tuesday.decide(requestId, { verdict: "rejected", by: "ada", reason: "too much; we bring our own food" });
}

const again = await tuesday.find("party");
await again.start();
console.log((await again.turn("party#1").result).text);

const decided = await tuesday.requests({ status: "decided" });
const paid = decided.find(({ prompt }) => prompt.includes("printer"));
const late = await tuesday
  .decide(paid?.requestId ?? "", { verdict: "approved", by: "bob" })
  .catch((error: Error) => error.message);
console.log("bob is late:", late);
await tuesday.shutdown();
rmSync(folder, { recursive: true });
