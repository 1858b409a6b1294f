import { z } from "zod";
import {
  type AgentDefinition,
  type Budget,
  defineAgent,
  defineTool,
  type EffectClass,
  type Hooks,
  openaiModel,
  type RunContext,
  subagent,
} from "../src/index.ts";
import { ledgerAt } from "./ledger/client.ts";
import { sidePrefix } from "./model/script.ts";

/** Limits that apply but are not reached, so that every call reserves and settles. */
const budget = { maxSteps: 12, maxTokens: 2_000_000, maxSeconds: 600, maxCost: 100 };
/** Whole micro-dollars per token, so that nothing is rounded. */
export const price = { inputPerMillion: 1, outputPerMillion: 4 };
/** Prefix of hooks' keys in the ledger. */
export const hookPrefix = "hook:";

/** The fields that all agents of these runs share: the model with their name, and limits. */
export function memberOf(baseURL: string, limits: Budget = budget) {
  return (name: string) => ({
    name,
    model: openaiModel(name, { apiKey: "none", baseURL }),
    instructions: `You are the ${name} of a chaos run.`,
    budget: limits,
    price,
    maxModelAttempts: 5,
  });
}

/**
 * A lead with a tool of each effect class and two levels of subagents: the agents for the plans of chaos/model/script.ts.
 */
export function chaosTeam(ledgerOrigin: string, baseURL: string): AgentDefinition {
  const ledger = ledgerAt(ledgerOrigin);
  const tools = ledgerTools(ledgerOrigin);
  const common = memberOf(baseURL);
  const noteHook = async (name: string, turnId: string, step: number): Promise<void> => {
    await ledger.attempt({ key: `${hookPrefix}${turnId}:${step}:${name}`, tool: name, effect: "none" });
  };
  const hooks: Hooks = {
    beforeLlm: async (_draft, run) => {
      const { turnId, step } = run;
      await run.generate(sideCall(`${turnId}:${step}:beforeLlm`));
      await noteHook("beforeLlm", turnId, step);
    },
    afterTools: async (draft, { turnId, step }) => {
      await noteHook("afterTools", turnId, step);
      draft.add({ role: "user", content: `round ${step} is over` });
    },
  };
  const scribe = defineAgent({ ...common("scribe"), tools: [tools.send, tools.charge] });
  const helper = defineAgent({
    ...common("helper"),
    tools: [tools.charge, tools.book, tools.look, subagent(scribe, { budget })],
    hooks,
  });
  return defineAgent({
    ...common("lead"),
    tools: [tools.look, tools.charge, tools.send, tools.book, subagent(helper, { budget })],
  });
}

/** Makes as many concurrent calls as its task requests. */
export function chaosFan(ledgerOrigin: string, baseURL: string): AgentDefinition {
  const { look, charge, send, book } = ledgerTools(ledgerOrigin);
  return defineAgent({ ...memberOf(baseURL)("fan"), tools: [look, charge, send, book] });
}

/** A tool of each effect class; they run in the turn's process. */
export function ledgerTools(origin: string) {
  const ledger = ledgerAt(origin);
  const act = async (name: string, effect: EffectClass, run: RunContext): Promise<string> => {
    const { receipt } = await ledger.attempt({ key: run.idempotencyKey, tool: name, effect }, run.signal);
    return receiptText(receipt);
  };
  const declared = (name: string, effect: EffectClass) => ({
    name,
    description: `A tool of class ${effect} whose effects the ledger counts.`,
    parameters: z.object({ note: z.string() }),
    effect,
    execute: (_args: unknown, run: RunContext) => act(name, effect, run),
  });
  return {
    look: defineTool(declared("look", "none")),
    charge: defineTool(declared("charge", "keyed")),
    pay: defineTool({ ...declared("pay", "once"), needsApproval: true }),
    send: defineTool({
      ...declared("send", "once"),
      execute: async (_args, run) => {
        await run.generate(sideCall(run.callId));
        return await act("send", "once", run);
      },
    }),
    book: defineTool({
      ...declared("book", "once"),
      reconcile: async (_args, run) => {
        const { receipt } = await ledger.of(run.idempotencyKey);
        return receipt === null ? { done: false } : { done: true, result: receiptText(receipt) };
      },
    }),
  };
}

/** A model call of user code, on the agent's budget. */
function sideCall(run: string) {
  return { messages: [{ role: "user", content: `${sidePrefix}${run}` }], maxOutputTokens: 64 } as const;
}

function receiptText(receipt: string): string {
  return `ok ${receipt}`;
}
