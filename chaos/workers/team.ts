import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type EffectClass,
  openaiModel,
  subagent,
} from "../../src/index.ts";
import { ledgerAt } from "../ledger/client.ts";
import { price } from "../worker-agents.ts";

/** The queue of the tools. */
export const TOOL_QUEUE = "ledger";

const budget = { maxSteps: 12, maxTokens: 2_000_000, maxCost: 100 };

/** A foreman and a hand, whose tools but one are run by whoever works on the queue; and one who only talks. */
export function queuedTeam(ledgerOrigin: string, baseURL: string): AgentDefinition[] {
  const ledger = ledgerAt(ledgerOrigin);
  const common = (name: string) => ({
    name,
    model: openaiModel(name, { apiKey: "none", baseURL }),
    instructions: `You are the ${name} of a chaos run.`,
    budget,
    price,
    maxModelAttempts: 5,
  });
  const declared = (name: string, effect: EffectClass) => ({
    name,
    description: `A tool of class ${effect} whose effects the ledger counts.`,
    parameters: z.object({ note: z.string() }),
    effect,
    execute: async (_args: unknown, run: { readonly idempotencyKey: string; readonly signal: AbortSignal }) => {
      const { receipt } = await ledger.attempt({ key: run.idempotencyKey, tool: name, effect }, run.signal);
      return `ok ${receipt}`;
    },
  });
  const look = defineTool(declared("look", "none"));
  const charge = defineTool({ ...declared("charge", "keyed"), queue: TOOL_QUEUE });
  const send = defineTool({ ...declared("send", "once"), queue: TOOL_QUEUE });
  const book = defineTool({
    ...declared("book", "once"),
    queue: TOOL_QUEUE,
    reconcile: async (_args, run) => {
      const { receipt } = await ledger.of(run.idempotencyKey);
      return receipt === null ? { done: false } : { done: true, result: `ok ${receipt}` };
    },
  });
  const hand = defineAgent({ ...common("hand"), tools: [charge] });
  const foreman = defineAgent({ ...common("foreman"), tools: [look, charge, send, book, subagent(hand, { budget })] });
  return [foreman, defineAgent(common("talker"))];
}
