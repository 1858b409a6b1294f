import type OpenAI from "openai";
import { childInstructions, lookup } from "../scenario.ts";
import { type BareTool, runLoop } from "./loop.ts";

function objectSchema(property: string): Record<string, unknown> {
  return {
    type: "object",
    properties: { [property]: { type: "string" } },
    required: [property],
    additionalProperties: false,
  };
}

export const lookupTool: BareTool = {
  definition: {
    type: "function",
    function: { name: "lookup", description: "Looks up the value of a key.", parameters: objectSchema("key") },
  },
  run: (args) => lookup(args["key"] ?? ""),
};

/** A subagent without a runtime: a loop in a tool. All calls of one answer run concurrently. */
export function childTool(client: OpenAI, model: string): BareTool {
  return {
    definition: {
      type: "function",
      function: { name: "child", description: "Looks after one part.", parameters: objectSchema("input") },
    },
    run: (args) =>
      runLoop({ client, model, tools: [lookupTool] }, [
        { role: "system", content: childInstructions },
        { role: "user", content: args["input"] ?? "" },
      ]),
  };
}
