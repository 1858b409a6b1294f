// A writer drafts, an evaluator judges, and the writer tries again until the draft passes: the tool ends the turn only with a draft that
// was accepted, and the budget limits the number of attempts.
import { defineAgent, defineTool, run, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const evaluator = defineAgent({
  name: "evaluator",
  output: z.object({ passes: z.boolean(), advice: z.string() }),
  model: scriptedModel(({ messages }) => {
    const passes = textOf(messages.at(-1)?.content ?? "").includes("because");
    return JSON.stringify({ passes, advice: passes ? "" : "Give a reason." });
  }),
});

const publish = defineTool({
  name: "publish",
  description: "Hands in the draft, once the evaluator has passed it.",
  parameters: z.object({ draft: z.string() }),
  effect: "none",
  endsTurn: true,
  execute: ({ draft }) => draft,
});

const writer = defineAgent({
  name: "writer",
  instructions: "Write a draft, let the evaluator judge it, improve it until it passes, then publish it.",
  tools: [subagent(evaluator, { description: "Judges a draft.", budget: { maxSteps: 3 } }), publish],
  budget: { maxSteps: 8 },
  model: scriptedModel(({ messages }) => {
    const verdicts = messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
    const draft = verdicts.length === 0 ? "Troupe is durable." : "Troupe is durable, because it keeps a journal.";
    console.log(verdicts.at(-1) ?? "first draft");
    const passed = verdicts.at(-1)?.includes("true") === true;
    return {
      toolCalls: [
        passed ? { name: "publish", arguments: { draft } } : { name: "evaluator", arguments: { input: draft } },
      ],
    };
  }),
});

const { text, steps } = await run(writer, "Praise troupe in one sentence.");
console.log(`${text} (${steps} steps)`);
