// An agent file for `troupe mcp serve`, whose code prints to standard output. WITNESS is a file with a line for each effect, and GATE
// a file that the tool `wait` waits for.
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

console.log("the agent file is loaded");

const { WITNESS = "", GATE = "" } = process.env;

const remove = defineTool({
  name: "remove",
  description: "Removes a file",
  parameters: z.object({ path: z.string() }),
  needsApproval: true,
  execute: ({ path }) => {
    console.log("the tool runs");
    process.stdout.write("it removes\n");
    appendFileSync(WITNESS, `${path}\n`);
    return `removed ${path}`;
  },
});

const wait = defineTool({
  name: "wait",
  description: "Waits for the gate",
  parameters: z.object({}),
  effect: "none",
  execute: async (_, { signal }) => {
    appendFileSync(WITNESS, "waiting\n");
    while (!existsSync(GATE)) await sleep(20, undefined, { signal });
    return "waited";
  },
});

export const agent = defineAgent({
  name: "desk",
  tools: [remove, wait],
  model: scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { text: `so: ${text}` };
    if (text === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "a.txt" } }] };
    if (text === "wait") return { toolCalls: [{ name: "wait", arguments: {} }] };
    return { text: `${messages.filter(({ role }) => role === "user").length}: ${text}` };
  }),
});
