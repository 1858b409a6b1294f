// A supervisor delegates to workers, reads what they found, and ends its turn with a tool that takes the report as data.
import { defineAgent, defineTool, run, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const worker = (name: string, finding: string) => defineAgent({ name, model: scriptedModel(finding) });
const report = z.object({ findings: z.array(z.string()) });

const supervisor = defineAgent({
  name: "supervisor",
  output: report,
  tools: [
    subagent(worker("reader", "The contract ends in May."), { budget: { maxSteps: 3 } }),
    subagent(worker("counter", "It has 12 pages."), { budget: { maxSteps: 3 } }),
    defineTool({
      name: "submit",
      description: "Hands in the report and ends the work.",
      parameters: report,
      effect: "none",
      endsTurn: true,
      execute: (given) => given,
    }),
  ],
  budget: { maxSteps: 12 },
  model: scriptedModel(({ messages }) => {
    const findings = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    if (findings.length > 0) return { toolCalls: [{ name: "submit", arguments: { findings } }] };
    return {
      toolCalls: ["reader", "counter"].map((name) => ({ name, arguments: { input: "Look at the contract." } })),
    };
  }),
});

const { output, steps, spent } = await run(supervisor, "What is in the contract?");
console.log(output, `${steps} calls of the supervisor, ${spent.tree.calls} of the team`);
