import { z } from "zod";
import {
  askUser,
  type AgentDefinition,
  defineAgent,
  defineTool,
  type LanguageModel,
  type Message,
  subagent,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import type { PlannedCall, PlannedRound } from "./plan.ts";

const usage = { inputTokens: 3, outputTokens: 2 };
const parameters = z.object({ what: z.string() });

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters,
  effect: "none",
  execute: ({ what }) => `saw ${what}`,
});
const approve = defineTool({
  name: "approve",
  description: "A tool whose calls need approval.",
  parameters,
  needsApproval: true,
  execute: ({ what }) => `did ${what}`,
});
const tools = [look, approve, askUser()];

/** Answers by the rounds in its turn's message; the same conversation gets the same answer. */
const modelAt = (depth: number): LanguageModel =>
  scriptedModel(({ messages }) => {
    const begin = messages.findLastIndex((message) => message.role === "user");
    const rounds = JSON.parse(textIn(messages[begin])) as PlannedRound[];
    const since = messages.slice(begin + 1);
    const step = since.filter(({ role }) => role === "assistant").length;
    const round = rounds[step];
    const told = since.filter(({ role }) => role === "tool").map(textIn);
    if (!round) return { usage, text: told.toSorted().join("; ") };
    return { usage, toolCalls: round.map((call, index) => ({ ...wireCall(call, `${step}.${index}`, depth) })) };
  });

function textIn(message: Pick<Message, "content"> | undefined): string {
  return textOf(message?.content ?? "");
}

function wireCall(call: PlannedCall, what: string, depth: number) {
  if (call === "ask") return { name: "ask_user", arguments: { question: what } };
  if (typeof call === "string") return { name: call, arguments: { what } };
  return { name: depth === 0 ? "child" : "grandchild", arguments: { input: JSON.stringify(call.child) } };
}

const common = (depth: number) => ({ model: modelAt(depth), maxOutputTokens: 300 });
const grandchild = defineAgent({ ...common(2), name: "grandchild", tools });
const child = defineAgent({ ...common(1), name: "child", tools: [...tools, subagent(grandchild)] });
/** An agent that follows the plan in its message, with children that do the same, two levels deep. */
export const planned: AgentDefinition = defineAgent({
  ...common(0),
  name: "lead",
  tools: [...tools, subagent(child)],
});
