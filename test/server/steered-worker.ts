import { type AgentDefinition, defineAgent, defineTool, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";
import { createGate, type Gate } from "../support/turn-probes.ts";

/** An agent whose tool works until the test opens the gate, and which then repeats what it was told last. */
export function steeredWorker(): { readonly definition: AgentDefinition; readonly work: Gate<void> } {
  const work = createGate();
  const tool = defineTool({
    name: "work",
    description: "Works.",
    parameters: z.object({}),
    effect: "keyed",
    execute: async () => {
      await work.pass();
      return "worked";
    },
  });
  const model = scriptedModel(({ messages }) => {
    const told = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
    const isFirst = messages.at(-1)?.role === "user" && told.length === 1;
    return isFirst ? { toolCalls: [{ name: "work" }] } : `heard: ${told.at(-1)}`;
  });
  return { definition: defineAgent({ name: "worker", tools: [tool], model }), work };
}
