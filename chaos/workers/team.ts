import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, type EffectClass, subagent } from "../../src/index.ts";
import { ledgerAt } from "../ledger/client.ts";
import { memberOf } from "../worker-agents.ts";

/** The tools' queue. */
export const TOOL_QUEUE = "ledger";

const budget = { maxSteps: 12, maxTokens: 2_000_000, maxCost: 100 };

const die = (): void => void process.kill(process.pid, "SIGKILL");
const stop = (): void => void process.kill(process.pid, "SIGSTOP");

/**
 * A foreman and a hand, whose tools except one are run by the queue's workers; a porter with up to eight such concurrent
 * calls; an agent that only talks, and a crowd of those;
 * and agents whose tools kill or stop the process that runs them.
 */
export function queuedTeam(ledgerOrigin: string, baseURL: string, crowdSize = 10): AgentDefinition[] {
  const ledger = ledgerAt(ledgerOrigin);
  const common = memberOf(baseURL, budget);
  const declared = (name: string, effect: EffectClass, deed?: () => void) => ({
    name,
    description: `A tool of class ${effect} whose effects the ledger counts.`,
    parameters: z.object({ note: z.string() }),
    effect,
    execute: async (_args: unknown, run: { readonly idempotencyKey: string; readonly signal: AbortSignal }) => {
      const { receipt } = await ledger.attempt({ key: run.idempotencyKey, tool: name, effect }, run.signal);
      deed?.();
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
  const poisoners = [
    defineAgent({ ...common("dies"), tools: [defineTool({ ...declared("die", "keyed", die), queue: TOOL_QUEUE })] }),
    defineAgent({
      ...common("dies-once"),
      tools: [defineTool({ ...declared("dieOnce", "once", die), queue: TOOL_QUEUE })],
    }),
    defineAgent({ ...common("dies-here"), tools: [defineTool(declared("dieHere", "keyed", die))] }),
    defineAgent({ ...common("stops"), tools: [defineTool({ ...declared("stop", "keyed", stop), queue: TOOL_QUEUE })] }),
  ];
  const talker = defineAgent(common("talker"));
  const crowd = defineAgent({
    ...common(`crowd:${crowdSize}`),
    name: "crowd",
    budget: {},
    tools: [subagent(talker, { budget, policy: { maxChildren: crowdSize, maxConcurrent: crowdSize } })],
  });
  const hand = defineAgent({ ...common("hand"), tools: [charge] });
  const foreman = defineAgent({ ...common("foreman"), tools: [look, charge, send, book, subagent(hand, { budget })] });
  const porter = defineAgent({ ...common("porter"), tools: [look, charge, send, book] });
  return [foreman, porter, talker, crowd, ...poisoners];
}
