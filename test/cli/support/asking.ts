import { z } from "zod";
import {
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  textOf,
} from "../../../src/index.ts";
import { scriptedModel, type ScriptedToolCall } from "../../../src/testing/index.ts";

export interface Asking {
  readonly runtime: Runtime;
  /** The payments, in order. */
  readonly paid: string[];
  close(): Promise<void>;
}

/** A runtime whose `cashier` makes these calls in its first step and then answers with their results. */
export async function askingRuntime(
  calls: readonly ScriptedToolCall[],
  mayDecide?: RuntimeOptions["mayDecide"],
): Promise<Asking> {
  const paid: string[] = [];
  const runtime = await createRuntime({ agents: [cashier(calls, paid)], mayDecide });
  return { runtime, paid, close: () => runtime.shutdown() };
}

export function cashier(calls: readonly ScriptedToolCall[], paid: string[]) {
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ to: z.string(), amount: z.number() }),
    needsApproval: true,
    execute: ({ to, amount }) => {
      paid.push(`${to} ${amount}`);
      return `paid ${amount} to ${to}`;
    },
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.findLastIndex((message) => message.role === "user");
    const results = messages
      .slice(last + 1)
      .flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : []));
    return results.length === 0 ? { toolCalls: calls } : results.join("; ");
  });
  return defineAgent({ name: "cashier", model, tools: [pay, askUser()] });
}

export function payment(to: string, amount: number): ScriptedToolCall {
  return { name: "pay", arguments: { to, amount } };
}

export function questionOf(question: string): ScriptedToolCall {
  return { name: "ask_user", arguments: { question } };
}
