import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, type EffectClass, type RunContext } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { ledgerAt } from "../ledger/client.ts";

/** The calls of the model's only answer with calls. Both need approval. */
export const wishes = [
  { name: "charge", arguments: { to: "Ada", amount: 5 } },
  { name: "send", arguments: { to: "Bob", amount: 7 } },
] as const;

/** The edited arguments. */
export const editedArguments = { amount: 1, to: "Eve" } as const;

/** The ledger's name for an effect: the tool and its actual arguments. */
export function deedOf(name: string, { to, amount }: { readonly to: string; readonly amount: number }): string {
  return `${name} ${amount} to ${to}`;
}

/** An agent with a keyed and a `once` tool, whose effects the ledger counts, and a deterministic model. */
export function clerkAt(ledgerOrigin: string): AgentDefinition {
  const ledger = ledgerAt(ledgerOrigin);
  const tool = (name: string, effect: EffectClass) =>
    defineTool({
      name,
      description: `A tool of class ${effect} whose calls need approval.`,
      parameters: z.object({ to: z.string(), amount: z.number() }),
      effect,
      needsApproval: true,
      execute: async (args, run: RunContext) => {
        const { receipt } = await ledger.attempt(
          { key: run.idempotencyKey, tool: deedOf(name, args), effect },
          run.signal,
        );
        return receipt;
      },
    });
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "user" ? { toolCalls: wishes } : "DONE"));
  return defineAgent({ name: "clerk", model, tools: [tool("charge", "keyed"), tool("send", "once")] });
}
