import { type AgentDefinition, defineAgent, textOf } from "../../src/index.ts";
import { type ModelScript, type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";

/** A call of a tool, or of a subagent as a tool. */
export type LeadCall = string | { readonly name: string; readonly arguments: object };

/** Calls these tools in one round, and ends when it has their results. */
export function leadScript(calls: readonly LeadCall[], reply: ScriptedReply = {}): ModelScript {
  const toolCalls = calls.map((call) => (typeof call === "string" ? { name: call } : call));
  return ({ messages }) => (messages.at(-1)?.role === "tool" ? { ...reply, text: "the end" } : { ...reply, toolCalls });
}

/** A call of a subagent with the default parameters. */
export function asks(name: string, input: string): { name: string; arguments: { input: string } } {
  return { name, arguments: { input } };
}

/** An agent that repeats its input. */
export function reader(): AgentDefinition {
  const model = scriptedModel(({ messages }) => `read: ${textOf(messages.at(-1)?.content ?? "")}`);
  return defineAgent({ name: "reader", model });
}
