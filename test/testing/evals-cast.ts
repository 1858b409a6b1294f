// A shop's desk whose answers are scripted: a good one, and broken ones that evals must catch.
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type Json,
  type ModelRequest,
  subagent,
  textOf,
} from "../../src/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";

const order = z.object({ order: z.string() });

const price = { inputPerMillion: 1, outputPerMillion: 2 };
export const prices = {
  scripted: price,
  "scripted-judge": price,
};

export type Fault = "none" | "pays twice" | "pays unasked" | "talks on" | "wrong order" | "wrong amount" | "fails";

/** The number in the last message of the user. */
function askedOrder({ messages }: ModelRequest): string {
  const asked = messages.findLast(({ role }) => role === "user");
  return /\d+/.exec(textOf(asked?.content ?? ""))?.[0] ?? "0";
}

function reply(request: ModelRequest, step: number, fault: Fault): ScriptedReply {
  const number = fault === "wrong order" ? "999" : askedOrder(request);
  const calls = (...names: string[]) => ({ toolCalls: names.map((name) => ({ name, arguments: { order: number } })) });
  if (fault === "fails") return { error: new Error("the model is away") };
  if (step === 1) return calls("look", ...(fault === "pays unasked" ? ["refund"] : []));
  if (step === 2) return fault === "pays twice" ? calls("refund", "refund") : calls("refund");
  if (fault === "talks on" && step < 9) return calls("look");
  return { text: JSON.stringify({ order: number, refunded: fault === "wrong amount" ? 4 : 40 }) };
}

/** An agent that looks at an order and refunds it. */
export function desk(fault: Fault = "none"): AgentDefinition<{ order: string; refunded: number }> {
  return defineAgent({
    name: "desk",
    model: scriptedModel((request, { call }) => reply(request, call?.step ?? 0, fault)),
    instructions: "You serve the shop.",
    budget: { maxSteps: 20 },
    tools: [
      defineTool({
        name: "look",
        description: "Looks.",
        parameters: order,
        effect: "none",
        execute: ({ order: id }) => `Order ${id}: 40 dollars`,
      }),
      defineTool({
        name: "refund",
        description: "Pays.",
        parameters: order,
        effect: "once",
        execute: ({ order: id }) => `refunded ${id}`,
      }),
    ],
    output: z.object({ order: z.string(), refunded: z.number() }),
  });
}

/** A judge whose scores are given, by the number of the criterion. */
export function judgeModel(scores: Json) {
  return scriptedModel(() => ({ text: JSON.stringify({ criteria: scores }) }), { name: "scripted-judge" });
}

/** A lead that asks one reader, which looks something up. */
export function team(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: order,
    effect: "none",
    execute: () => "found",
  });
  const reader = defineAgent({
    name: "reader",
    model: scriptedModel((_request, { call }) =>
      call?.step === 1 ? { toolCalls: [{ name: "look", arguments: { order: "1" } }] } : "read",
    ),
    tools: [look],
  });
  return defineAgent({
    name: "lead",
    model: scriptedModel((_request, { call }) =>
      call?.step === 1 ? { toolCalls: [{ name: "reader", arguments: { input: "Read." } }] } : "done",
    ),
    tools: [subagent(reader, { description: "Reads." })],
  });
}
