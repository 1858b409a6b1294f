import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";

const order = z.object({ order: z.string() });

export interface Shop {
  readonly desk: AgentDefinition;
  readonly model: ScriptedModel;
  readonly paid: string[];
}

/** Looks at an order, pays it back once, and answers with the name of its model and what it was told. */
export function shopOf(instructions = "You serve the shop."): Shop {
  const paid: string[] = [];
  const modelNamed = (name: string): ScriptedModel =>
    scriptedModel(
      ({ messages }, { call }) => {
        if (call?.step === 1) return { toolCalls: [{ name: "look", arguments: { order: "17" } }] };
        if (call?.step === 2) return { toolCalls: [{ name: "refund", arguments: { order: "17" } }] };
        return `${name} read: ${messages.map(({ content }) => JSON.stringify(content)).join(" | ")}`;
      },
      { name },
    );
  const model = modelNamed("first-model");
  const look = defineTool({
    name: "look",
    description: "Looks at an order.",
    parameters: order,
    effect: "none",
    execute: () => ({ state: "broken" }),
  });
  const refund = defineTool({
    name: "refund",
    description: "Pays the money back.",
    parameters: order,
    effect: "once",
    execute: ({ order: id }) => `refunded ${id}, payment ${paid.push(id)}`,
  });
  const price = { inputPerMillion: 2, outputPerMillion: 10 };
  const clerk = defineAgent({ name: "clerk", price, model: modelNamed("second-model"), tools: [look, refund] });
  const desk = defineAgent({ name: "desk", price, instructions, model, tools: [look, refund, subagent(clerk)] });
  return { desk, model, paid };
}
