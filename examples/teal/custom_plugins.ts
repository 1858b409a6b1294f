// The plugins of agent.yaml: each named export is a plugin, a list of tools. The model sees them as math-add,
// results-delete.
import { defineTool } from "troupe";
import { z } from "zod";

const kept: number[] = [];

export const math = [
  defineTool({
    name: "add",
    description: "Adds two numbers.",
    parameters: z.object({ a: z.number(), b: z.number() }),
    execute: ({ a, b }) => {
      kept.push(a + b);
      return `${a} + ${b} = ${a + b}`;
    },
  }),
];

// catalog.json requires an approval for this tool.
export const results = [
  defineTool({
    name: "delete",
    description: "Deletes all kept results.",
    parameters: z.object({}),
    execute: () => `deleted ${kept.splice(0).length} results`,
  }),
];
