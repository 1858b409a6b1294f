import {
  type AgentDefinition,
  type AgentOptions,
  defineAgent,
  type Message,
  subagent,
  textOf,
} from "../../src/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import type { Gate } from "./turn-probes.ts";

/** The lead's answer to the messages that it sees; `text` is that of the last one. */
export type LeadReply = (seen: {
  readonly messages: readonly Message[];
  readonly text: string;
  readonly last: Message;
}) => ScriptedAnswer | string | Promise<ScriptedAnswer | string>;

/** A child that answers when its gate opens, or immediately. */
export function worker(gate?: Gate<string>, options: Partial<AgentOptions> = {}): AgentDefinition {
  const model = scriptedModel(async ({ messages }, { signal }) =>
    gate ? await gate.pass(signal) : `done: ${textOf(messages.at(-1)?.content ?? "")}`,
  );
  return defineAgent({ name: "worker", model, ...options });
}

/** A lead whose workers run in the background. */
export function leadOf(
  child: AgentDefinition,
  reply: LeadReply,
  { onEnd, budget, ...options }: Partial<AgentOptions> & { readonly onEnd?: "keep" | "wake" } = {},
): AgentDefinition {
  const model = scriptedModel(async ({ messages }) => {
    const last = messages.at(-1);
    if (!last) throw new Error("the lead received no input");
    return await reply({ messages, text: textOf(last.content), last });
  });
  return defineAgent({
    name: "lead",
    ...options,
    model,
    budget,
    tools: [subagent(child, { mode: "background", onEnd }), ...(options.tools ?? [])],
  });
}

/** The ids of children in a message to the model. */
export function startedIds(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    if (message.role !== "tool") return [];
    const text = textOf(message.content);
    return text.startsWith('{"agentId"') ? [(JSON.parse(text) as { agentId: string }).agentId] : [];
  });
}

/** Messages that report the end of a child. */
export function reportsIn(messages: readonly Message[]): string[] {
  return messages.filter(({ origin }) => origin.startsWith("subagent:")).map(({ content }) => textOf(content));
}
