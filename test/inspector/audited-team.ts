import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  type Stores,
  subagent,
} from "../../src/index.ts";
import type { StoredTree } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** What the clerk is told; no audit without contents has it. */
export const secretWord = "canary-91b2";

/** A clerk that looks, asks a reader, pays after an approval, and answers. */
export function auditedTeam(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: `Looks for ${secretWord}.`,
    effect: "none",
    parameters: z.object({ at: z.string() }),
    execute: ({ at }) => `seen ${at}`,
  });
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    effect: "keyed",
    needsApproval: true,
    parameters: z.object({ to: z.string(), amount: z.number() }),
    execute: ({ to }) => `paid ${to} ${secretWord}`,
  });
  const reader = defineAgent({
    name: "reader",
    instructions: "Read.",
    model: scriptedModel(() => `read ${secretWord}`, { name: "small" }),
  });
  const steps = [
    { toolCalls: [{ name: "look", arguments: { at: secretWord } }] },
    { toolCalls: [{ name: "reader", arguments: { input: `Read ${secretWord}.` } }] },
    { toolCalls: [{ name: "pay", arguments: { to: `Ann ${secretWord}`, amount: 5 } }] },
  ];
  return defineAgent({
    name: "clerk",
    instructions: `Serve ${secretWord}.`,
    model: scriptedModel(({ messages }) => {
      const results = messages.filter(({ role }) => role === "tool").length;
      return steps[results] ?? `done ${secretWord}`;
    }),
    tools: [look, pay, subagent(reader, { description: "Reads." })],
    budget: { maxTokens: 50_000 },
  });
}

/** Plays a turn of the team under the id `desk`; "ann" approves the payment. The runtime closes the stores at its end. */
export async function playAuditedTeam(stores: Stores): Promise<StoredTree> {
  const runtime = await createRuntime({ agents: [auditedTeam()], stores });
  try {
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    const turn = agent.executeTurn(`Pay ${secretWord}.`);
    await turn.settled;
    const [request] = await stores.requests({ tenant: "default" });
    if (!request) throw new Error("the payment asks for no approval");
    await agent.decide(request.requestId, { verdict: "approved", by: "ann", reason: `fine ${secretWord}` });
    await turn.result;
    const tree = await stores.exportTree("default", "desk");
    if (!tree) throw new Error("there is no tree");
    return structuredClone(tree);
  } finally {
    await runtime.shutdown();
  }
}
